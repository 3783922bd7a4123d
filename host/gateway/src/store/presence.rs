//! What is to be done after an outage: people to notify, conversations to read back.

use std::collections::{HashMap, HashSet};

use pmk_core::{FrontName, Place, SessionKey};

use super::{
    Store, StoreError, codec,
    error::Fault,
    escalations, intake, moment, restored,
    sql::{Connection, OptionalExtension, params},
};
use crate::{chat::Inbound, ids::InboxId, ledger::Event};

pub(super) const OWE: &str = "INSERT INTO outage (id, since, until, reason) VALUES (1, ?1, ?2, ?3)
     ON CONFLICT (id) DO UPDATE SET since = CASE WHEN outage.since < excluded.since THEN outage.since
            WHEN outage.since IS NOT NULL THEN excluded.since END, until = excluded.until, reason = excluded.reason";
/// Where an outage that people are to be told of is already stored, that one is enough.
pub(super) const OWE_NO_NEWS: &str = "INSERT INTO outage (id, since, until, reason) VALUES (1, ?1, ?2, ?3)
     ON CONFLICT (id) DO NOTHING";
pub(super) const OWED: &str = "SELECT since, until, reason FROM outage WHERE id = 1";
pub(super) const SETTLED: &str = "DELETE FROM outage WHERE id = 1";
/// Conversations that were inactive since then are not read back, even if that was requested before.
pub(super) const FORGET_READING: &str =
    "UPDATE session SET read_from = NULL WHERE read_from IS NOT NULL AND active_at < ?1";
/// Requests reading from the last message that was known when the gateway stopped, and from at most a day before it
/// stopped: what was answered earlier cannot be known. An earlier request stands. Where nobody has written since an
/// import, what was answered is not known at all: what ran before had answered the questions of the last day.
const TO_READ: &str = "UPDATE session SET read_from = coalesce((SELECT max(i.ts) FROM inbox i
            WHERE i.session_id = session.id AND i.ts > ?1 AND (CAST(?2 AS TEXT) IS NULL OR i.ts <= ?2)), ?1)
     WHERE read_from IS NULL AND active_at >= ?3 AND channel IS NOT NULL AND key LIKE 'slack:%'";
/// Direct messages first, and of either kind the most recently active first.
macro_rules! of_unread {
    () => {
        "FROM session WHERE read_from IS NOT NULL ORDER BY (key LIKE 'slack:dm:%') DESC, active_at DESC, id"
    };
}
pub(super) const UNREAD: &str = concat!("SELECT key, channel, read_from, active_at ", of_unread!());
pub(super) const LEAVE_OUT: &str = concat!(
    "UPDATE session SET read_from = NULL WHERE id IN (SELECT id ",
    of_unread!(),
    " LIMIT 9223372036854775807 OFFSET ?1)"
);
pub(super) const READ_BACK: &str = "UPDATE session SET read_from = NULL WHERE key = ?1";
pub(super) const IS_KNOWN: &str = "SELECT 1 FROM session s JOIN inbox i ON i.session_id = s.id
     WHERE s.key = ?1 AND i.ts = ?2";
const TALKING: &str = "SELECT key, channel FROM session WHERE active_at >= ?1 AND created_at <= ?2
     ORDER BY active_at DESC";
pub(super) const LAST_TOLD: &str = "SELECT message FROM told WHERE listener = ?1 AND at > ?2 AND at < ?3";
pub(super) const CLAIM_TELLING: &str = "INSERT INTO told (listener, at) VALUES (?1, ?2)
     ON CONFLICT (listener) DO UPDATE SET at = excluded.at, message = NULL";
pub(super) const TOLD: &str = "UPDATE told SET message = ?2 WHERE listener = ?1";
pub(super) const UNTOLD: &str = "DELETE FROM told WHERE listener = ?1";

/// How long ago a conversation that is read back may have been active.
const READ_BACK_ACTIVE_MS: i64 = 30 * 24 * 60 * 60 * 1_000;

/// How far back messages are read: a day, in seconds, as Slack's timestamps count.
const READ_BACK_MOST_S: i64 = 24 * 60 * 60;

/// Messages may have arrived out of order, so this many seconds before the last known message are read again. Slack
/// repeats its deliveries within that time.
const OVERLAP_S: i64 = 6 * 60;

/// An outage that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outage {
    /// When the gateway was last alive, milliseconds since the epoch, where that is known.
    pub since_ms: Option<i64>,
    pub until_ms: i64,
    /// What people are shown of it.
    pub announce: Option<Announce>,
    /// Whether conversations are to be read back.
    pub read: bool,
}

/// What people are shown of an outage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announce {
    /// Why the gateway was away.
    pub reason: String,
    /// Whether people get a notice; otherwise only the notice that the gateway is away is removed.
    pub is_news: bool,
}

/// An outage that people are still to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnannouncedOutage {
    pub since_ms: Option<i64>,
    pub until_ms: i64,
    pub reason: String,
}

/// A conversation that is to be read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissedConversation {
    pub key: SessionKey,
    pub channel: String,
    /// The `ts` of the message after which reading begins.
    pub after: String,
    /// Whether that is stored. Otherwise it is read because another conversation of its place is due, which comes after it.
    pub is_due: bool,
}

impl MissedConversation {
    /// Returns the `ts` after which reading goes on in a conversation that was read at this time, milliseconds since
    /// the epoch.
    pub fn reads_on_after(read_ms: i64) -> String {
        ts(read_ms / 1_000 - OVERLAP_S)
    }
}

/// What is to be read back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unread {
    pub conversations: Vec<MissedConversation>,
    /// How many of the conversations that are due they are, without the places and threads that nothing is stored of.
    pub due: usize,
    /// Whether more are due.
    pub is_cut: bool,
}

/// A person who talks with the gateway by direct message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DmUser {
    pub user: String,
    /// The channel of the direct message itself, where it is known.
    pub channel: Option<String>,
}

/// How a person may be notified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Telling {
    /// By a new message, which counts as sent from now on.
    New,
    /// By editing this message, because it is recent.
    InPlaceOf(String),
    /// Not at all: there was a recent message, but its id is not known.
    Not,
}

impl Store {
    /// Stores what is to be done after an outage; returns what people are to be told now, if anything. An earlier
    /// outage that they were not told of is included.
    ///
    /// # Errors
    /// Nothing was stored.
    pub async fn came_back(&self, outage: Outage) -> Result<Option<UnannouncedOutage>, StoreError> {
        let Outage { since_ms, until_ms, announce, read } = outage;
        self.write(move |conn| {
            if let Some(Announce { reason, is_news }) = &announce {
                let owe = if *is_news { OWE } else { OWE_NO_NEWS };
                conn.prepare_cached(owe)?.run(params![since_ms, until_ms, reason])?;
            }
            if read {
                let gone_s = since_ms.unwrap_or(until_ms) / 1_000;
                let least = ts(gone_s - READ_BACK_MOST_S);
                let active_since = until_ms.saturating_sub(READ_BACK_ACTIVE_MS);
                conn.prepare_cached(FORGET_READING)?.run([active_since])?;
                let known_by = since_ms.map(|_| ts(gone_s + 1));
                conn.prepare_cached(TO_READ)?.run(params![least, known_by, active_since])?;
            }
            owed(conn)
        })
        .await
    }

    /// Returns the outage that people are still to be told of.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn owed(&self) -> Result<Option<UnannouncedOutage>, StoreError> {
        self.read(owed).await
    }

    /// Notes that everybody was told of the outage.
    ///
    /// # Errors
    /// Nothing was changed.
    pub async fn settled(&self) -> Result<(), StoreError> {
        self.write(|conn| Ok(conn.prepare_cached(SETTLED)?.run([])?)).await
    }

    /// Returns at most so many conversations that are to be read back: direct messages first, and of either kind the most
    /// recently active first. Of a store that was restored, nothing is read back that the gateway knew before that.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn unread(&self, most: usize) -> Result<Unread, StoreError> {
        let path = Store::path(&self.shared.place.home);
        self.read(move |conn| {
            let mut statement = conn.prepare_cached(UNREAD)?;
            let mut rows = statement.query([])?;
            let mut due = Vec::new();
            while let Some(row) = rows.next()? {
                let after: String = row.get(2)?;
                let conversation = MissedConversation {
                    key: codec::key(row.get_ref(0)?)?,
                    channel: row.get(1)?,
                    after: earlier(&after),
                    is_due: true,
                };
                due.push((conversation, row.get(3)?));
            }
            if !due.is_empty()
                && matches!(conn, Connection::Sqlite(_))
                && let Some(alive_ms) = restored::alive_ms(&path)
            {
                let known_until = ts(alive_ms / 1_000);
                for (conversation, _) in &mut due {
                    let after = &mut conversation.after;
                    *after = std::mem::take(after).max(known_until.clone());
                }
            }
            with_places(conn, due, most)
        })
        .await
    }

    /// Notes that of the conversations that are due, all but the first ones are not read back; returns how many these
    /// are. Writes a ledger event.
    ///
    /// # Errors
    /// Nothing was changed.
    pub async fn leave_out(&self, but: usize, now_ms: i64) -> Result<usize, StoreError> {
        let (but, pen) = (i64::try_from(but).unwrap_or(i64::MAX), self.pen(now_ms));
        self.write_with_events(move |conn| {
            let left_out = conn.prepare_cached(LEAVE_OUT)?.execute([but])?;
            if left_out > 0 {
                let event = Event::GatewayCaughtUp { conversations: 0, messages: 0, unreadable: 0, cut: 0, left_out };
                pen.write(conn, None, event)?;
            }
            Ok(left_out)
        })
        .await
    }

    /// Notes that a conversation was read back, or never will be.
    ///
    /// # Errors
    /// Nothing was changed.
    pub async fn read_back(&self, key: &SessionKey) -> Result<(), StoreError> {
        let key = key.to_string();
        self.write(move |conn| Ok(conn.prepare_cached(READ_BACK)?.run([&key])?)).await
    }

    /// As [`accept`](Store::accept), for a message that was found by reading back: it may have arrived longer ago
    /// than event ids are remembered.
    ///
    /// # Errors
    /// Nothing was stored.
    pub async fn accept_missed(&self, inbound: &Inbound, now_ms: i64) -> Result<Option<InboxId>, StoreError> {
        let inbound = inbound.clone();
        let (json, pen) = (codec::to_json(&inbound), self.pen(now_ms));
        self.write(move |conn| match is_known(conn, &inbound)? {
            true => Ok(None),
            false => intake::accept(conn, pen, (&inbound, &json), now_ms),
        })
        .await
    }

    /// Returns the direct messages of a front that were active since `since_ms` and existed by `by_ms`, the most
    /// recently active first. A person may occur more than once.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn talking_since(&self, front: FrontName, since_ms: i64, by_ms: i64) -> Result<Vec<DmUser>, StoreError> {
        self.read(move |conn| {
            let mut statement = conn.prepare_cached(TALKING)?;
            let mut rows = statement.query([since_ms, by_ms])?;
            let mut talks = Vec::new();
            while let Some(row) = rows.next()? {
                let key = codec::key(row.get_ref(0)?)?;
                if let (true, Place::Dm(user)) = (key.front == front, key.place) {
                    talks.push(DmUser { user, channel: row.get(1)? });
                }
            }
            Ok(talks)
        })
        .await
    }

    /// Returns the message that a person was last notified by, where that was since `since_ms` and its id is known.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn last_told(&self, listener: &str, since_ms: i64) -> Result<Option<String>, StoreError> {
        let listener = listener.to_owned();
        self.read(move |conn| Ok(last_told(conn, &listener, (since_ms, i64::MAX))?.flatten())).await
    }

    /// Claims the right to notify a person: by a new message only where there was none for `peace_ms`. On a
    /// database that hosts share, the database's clock decides.
    ///
    /// # Errors
    /// Nothing was stored: the person must not be notified.
    pub async fn claim_telling(&self, listener: &str, now_ms: i64, peace_ms: i64) -> Result<Telling, StoreError> {
        let listener = listener.to_owned();
        self.write(move |conn| {
            let now_ms = moment::of(conn, now_ms)?;
            // A time further ahead is from before the clock was set back.
            let of_late = (now_ms.saturating_sub(peace_ms), now_ms.saturating_add(peace_ms));
            Ok(match last_told(conn, &listener, of_late)? {
                Some(Some(message)) => Telling::InPlaceOf(message),
                Some(None) => Telling::Not,
                None => {
                    conn.prepare_cached(CLAIM_TELLING)?.run(params![listener, now_ms])?;
                    Telling::New
                }
            })
        })
        .await
    }

    /// Stores the message that a person was notified by.
    ///
    /// # Errors
    /// Nothing was changed.
    pub async fn told(&self, listener: &str, message: Option<String>) -> Result<(), StoreError> {
        let listener = listener.to_owned();
        self.write(move |conn| Ok(conn.prepare_cached(TOLD)?.run(params![listener, message])?)).await
    }

    /// Withdraws the claim: the person was not notified after all.
    ///
    /// # Errors
    /// Nothing was changed.
    pub async fn untold(&self, listener: &str) -> Result<(), StoreError> {
        let listener = listener.to_owned();
        self.write(move |conn| Ok(conn.prepare_cached(UNTOLD)?.run([&listener])?)).await
    }
}

/// Whether a message of this conversation and time has arrived, however long ago.
pub(super) fn is_known(conn: &Connection, Inbound { key, ts, .. }: &Inbound) -> Result<bool, Fault> {
    Ok(!ts.is_empty() && conn.prepare_cached(IS_KNOWN)?.exists(params![key.to_string(), ts])?)
}

/// Returns whether a person was notified in between, and by which message, as far as that is known.
fn last_told(
    conn: &Connection,
    listener: &str,
    (after_ms, before_ms): (i64, i64),
) -> Result<Option<Option<String>>, Fault> {
    let mut statement = conn.prepare_cached(LAST_TOLD)?;
    Ok(statement.query_row(params![listener, after_ms, before_ms], |row| row.get(0)).optional()?)
}

/// Returns what is due, up to so many, with the places of the threads among it: a new thread there is in none of the
/// known ones. When a place was active does not tell whether it is read by itself: it may be so only since the outage,
/// or its channel may not be known. So one may be read once more, which harms nobody. Likewise the threads in which
/// contacts were asked for as long as anything is read back, and have not written yet. Each conversation that is due
/// comes with when it was last active.
fn with_places(conn: &Connection, due: Vec<(MissedConversation, i64)>, most: usize) -> Result<Unread, Fault> {
    let known: HashSet<SessionKey> = due.iter().map(|(conversation, _)| conversation.key.clone()).collect();
    let place_of = |key: &SessionKey| SessionKey { thread: None, ..key.clone() };
    // What is read with several of them is read for the one that has waited longest.
    let mut earliest: HashMap<SessionKey, String> = HashMap::new();
    for (MissedConversation { key, after, .. }, _) in &due {
        let first = earliest.entry(place_of(key)).or_insert_with(|| after.clone());
        if after < first {
            first.clone_from(after);
        }
    }
    let mut looked_at = HashSet::new();
    let mut unread = Unread::default();
    for (conversation, active_at) in due {
        let place = place_of(&conversation.key);
        // Before that with which the request to read is stored.
        let mut together = Vec::new();
        if looked_at.insert(place.clone()) {
            let after = earliest[&place].clone();
            let beside = MissedConversation { is_due: false, after, ..conversation.clone() };
            if !known.contains(&place) {
                together.push(MissedConversation { key: place.clone(), ..beside.clone() });
            }
            let since = active_at.saturating_sub(READ_BACK_ACTIVE_MS);
            for thread in escalations::threads(conn, &place, since)? {
                let key = SessionKey { thread: Some(thread), ..place.clone() };
                if !known.contains(&key) {
                    together.push(MissedConversation { key, ..beside.clone() });
                }
            }
        }
        together.push(conversation);
        if unread.conversations.len() + together.len() > most {
            unread.is_cut = true;
            break;
        }
        unread.conversations.extend(together);
        unread.due += 1;
    }
    Ok(unread)
}

fn owed(conn: &Connection) -> Result<Option<UnannouncedOutage>, Fault> {
    let mut statement = conn.prepare_cached(OWED)?;
    let owed = statement.query_row([], |row| {
        Ok(UnannouncedOutage { since_ms: row.get(0)?, until_ms: row.get(1)?, reason: row.get(2)? })
    });
    Ok(owed.optional()?)
}

/// Returns a second as a Slack timestamp.
fn ts(seconds: i64) -> String {
    format!("{seconds}.000000")
}

/// Returns the `ts` from which reading begins, a little before the last known message.
fn earlier(last: &str) -> String {
    match last.split_once('.').and_then(|(seconds, _)| seconds.parse::<i64>().ok()) {
        Some(seconds) => ts(seconds - OVERLAP_S),
        None => last.to_owned(),
    }
}
