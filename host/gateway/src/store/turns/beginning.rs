//! Begins a turn, or continues it after a crash.

use std::sync::Arc;

use pmk_core::{Place, SessionKey};

use super::delivering::{FIRST_SENT, unsent_parts};
use crate::{
    case::CaseId,
    chat::Inbound,
    ids::{InboxId, SessionId, TurnId},
    store::{
        Answered, BeginOutcome, Begun, CalledOff, Hold, Live, OpenTurn, Store, StoreError, Verbosity, again, archive,
        cases,
        changes::{NOT_STARTED, SET_STARTED},
        codec,
        error::Fault,
        escalations, experiments, lease, proposals,
        sql::{self, Connection, FromSql, Invalidation, OptionalExtension, PrefetchedRows, Row, ValueRef, params},
        window,
        windows::{self, Entries, Windows},
        writer::Prefetch,
    },
};

/// Defines the items that are read of a question and their indices, so that neither is without the other.
macro_rules! columns {
    ($($column:ident = $item:literal,)*) => {
        /// The columns of [`find_question`] by index: looking each up by name takes as long as running a statement.
        #[derive(Clone, Copy)]
        enum Column {
            $($column,)*
            Elsewhere,
        }

        /// All items but the last one, each followed by a comma.
        macro_rules! items {
            () => {
                concat!($($item, ", ",)*)
            };
        }
    };
}
columns! {
    Message = "i.message",
    ReceivedAt = "i.received_at",
    SessionId = "i.session_id",
    LeaseUntil = "s.lease_until",
    DroppedTurns = "s.dropped_turns",
    Marker = "s.marker",
    Verbose = "s.verbose",
    StartedAt = "t.started_at",
    Placeholder = "t.placeholder",
    AnsweredAt = "t.answered_at",
    Report = "t.report",
    Policy = "t.policy",
    Experiment = "t.experiment",
    Arm = "t.arm",
    Reading = "t.reading",
    CaseId = "t.case_id",
    CalledOff = "i.called_off",
    Revision = "s.revision",
    Placed = "COALESCE(t.may_have_placed, 0)",
    Streamed = "COALESCE(t.may_have_streamed, 0)",
    AgainOf = "i.again_of",
    WaitsHere = "i.channel IS NULL OR EXISTS (SELECT 1 FROM escalation e WHERE e.front IN ('slack', 'console')
        AND e.channel = i.channel AND e.closed_at IS NULL)",
    AskedApart = "i.\"user\" IS NULL OR EXISTS (SELECT 1 FROM asked_apart p WHERE p.contact = i.\"user\")",
    Sizes = "s.sizes",
    Archived = "(SELECT coalesce(max(a.number) + 1, 0) FROM archive a WHERE a.session_id = i.session_id)",
}
macro_rules! find_question {
    ($elsewhere:literal) => {
        concat!(
            "SELECT ",
            items!(),
            $elsewhere,
            " FROM inbox i JOIN session s ON s.id = i.session_id LEFT JOIN turn t ON t.id = i.id
             WHERE i.id = ?1 AND i.parked_at IS NULL"
        )
    };
}
/// No other host can be working on it.
pub(in crate::store) const FIND_QUESTION: &str = find_question!("false");
/// Another host works on the conversation; or nobody does, and an earlier question in it comes first, whichever
/// host has accepted that.
const FIND_QUESTION_OF_HOST: &str = find_question!(
    "CASE WHEN s.lease_owner = ?2 THEN false
          WHEN s.lease_until IS NULL AND EXISTS (SELECT 1 FROM host h WHERE h.owner = s.lease_owner) THEN true
          ELSE EXISTS (SELECT 1 FROM inbox o WHERE o.session_id = i.session_id AND o.message IS NOT NULL
                           AND o.parked_at IS NULL AND (o.ts < i.ts OR (o.ts = i.ts AND o.id < i.id))
                           AND (s.key LIKE 'slack:%' OR o.home = ?3)) END"
);
pub(in crate::store) const START: &str =
    "INSERT INTO turn (id, session_id, started_at, case_id, may_have_placed) VALUES (?1, ?2, ?3, ?4, ?5)";

impl Store {
    /// Begins a question's turn, or continues it after a crash, and leases the conversation to this `run` until
    /// [`finish`](Store::finish). `hold` says whether another turn is under way there, and whether a placeholder may
    /// be shown at once. `of` is the conversation that it is expected in: a number that a database has lost, as in a
    /// failover, it gives to another message.
    ///
    /// Calling it again for a turn under way is harmless. The caller ensures that only one turn of a conversation
    /// is under way at a time.
    ///
    /// # Errors
    /// The store cannot be used, or contains something that cannot be read.
    pub async fn begin(
        &self,
        inbox: InboxId,
        of: Option<&SessionKey>,
        hold: Hold,
        now_ms: i64,
    ) -> Result<BeginOutcome, StoreError> {
        let (owner, windows, of) = (self.owner(), self.windows(), of.cloned());
        let work = move |conn: &Connection| {
            conn.has_moved(|| Invalidation::Shown(inbox.0));
            let (begun, glimpse) = begin(conn, (inbox, of.as_ref()), hold, &owner, now_ms)?;
            let known = match &begun {
                BeginOutcome::Ask(open) => find_window(conn, &windows, open)?,
                _ => (None, None),
            };
            Ok((begun, glimpse.found()?, known))
        };
        let asks = self.owner();
        let prefetch = Prefetch::asks(move |conn| {
            window::short(conn, inbox)?;
            question(conn, inbox, &asks).map(drop)
        });
        let (begun, live, (place, known)) = self.write_prefetched(prefetch, work).await?;
        if let BeginOutcome::Deliver(answered) = &begun {
            // Another host may have sent some parts since the answer was recorded here.
            self.shared.undelivered.take(answered.turn);
        }
        let BeginOutcome::Ask(mut open) = begun else { return Ok(begun) };
        if let Some(known) = known {
            open.live.entries = known.to_vec();
            return Ok(BeginOutcome::Ask(open));
        }
        // Read outside of the transaction, so that no commit waits for a long window. The lease keeps the window
        // unchanged.
        let (session, readers) = (open.session, &self.shared.readers);
        let short = match live {
            // Where a question is asked again, its earlier turn has left the window by now.
            Some(live) if !again::is_again(&open.inbound) => readers.look(|| window::found(live))?,
            _ => readers.read_here(|conn| window::read_short(conn, session))?,
        };
        open.live.entries = match short {
            Some(entries) => {
                if let Some(place) = place {
                    self.shared.windows.put(place, Arc::new(entries.clone()));
                }
                entries
            }
            None => self.read(move |conn| window::read(conn, session)).await?,
        };
        Ok(BeginOutcome::Ask(open))
    }
}

/// Returns the live window of a turn that begins, where it is cached.
fn find_window(
    conn: &Connection,
    windows: &Windows,
    OpenTurn { inbound, session, live, .. }: &OpenTurn,
) -> Result<(Option<windows::Place>, Option<Entries>), Fault> {
    if again::is_again(inbound) {
        // The earlier turn has left it.
        windows.forget(*session);
    }
    windows.find(conn, *session, live.revision)
}

/// Looks up a question that may begin.
fn question<'c>(conn: &'c Connection, inbox: InboxId, owner: &str) -> Result<PrefetchedRows<'c>, Fault> {
    Ok(match conn {
        Connection::Postgres(host) if host.link().host() != 0 => {
            conn.prefetch(FIND_QUESTION_OF_HOST, params![inbox.0, owner, host.link().home()])
        }
        _ => conn.prefetch(FIND_QUESTION, params![inbox.0]),
    }?)
}

/// A row of [`find_question`].
#[derive(Clone, Copy)]
struct Question<'r>(Row<'r>);

impl<'r> Question<'r> {
    fn get<T: FromSql>(self, column: Column) -> sql::Result<T> {
        self.0.get(column as usize)
    }

    fn get_ref(self, column: Column) -> sql::Result<ValueRef<'r>> {
        self.0.get_ref(column as usize)
    }

    /// What an earlier attempt may have shown.
    fn begun_with(self) -> sql::Result<Begun> {
        Ok(Begun { placeholder: self.get(Column::Placed)?, stream: self.get(Column::Streamed)? })
    }
}

/// Does all of `begin` except for the entries of the live window, which were requested with it.
fn begin<'c>(
    conn: &'c Connection,
    (inbox, of): (InboxId, Option<&SessionKey>),
    hold: Hold,
    owner: &str,
    now_ms: i64,
) -> Result<(BeginOutcome, PrefetchedRows<'c>), Fault> {
    let live = window::short(conn, inbox)?;
    let mut asked = question(conn, inbox, owner)?;
    let mut rows = asked.query()?;
    let Some(row) = rows.next()?.map(Question) else { return Ok((BeginOutcome::Done, live)) };
    let inbound: Inbound = match row.get_ref(Column::Message)? {
        ValueRef::Null => return Ok((BeginOutcome::Done, live)),
        message => codec::from_json(message, &format!("question {inbox}"))?,
    };
    if of.is_some_and(|of| *of != inbound.key) {
        return Ok((BeginOutcome::Done, live));
    }
    if lease::keeps_out_a_run(conn, row.get(Column::LeaseUntil)?, now_ms)? {
        return Ok((BeginOutcome::Busy, live));
    }
    if row.get(Column::Elsewhere)? {
        return Ok((BeginOutcome::Elsewhere, live));
    }
    let (turn, session) = (TurnId(inbox.0), SessionId(row.get(Column::SessionId)?));
    if conn.has_moved(|| Invalidation::Conversation(session.0)) {
        // In the same transaction an older question was stored, or the previous turn was answered or has finished:
        // another host may be next, and the window has changed.
        return begin(conn, (inbox, of), hold, owner, now_ms);
    }
    let begun = match row.get(Column::AnsweredAt)? {
        Some(answered_at_ms) => {
            BeginOutcome::Deliver(answered_of(conn, row, (turn, session), inbound, answered_at_ms)?)
        }
        None => BeginOutcome::Ask(open_of(conn, row, (turn, session), inbound, hold, now_ms)?),
    };
    lease::take(conn, session, owner, None)?;
    Ok((begun, live))
}

/// Returns the answer of a question, and what is still to be delivered of it.
fn answered_of(
    conn: &Connection,
    row: Question<'_>,
    (turn, session): (TurnId, SessionId),
    inbound: Inbound,
    answered_at_ms: i64,
) -> Result<Answered, Fault> {
    let reply_ts = conn.prepare_cached(FIRST_SENT)?.query_row([turn.0], |row| row.get(0)).optional()?.flatten();
    Ok(Answered {
        turn,
        session,
        inbound,
        received_at_ms: row.get(Column::ReceivedAt)?,
        answered_at_ms,
        tags: experiments::tags(
            row.get_ref(Column::Policy)?,
            row.get_ref(Column::Experiment)?,
            row.get_ref(Column::Arm)?,
        )?,
        placeholder: row.get(Column::Placeholder)?,
        reply_ts,
        parts: unsent_parts(conn, turn)?,
        resumed: true,
        is_streamed: row.begun_with()?.stream,
        report: codec::from_json(row.get_ref(Column::Report)?, &format!("the report of turn {turn}"))?,
    })
}

/// Starts the turn of a question, or forgets what an earlier attempt at it has archived.
fn open_of(
    conn: &Connection,
    row: Question<'_>,
    (turn, session): (TurnId, SessionId),
    inbound: Inbound,
    hold: Hold,
    now_ms: i64,
) -> Result<OpenTurn, Fault> {
    let begun_with = row.begun_with()?;
    let started_at: Option<i64> = row.get(Column::StartedAt)?;
    let is_begun = started_at.is_some();
    let mut may_place = begun_with.placeholder;
    let mut case = row.get::<Option<i64>>(Column::CaseId)?.map(CaseId);
    if is_begun {
        archive::forget(conn, turn)?;
    } else {
        if let Place::Channel(channel) = &inbound.key.place {
            case = cases::open_in(conn, inbound.key.front, channel)?;
        }
        may_place = hold == Hold::Showing;
        conn.prepare_cached(START)?.run(params![turn.0, session.0, now_ms, case.map(|case| case.0), may_place])?;
    }
    let begun_at_ms = started_at.filter(|at| *at != NOT_STARTED);
    if is_begun && begun_at_ms.is_none() {
        conn.prepare_cached(SET_STARTED)?.run([turn.0, now_ms])?;
    }
    let chance = escalations::Chance { here: row.get(Column::WaitsHere)?, apart: row.get(Column::AskedApart)? };
    let concern = escalations::concern(conn, turn, &inbound, chance)?.map(Box::new);
    let reading = match row.get_ref(Column::Reading)? {
        ValueRef::Null => None,
        reading => Some(Box::new(codec::from_json(reading, &format!("the reading of turn {turn}"))?)),
    };
    let confirms = proposals::confirmed(conn, &inbound)?.map(Box::new);
    let live = Live {
        entries: Vec::new(),
        dropped_turns: row.get(Column::DroppedTurns)?,
        marker_template: row.get(Column::Marker)?,
        revision: row.get(Column::Revision)?,
    };
    let called_off: Option<String> = row.get(Column::CalledOff)?;
    let called_off = called_off.as_deref().and_then(CalledOff::from_name);
    if called_off.is_none()
        && hold != Hold::Along
        && let Some(again_of) = row.get(Column::AgainOf)?
    {
        again::leave_live_of(conn, session, again_of)?;
    }
    let sizes: Option<String> = row.get(Column::Sizes)?;
    let verbosity: Option<String> = row.get(Column::Verbose)?;
    Ok(OpenTurn {
        turn,
        session,
        inbound,
        received_at_ms: row.get(Column::ReceivedAt)?,
        placeholder: row.get(Column::Placeholder)?,
        begun_with,
        may_place,
        verbosity: verbosity.and_then(|name| Verbosity::from_name(&name)).unwrap_or_default(),
        resumed: is_begun,
        begun_at_ms,
        concern,
        reading,
        confirms,
        case,
        called_off,
        live,
        // Sizes that cannot be read are learnt anew.
        sizes: sizes.and_then(|sizes| serde_json::from_str(&sizes).ok()).unwrap_or_default(),
        // Messages of an earlier attempt were just deleted.
        archived: if is_begun { archive::length(conn, session)? } else { row.get(Column::Archived)? },
    })
}
