//! The inbox: what people wrote, until it is finished.

use std::{collections::HashSet, sync::Arc, time::Duration};

use pmk_core::{FrontName, SessionKey};

use super::{
    Store, StoreError, codec,
    early::{self, Early, EarlyEdit},
    erase,
    error::Fault,
    events::{EventWriter, of_home},
    handed_on, images, sessions,
    sql::{Connection, Invalidation, OptionalExtension, PrefetchedRows, ToSql, ValueRef, params},
    writer::Prefetch,
};
use crate::chat::Inbound;
use crate::ids::{InboxId, SessionId, TurnId};
use crate::ledger::Event;

/// How long a redelivered message is recognised.
pub const SEEN_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// Every so many accepted messages, expired event ids are deleted: more than those messages add, so that the table
/// shrinks, and few enough that nobody has to wait for it.
const CLEARS: i64 = 16;
const CLEARED_AT_ONCE: i64 = 8 * CLEARS;

pub(super) const SET_MESSAGE: &str = "UPDATE inbox SET message = ?2, edited_at = ?3 WHERE id = ?1";
pub(super) const CALL_OFF: &str = "UPDATE inbox SET called_off = ?2 WHERE id = ?1";
/// A Slack conversation may be continued by any host; what was said on another host's terminal is answered there.
macro_rules! may_go_on_here {
    () => {
        "(s.key LIKE 'slack:%' OR i.home = ?2 OR i.home IS NULL OR NOT EXISTS (SELECT 1 FROM host h WHERE h.name = i.home))"
    };
}
pub(super) const UNPARK: &str =
    "UPDATE inbox SET parked_at = NULL, parked_why = NULL, parked_told = 0 WHERE id = ?1 AND parked_at IS NOT NULL";
/// The host that reopens a question works on it, if it may: otherwise the one that has accepted it would find it lying.
const UNPARK_TO_HOME: &str = concat!(
    "UPDATE inbox AS i SET parked_at = NULL, parked_why = NULL, parked_told = 0, home = ?2 FROM session s
     WHERE i.id = ?1 AND i.parked_at IS NOT NULL AND s.id = i.session_id AND ",
    may_go_on_here!()
);
/// Why it was parked stays, and tells it from what nobody ever worked on.
pub(super) const REOPEN: &str =
    "UPDATE inbox SET parked_at = NULL, parked_told = 0 WHERE id = ?1 AND parked_at IS NOT NULL";
pub(super) const EXPIRED_SEEN: &str = "SELECT front, key FROM seen WHERE at <= ?1 ORDER BY at LIMIT ?2";
/// Hosts go by the clock that they share, so that one whose clock is ahead forgets nothing that others have just seen.
const FORGET_EXPIRED_OF_HOSTS: &str = "DELETE FROM seen WHERE (front, key) IN
     (SELECT front, key FROM seen WHERE at <= (SELECT pmk_now()) - 86400000 ORDER BY at LIMIT ?1)";
pub(super) const FORGET_SEEN: &str = "DELETE FROM seen WHERE front = ?1 AND key = ?2";
pub(super) const IS_SEEN: &str = "SELECT 1 FROM seen WHERE front = ?1 AND key = ?2 AND at > ?3";
const IS_SEEN_OF_HOSTS: &str =
    "SELECT 1 FROM seen WHERE front = ?1 AND key = ?2 AND at > (SELECT pmk_now()) - 86400000";
pub(super) const SEE: &str = "INSERT INTO seen (front, key, at) VALUES (?1, ?2, ?3)
     ON CONFLICT (front, key) DO UPDATE SET at = excluded.at";
const SEE_OF_HOSTS: &str = "INSERT INTO seen (front, key, at) VALUES (?1, ?2, pmk_now())
     ON CONFLICT (front, key) DO UPDATE SET at = excluded.at";
/// A message that was for the bot only if it was about a question that waits, and to which nothing was said.
pub(super) const ASIDE: &str = "SELECT message FROM inbox WHERE id = ?1 AND message LIKE '%\"if_awaited\":true%'
     AND NOT EXISTS (SELECT 1 FROM outbox WHERE turn_id = ?1)";
pub(super) const FORGET_ASIDE: &str = "UPDATE inbox SET attached = NULL, edited = NULL, called_off = ?2 WHERE id = ?1";
pub(super) const OPEN_SESSION: &str =
    "INSERT INTO session (key, created_at, active_at, channel, is_group) VALUES (?1, ?2, ?2, ?3, ?4)";
/// The age of a conversation counts by the clock that all hosts share.
const OPEN_SESSION_OF_HOSTS: &str =
    "INSERT INTO session (key, created_at, active_at, channel, is_group) VALUES (?1, ?2, pmk_now(), ?3, ?4)";
pub(super) const ENTER_SESSION: &str = "UPDATE session SET active_at = ?4, channel = coalesce(?2, channel), is_group = coalesce(?3, is_group) WHERE id = ?1";
const ENTER_SESSION_OF_HOSTS: &str = "UPDATE session SET active_at = pmk_now(), channel = coalesce(?2, channel), is_group = coalesce(?3, is_group) WHERE id = ?1";
/// Of a mention Slack does not say that it is in a group, but of the same message, which comes as a duplicate.
const IS_GROUP: &str = "UPDATE session SET is_group = 1 WHERE key = ?1 AND is_group IS NULL";
pub(super) const KNOWS_GROUP: &str = "SELECT 1 FROM session WHERE channel = ?1 AND is_group IS NOT NULL LIMIT 1";
pub(super) const ENTER_INBOX: &str =
    "INSERT INTO inbox (session_id, event_id, received_at, ts, message, channel, \"user\", by_app, team)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
const ENTER_INBOX_OF_HOME: &str =
    "INSERT INTO inbox (session_id, event_id, received_at, ts, message, channel, \"user\", by_app, team, home)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";

macro_rules! open_work {
    ($of_home:literal) => {
        concat!(
            "SELECT i.id, s.key, i.ts, i.parked_why FROM inbox i JOIN session s ON s.id = i.session_id
             WHERE i.message IS NOT NULL AND i.parked_at IS NULL ",
            $of_home,
            " ORDER BY min(i.id) OVER (PARTITION BY i.session_id), i.ts, i.id"
        )
    };
}
macro_rules! open_in {
    ($of_home:expr) => {
        concat!(
            "SELECT i.id, i.ts FROM inbox i JOIN session s ON s.id = i.session_id
             WHERE s.key = ?1 AND i.message IS NOT NULL AND i.parked_at IS NULL ",
            $of_home,
            " ORDER BY i.ts, i.id"
        )
    };
}
pub(super) const OPEN_WORK: &str = open_work!("");
pub(super) const OPEN_IN: &str = open_in!("");

// Where several hosts share a database, each processes what it has accepted, and what no present host has.
const OPEN_WORK_OF_HOME: &str =
    open_work!("AND (i.home = ?1 OR i.home IS NULL OR NOT EXISTS (SELECT 1 FROM host h WHERE h.name = i.home))");
const OPEN_IN_OF_HOME: &str = open_in!(concat!("AND ", may_go_on_here!()));

/// Why a waiting question gets no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CalledOff {
    /// Its asker or an admin has stopped it.
    Stopped,
    /// The message was deleted.
    Deleted,
}

impl CalledOff {
    /// Returns its name, as stored.
    pub(super) const fn name(self) -> &'static str {
        match self {
            CalledOff::Stopped => "stopped",
            CalledOff::Deleted => "deleted",
        }
    }

    pub(super) fn from_name(name: &str) -> Option<CalledOff> {
        [CalledOff::Stopped, CalledOff::Deleted].into_iter().find(|off| off.name() == name)
    }
}

/// A question that is not finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    pub inbox: InboxId,
    pub key: SessionKey,
    /// Its position among the questions of its conversation, as [`Inbound::ts`].
    pub ts: String,
}

/// All questions that are neither finished nor parked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenWork {
    pub pending: Vec<Pending>,
    /// Questions whose conversation cannot be read, and why.
    pub unreadable: Vec<(InboxId, String)>,
    /// Those of the questions that a command reopened while it was not at work itself, see [`Store::reopen`].
    pub reopened: HashSet<InboxId>,
}

impl Store {
    /// Accepts a message into the inbox. `None`: it was accepted before, under its event id or one of its aliases,
    /// in the last 24 hours. When this returns, the message survives a crash.
    ///
    /// # Errors
    /// Nothing was stored: the message must not be acknowledged.
    pub async fn accept(&self, inbound: &Inbound, now_ms: i64) -> Result<Option<InboxId>, StoreError> {
        let inbound = Arc::new(inbound.clone());
        let (json, pen) = (codec::to_json(&*inbound), self.pen(now_ms));
        let asks = Arc::clone(&inbound);
        let prefetch = Prefetch::asks(move |conn| Asked::ask(conn, &asks, now_ms).map(drop));
        self.write_prefetched(prefetch, move |conn| accept(conn, pen, (&inbound, &json), now_ms)).await
    }

    /// Returns all questions that are neither finished nor parked: conversations in the order of their oldest
    /// question, the questions of each in the order they were written. A row that cannot be read does not affect
    /// the others. Of a database that hosts share, returns what this host has accepted, or a host that is gone.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn open_work(&self) -> Result<OpenWork, StoreError> {
        self.read(open_work).await
    }

    /// Returns the open work of one conversation.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn open_in(&self, key: &SessionKey) -> Result<Vec<Pending>, StoreError> {
        let key = key.clone();
        self.read(move |conn| {
            let mut statement = conn.prepare_cached(conn.either(OPEN_IN, OPEN_IN_OF_HOME))?;
            let mut rows = statement.query(&*of_home(conn, params![key.to_string()]))?;
            let mut pending = Vec::new();
            while let Some(row) = rows.next()? {
                // One that cannot be read is parked by the sweep.
                if let Ok(ts) = row.get_ref(1)?.as_str() {
                    pending.push(Pending { inbox: InboxId(row.get(0)?), key: key.clone(), ts: ts.to_owned() });
                }
            }
            Ok(pending)
        })
        .await
    }
}

pub(super) fn open_work(conn: &Connection) -> Result<OpenWork, Fault> {
    let mut statement = conn.prepare_cached(conn.either(OPEN_WORK, OPEN_WORK_OF_HOME))?;
    let mut rows = statement.query(&*of_home(conn, &[]))?;
    let mut work = OpenWork::default();
    while let Some(row) = rows.next()? {
        let inbox = InboxId(row.get(0)?);
        match codec::key(row.get_ref(1)?)
            .and_then(|key| Ok((key, codec::text(row.get_ref(2)?, "the place of a question")?)))
        {
            Ok((key, ts)) => {
                if !matches!(row.get_ref(3)?, ValueRef::Null) {
                    work.reopened.insert(inbox);
                }
                work.pending.push(Pending { inbox, key, ts: ts.to_owned() });
            }
            Err(Fault::Damaged(why)) => work.unreadable.push((inbox, why)),
            Err(fault) => return Err(fault),
        }
    }
    Ok(work)
}

pub(super) fn accept(
    conn: &Connection,
    pen: EventWriter,
    (inbound, json): (&Inbound, &str),
    now_ms: i64,
) -> Result<Option<InboxId>, Fault> {
    // Another operation of this transaction may have accepted the same message, or have created the conversation.
    conn.has_moved(|| Invalidation::Session(inbound.key.to_string()));
    for name in names(inbound) {
        conn.has_moved(|| Invalidation::Seen(name.clone()));
    }
    let Asked { seen, early, session } = Asked::ask(conn, inbound, now_ms)?;
    let mut was_seen = false;
    for mut seen in seen {
        was_seen |= seen.exists()?;
    }
    // A duplicate may have an alias that the first copy did not have.
    see(conn, inbound, now_ms)?;
    if was_seen {
        if inbound.in_group {
            conn.prepare_cached(IS_GROUP)?.run([inbound.key.to_string()])?;
        }
        return Ok(None);
    }
    let early = early::take(conn, inbound, early, now_ms)?;
    let is_deleted = matches!(early, Some(Early::Deleted));
    // The text of a message that was deleted before it arrived is not stored.
    let inbox = enter(conn, known(session)?, inbound, Some(json).filter(|_| !is_deleted), now_ms)?;
    if !is_deleted {
        handed_on::keep_images(conn, inbound, TurnId(inbox.0))?;
    }
    if inbox.0 % CLEARS == 0 {
        clear_seen(conn, expired(now_ms))?;
        early::clear(conn, now_ms)?;
    }
    match early {
        None => Ok(Some(inbox)),
        Some(Early::Changed { edited, stopped_by }) => {
            if let Some(EarlyEdit { text, at }) = edited {
                let edited = codec::to_json(&Inbound { text, ..inbound.clone() });
                conn.prepare_cached(SET_MESSAGE)?.run(params![inbox.0, edited, at])?;
            }
            if let Some(actor) = stopped_by {
                conn.prepare_cached(CALL_OFF)?.run(params![inbox.0, CalledOff::Stopped.name()])?;
                let session = inbound.key.to_string();
                pen.write(conn, Some(TurnId(inbox.0)), Event::TurnStopped { actor, session })?;
            }
            Ok(Some(inbox))
        }
        // There is nothing to answer.
        Some(Early::Deleted) => {
            conn.prepare_cached(CALL_OFF)?.run(params![inbox.0, CalledOff::Deleted.name()])?;
            Ok(None)
        }
    }
}

/// What is looked up for an arriving message.
struct Asked<'c> {
    seen: Vec<PrefetchedRows<'c>>,
    early: PrefetchedRows<'c>,
    session: PrefetchedRows<'c>,
}

impl<'c> Asked<'c> {
    fn ask(conn: &'c Connection, inbound: &Inbound, now_ms: i64) -> Result<Asked<'c>, Fault> {
        let (front, expired) = (front_name(inbound.key.front), expired(now_ms));
        let seen: Result<Vec<_>, _> = names(inbound)
            .map(|name| conn.prefetch(is_seen(conn), timed(conn, params![front, name, expired])))
            .collect();
        let early = early::look_up(conn, inbound)?;
        let session = conn.prefetch(sessions::FIND_SESSION, [inbound.key.to_string()])?;
        conn.prefetch_ids("inbox", 1)?;
        Ok(Asked { seen: seen?, early, session })
    }
}

fn is_seen(conn: &Connection) -> &'static str {
    conn.either(IS_SEEN, IS_SEEN_OF_HOSTS)
}

/// Returns the values of a statement that ends with a time, without that where the database knows it.
pub(super) fn timed<'v>(conn: &Connection, values: &'v [&'v dyn ToSql]) -> &'v [&'v dyn ToSql] {
    match (conn, values) {
        (Connection::Postgres(_), [values @ .., _]) => values,
        _ => values,
    }
}

/// Whether a message was accepted before, under any of its event ids.
pub(super) fn was_seen(conn: &Connection, inbound: &Inbound, now_ms: i64) -> Result<bool, Fault> {
    let (front, expired) = (front_name(inbound.key.front), expired(now_ms));
    let mut is_seen = conn.prepare_cached(is_seen(conn))?;
    for name in names(inbound) {
        if is_seen.exists(timed(conn, params![front, name, expired]))? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether an event id was accepted before, on any front.
pub(super) fn is_known(conn: &Connection, name: &str, now_ms: i64) -> Result<bool, Fault> {
    let mut is_seen = conn.prepare_cached(is_seen(conn))?;
    for front in [FrontName::Slack, FrontName::Console] {
        if is_seen.exists(timed(conn, params![front_name(front), name, expired(now_ms)]))? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Marks a message as accepted, under all of its event ids.
pub(super) fn see(conn: &Connection, inbound: &Inbound, now_ms: i64) -> Result<(), Fault> {
    let front = front_name(inbound.key.front);
    let mut see = conn.prepare_cached(conn.either(SEE, SEE_OF_HOSTS))?;
    for name in names(inbound) {
        conn.moved(|| Invalidation::Seen(name.clone()));
        see.run(timed(conn, params![front, name, now_ms]))?;
    }
    Ok(())
}

/// Returns a message that turned out not to be for the bot.
pub(super) fn aside(conn: &Connection, turn: TurnId) -> Result<Option<Inbound>, Fault> {
    let json: Option<String> = conn.prepare_cached(ASIDE)?.query_row([turn.0], |row| row.get(0)).optional()?;
    Ok(json.and_then(|json| serde_json::from_str(&json).ok()))
}

/// Keeps none of its words. It is new if an edit makes it a message to the bot.
pub(super) fn forget_aside(conn: &Connection, turn: TurnId, message: &Inbound) -> Result<(), Fault> {
    let front = front_name(message.key.front);
    for name in names(message) {
        conn.moved(|| Invalidation::Seen(name.clone()));
        conn.prepare_cached(FORGET_SEEN)?.run(params![front, name])?;
    }
    conn.prepare_cached(FORGET_ASIDE)?.run(params![turn.0, CalledOff::Deleted.name()])?;
    for forget in [erase::FORGET_READING, images::FORGET] {
        conn.prepare_cached(forget)?.run([turn.0])?;
    }
    Ok(())
}

/// Deletes some expired event ids. In SQLite one by one: see [`writer`](super::writer).
fn clear_seen(conn: &Connection, expired: i64) -> Result<(), Fault> {
    if let Connection::Postgres(_) = conn {
        return Ok(conn.prepare_cached(FORGET_EXPIRED_OF_HOSTS)?.run([CLEARED_AT_ONCE])?);
    }
    let mut find = conn.prepare_cached(EXPIRED_SEEN)?;
    let found = find.query_map(params![expired, CLEARED_AT_ONCE], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let found: Vec<(String, String)> = found.collect::<Result<_, _>>()?;
    for (front, name) in found {
        conn.prepare_cached(FORGET_SEEN)?.run([front, name])?;
    }
    Ok(())
}

/// Reopens a parked question for this host to work on, or for the host on whose terminal it was asked, which finds it.
/// Returns whether it is for this host.
pub(super) fn unpark(conn: &Connection, inbox: InboxId) -> Result<bool, Fault> {
    let mut unpark = conn.prepare_cached(conn.either(UNPARK, UNPARK_TO_HOME))?;
    let is_here = unpark.execute(&*of_home(conn, params![inbox.0]))? > 0;
    if !is_here {
        reopen(conn, inbox)?;
    }
    Ok(is_here)
}

/// Reopens a parked question for whoever finds it.
pub(super) fn reopen(conn: &Connection, inbox: InboxId) -> Result<(), Fault> {
    Ok(conn.prepare_cached(REOPEN)?.run([inbox.0])?)
}

fn names(inbound: &Inbound) -> impl Iterator<Item = &String> {
    std::iter::once(&inbound.event_id).chain(&inbound.aliases)
}

fn known(mut session: PrefetchedRows<'_>) -> Result<Option<SessionId>, Fault> {
    Ok(session.query_row(|row| row.get(0)).optional()?.map(SessionId))
}

/// Adds a message to the inbox, and creates its conversation if that is new; without JSON the message is already
/// finished.
pub(super) fn enter(
    conn: &Connection,
    known: Option<SessionId>,
    inbound: &Inbound,
    json: Option<&str>,
    now_ms: i64,
) -> Result<InboxId, Fault> {
    let Inbound { event_id, key, user, reply_to, team, ts, .. } = inbound;
    let (key, channel, is_group) = (key.to_string(), inbound.channel(), inbound.in_group.then_some(1_i64));
    let session = match known {
        Some(SessionId(session)) => {
            // It may be older than a question that begins in the same transaction.
            conn.moved(|| Invalidation::Conversation(session));
            match conn {
                Connection::Sqlite(_) => {
                    conn.prepare_cached(ENTER_SESSION)?.run(params![session, channel, is_group, now_ms])?;
                }
                Connection::Postgres(_) => {
                    conn.prepare_cached(ENTER_SESSION_OF_HOSTS)?.run(params![session, channel, is_group])?;
                }
            }
            session
        }
        None => {
            conn.moved(|| Invalidation::Session(key.clone()));
            let mut open = conn.prepare_cached(conn.either(OPEN_SESSION, OPEN_SESSION_OF_HOSTS))?;
            open.insert(params![key, now_ms, channel, is_group])?
        }
    };
    let by_app = inbound.by_app.then_some(1_i64);
    let values = params![session, event_id, now_ms, ts, json, reply_to.channel, user, by_app, team];
    let mut enter = conn.prepare_cached(conn.either(ENTER_INBOX, ENTER_INBOX_OF_HOME))?;
    Ok(InboxId(enter.insert(&*of_home(conn, values))?))
}

pub(super) fn expired(now_ms: i64) -> i64 {
    now_ms.saturating_sub(SEEN_FOR.as_millis() as i64)
}

pub(super) const fn front_name(front: FrontName) -> &'static str {
    match front {
        FrontName::Slack => "slack",
        FrontName::Console => "console",
    }
}
