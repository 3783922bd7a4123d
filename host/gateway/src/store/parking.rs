//! Parking: a question that cannot be processed is set aside, so that its conversation can continue. It stays in
//! the inbox until somebody reopens it.

use pmk_core::SessionKey;

use super::{
    Pending, Purpose, Store, StoreError, Withdrawal,
    error::Fault,
    escalations, events, intake, lease,
    outgoing::{How, UNSENT_PARTS, purpose},
    sql::{self, Connection, OptionalExtension, Row, params},
};
use crate::ids::{InboxId, SessionId, TurnId};
use crate::{
    chat::Inbound,
    ledger::{Event, TaggedEvent},
};

const PARK: &str = "UPDATE inbox SET parked_at = ?2, parked_why = ?3, parked_told = 0, parked_maybe_told = 0
     WHERE id = ?1 AND message IS NOT NULL AND parked_at IS NULL
     RETURNING session_id";
/// A placeholder no longer counts that was replaced by the answer or its first part, or by a notice; a first part that
/// passes an answer on replaces none. A question counts as answered if the only unsent parts are for other readers or
/// remove something.
const PARKED: &str = concat!(
    "SELECT i.id, s.key, i.ts, i.parked_at, i.parked_why, i.parked_told, i.message,
            CASE WHEN EXISTS (SELECT 1 FROM outbox o WHERE o.turn_id = i.id AND o.sent_at IS NOT NULL AND ",
    purpose!(),
    " IN ('notice', CASE WHEN o.part = 0 THEN 'reply' ELSE 'notice' END))
                 THEN NULL ELSE t.placeholder END,
            EXISTS (SELECT 1 FROM outbox o WHERE o.turn_id = i.id)
                AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.turn_id = i.id AND o.sent_at IS NULL AND ",
    purpose!(),
    " NOT IN ('withdraw', 'mark', 'tracked', 'notice')),
            CASE WHEN json_valid(t.report) THEN json_extract(t.report, '$.event_ids') END, i.parked_maybe_told,
            CASE WHEN NOT EXISTS (SELECT 1 FROM outbox o WHERE o.turn_id = i.id AND o.sent_id = t.streamed_ts)
                 THEN t.streamed_ts END
     FROM inbox i JOIN session s ON s.id = i.session_id LEFT JOIN turn t ON t.id = i.id
     WHERE i.parked_at IS NOT NULL AND i.message IS NOT NULL AND (CAST(?1 AS BIGINT) IS NULL OR i.id = ?1)
         AND (CAST(?2 AS BIGINT) = 0 OR i.parked_told = 0)
     ORDER BY i.id"
);
const MAY_TELL: &str = "UPDATE inbox SET parked_maybe_told = 1 WHERE id = ?1 AND parked_at IS NOT NULL";
const TOLD: &str = "UPDATE inbox SET parked_told = 1 WHERE id = ?1 AND parked_at IS NOT NULL";

/// A question that was set aside because it could not be processed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parked {
    pub inbox: InboxId,
    /// The conversation's key, as stored.
    pub key: String,
    /// Its position among the questions of its conversation.
    pub ts: String,
    /// When it was parked, milliseconds since the epoch.
    pub at_ms: i64,
    /// Why it was parked, for the operator.
    pub why: String,
    /// Whether the person who asked was told.
    pub told: bool,
    /// Whether an earlier attempt to tell them may have reached them.
    pub maybe_told: bool,
    /// The question; `None` where it cannot be read.
    pub message: Option<Inbound>,
    /// The message that shows the person that an answer is being made.
    pub placeholder: Option<String>,
    /// The message that has the beginning of an answer, unless it is known to have become a part of it.
    pub streamed: Option<String>,
    /// Whether the whole answer was delivered, and only something beside it could not be.
    pub answered: bool,
    /// Where its answer could not be delivered: the event ids of all messages that the answer is for.
    pub event_ids: Vec<String>,
}

/// Parked questions that were reopened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unparked {
    /// Those that whoever has reopened them works on.
    pub pending: Vec<Pending>,
    /// How many were reopened for others to find.
    pub left: usize,
    /// How many stay parked, because their conversation cannot be read.
    pub unreadable: usize,
}

impl Unparked {
    /// Returns how many were reopened.
    pub fn messages(&self) -> usize {
        self.pending.len() + self.left
    }
}

impl Store {
    /// Parks a question and releases its conversation; an answer of a contact that it was processing is awaited
    /// again. `None` where there is nothing to park: the question is finished, or parked already. Writes a ledger
    /// event, after those of what was spent on it in vain.
    ///
    /// # Errors
    /// Nothing was changed.
    pub async fn park(
        &self,
        inbox: InboxId,
        why: &str,
        costs: Vec<TaggedEvent>,
        now_ms: i64,
    ) -> Result<Option<Parked>, StoreError> {
        let (why, pen, owner) = (why.to_owned(), self.pen(now_ms), self.owner());
        // It may be reopened by another host.
        self.shared.undelivered.take(TurnId(inbox.0));
        self.write_with_events(move |conn| {
            let session: Option<i64> =
                conn.prepare_cached(PARK)?.query_row(params![inbox.0, now_ms, why], |row| row.get(0)).optional()?;
            let Some(session) = session else { return Ok(None) };
            conn.prepare_cached(escalations::RELEASE_CLAIM)?.run([inbox.0])?;
            lease::free(conn, SessionId(session), &owner)?;
            let parked = parked(conn, Wanted::One(inbox))?.pop();
            if let Some(Parked { key, .. }) = &parked {
                let event = Event::TurnParked { session: key.clone(), why: why.clone() };
                let events: Vec<TaggedEvent> = costs.iter().cloned().chain([event.into()]).collect();
                events::add(conn, Some(TurnId(inbox.0)), &pen.lines(&events))?;
            }
            Ok(parked)
        })
        .await
    }

    /// Returns everything that is parked, in the order in which it arrived.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn parked(&self) -> Result<Vec<Parked>, StoreError> {
        self.read(|conn| parked(conn, Wanted::All)).await
    }

    /// Returns the parked questions whose authors were not told.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn parked_untold(&self) -> Result<Vec<Parked>, StoreError> {
        self.read(|conn| parked(conn, Wanted::Untold)).await
    }

    /// Returns a question as it is parked now; `None` where it is not parked.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn parked_question(&self, inbox: InboxId) -> Result<Option<Parked>, StoreError> {
        self.read(move |conn| Ok(parked(conn, Wanted::One(inbox))?.pop())).await
    }

    /// Returns those parts of a parked question's answer that were to remove placeholders, as far as they can be read.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn unsent_withdrawals(&self, inbox: InboxId) -> Result<Vec<Withdrawal>, StoreError> {
        self.read(move |conn| {
            let mut statement = conn.prepare_cached(UNSENT_PARTS)?;
            let mut rows = statement.query([inbox.0])?;
            let mut withdrawals = Vec::new();
            while let Some(row) = rows.next()? {
                let how = row.get_ref(2)?.as_str().ok().and_then(|how| serde_json::from_str::<How>(how).ok());
                if let Some(How { purpose: Purpose::Withdraw(withdrawal), .. }) = how {
                    withdrawals.push(withdrawal);
                }
            }
            Ok(withdrawals)
        })
        .await
    }

    /// Notes in advance that the person may be told: after a crash, or where nobody knows whether they were, the notice
    /// is looked for.
    ///
    /// # Errors
    /// Nothing was changed.
    pub async fn parked_may_be_told(&self, inbox: InboxId) -> Result<(), StoreError> {
        self.write(move |conn| Ok(conn.prepare_cached(MAY_TELL)?.run([inbox.0])?)).await
    }

    /// Notes that the person was told.
    ///
    /// # Errors
    /// Nothing was changed.
    pub async fn parked_told(&self, inbox: InboxId) -> Result<(), StoreError> {
        self.write(move |conn| Ok(conn.prepare_cached(TOLD)?.run([inbox.0])?)).await
    }

    /// Reopens parked questions, of one conversation or of all, for whoever calls this to work on: they are open work
    /// again. What was asked on the terminal of another host that is there is left to that one. One whose conversation
    /// cannot be read stays parked. Writes a ledger event.
    ///
    /// # Errors
    /// Nothing was changed.
    pub async fn unpark(&self, key: Option<&SessionKey>, now_ms: i64) -> Result<Unparked, StoreError> {
        self.open_again(intake::unpark, key, now_ms).await
    }

    /// As [`unpark`](Store::unpark), for a command, which leaves the work to whoever finds it: that nobody works on
    /// these questions is no fault, and open work says so.
    ///
    /// # Errors
    /// Nothing was changed.
    pub async fn reopen(&self, key: Option<&SessionKey>, now_ms: i64) -> Result<Unparked, StoreError> {
        self.open_again(|conn, inbox| intake::reopen(conn, inbox).map(|()| false), key, now_ms).await
    }

    async fn open_again(
        &self,
        how: fn(&Connection, InboxId) -> Result<bool, Fault>,
        key: Option<&SessionKey>,
        now_ms: i64,
    ) -> Result<Unparked, StoreError> {
        let (wanted, pen) = (key.cloned(), self.pen(now_ms));
        self.write_with_events(move |conn| {
            let mut unparked = Unparked::default();
            for Parked { inbox, key, ts, .. } in parked(conn, Wanted::All)? {
                match key.parse::<SessionKey>() {
                    Ok(key) if wanted.as_ref().is_none_or(|wanted| *wanted == key) => match how(conn, inbox)? {
                        true => unparked.pending.push(Pending { inbox, key, ts }),
                        false => unparked.left += 1,
                    },
                    Ok(_) => {}
                    Err(_) => unparked.unreadable += usize::from(wanted.is_none()),
                }
            }
            let messages = unparked.messages();
            if messages > 0 {
                let session = wanted.as_ref().map(SessionKey::to_string);
                pen.write(conn, None, Event::TurnRetried { session, messages })?;
            }
            Ok(unparked)
        })
        .await
    }
}

/// Which parked questions to read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    All,
    Untold,
    One(InboxId),
}

fn parked(conn: &Connection, wanted: Wanted) -> Result<Vec<Parked>, Fault> {
    let one = if let Wanted::One(inbox) = wanted { Some(inbox.0) } else { None };
    let mut statement = conn.prepare_cached(PARKED)?;
    let rows = statement.query_map(params![one, i64::from(wanted == Wanted::Untold)], read)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Reads a row however damaged it is, so that it is always listed.
fn read(row: Row<'_>) -> sql::Result<Parked> {
    let text = |column: usize| -> sql::Result<Option<String>> {
        Ok(row
            .get_ref(column)?
            .as_bytes_or_null()
            .ok()
            .flatten()
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned()))
    };
    Ok(Parked {
        inbox: InboxId(row.get(0)?),
        key: text(1)?.unwrap_or_default(),
        ts: text(2)?.unwrap_or_default(),
        at_ms: row.get(3)?,
        why: text(4)?.unwrap_or_default(),
        told: row.get(5)?,
        message: text(6)?.and_then(|json| serde_json::from_str::<Inbound>(&json).ok()),
        placeholder: text(7)?,
        answered: row.get(8)?,
        event_ids: text(9)?.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default(),
        maybe_told: row.get(10)?,
        streamed: text(11)?,
    })
}
