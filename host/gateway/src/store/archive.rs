//! The archive of a conversation: its messages by number, and the search index. Both are written in the transaction
//! that records a message, so that a search sees a turn as soon as it is finished.

mod index;
mod reader;

pub(super) use index::{prepare, purge};
pub use reader::StoreArchive;
#[cfg(test)]
pub(super) use reader::{LENGTHS, READ};

use pmk_search::terms_of_message;

use super::{
    codec::{self, NewMessage},
    error::Fault,
    receipt,
    sql::{Connection, params},
};
use crate::ids::{SessionId, TurnId};

pub(super) const NUMBER: &str = "INSERT INTO archive (session_id, number, message_id, terms)
     VALUES (?1, (SELECT coalesce(max(number) + 1, 0) FROM archive WHERE session_id = ?1), ?2, ?3)";
pub(super) const ADD_MESSAGE: &str =
    "INSERT INTO message (session_id, turn_id, role, origin, blocks, tokens, chars, created_at)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
/// On PostgreSQL, the three inserts in one statement.
const RECORD: &str = "WITH stored AS (
         INSERT INTO message (id, session_id, turn_id, role, origin, blocks, tokens, chars, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)),
     numbered AS (
         INSERT INTO archive (session_id, number, message_id, terms)
         VALUES (?2, (SELECT coalesce(max(number) + 1, 0) FROM archive WHERE session_id = ?2), ?1, ?10))
     INSERT INTO said (message_id, session_id, terms) SELECT ?1, ?2, string_to_array(?11, ' ') WHERE ?11 <> ''";
pub(super) const OF_TURN: &str = "SELECT id, session_id FROM message WHERE turn_id = ?1";
pub(super) const FORGET: &str = "DELETE FROM archive WHERE message_id = ?1";
pub(super) const FORGET_MESSAGES: &str = "DELETE FROM message WHERE turn_id = ?1";
pub(super) const COUNT_TERMS: &str = "UPDATE archive SET terms = ?2 WHERE message_id = ?1";
pub(super) const LENGTH: &str = "SELECT coalesce(max(number) + 1, 0) FROM archive WHERE session_id = ?1";
const EVERY_MESSAGE: &str = "SELECT id, role, origin, blocks, NULL, tokens, chars, session_id FROM message ORDER BY id";

/// Returns how many messages of a conversation are recorded.
pub(super) fn length(conn: &Connection, session: SessionId) -> Result<u32, Fault> {
    Ok(conn.prepare_cached(LENGTH)?.query_row([session.0], |row| row.get(0))?)
}

/// Stores a message, numbers it and indexes it. Returns its id.
pub(super) fn record(
    conn: &Connection,
    session: SessionId,
    turn: Option<TurnId>,
    message: &NewMessage,
    now_ms: i64,
) -> Result<i64, Fault> {
    let NewMessage { role, origin, blocks, tokens, chars, terms } = message;
    let turn = turn.map(|turn| turn.0);
    let Connection::Postgres(database) = conn else {
        let values = params![session.0, turn, role, origin, blocks, tokens, chars, now_ms];
        let id = conn.prepare_cached(ADD_MESSAGE)?.insert(values)?;
        add(conn, session, id, message)?;
        return Ok(id);
    };
    let id = database.next_id("message")?;
    let (count, terms) = (count(terms), index::joined(session, terms.iter().map(String::as_str)));
    let values = params![id, session.0, turn, role, origin, blocks, tokens, chars, now_ms, count, terms];
    conn.prepare_cached(RECORD)?.run(values)?;
    Ok(id)
}

fn count(terms: &[String]) -> u32 {
    u32::try_from(terms.len()).unwrap_or(u32::MAX)
}

/// Numbers and indexes a message that was just stored.
pub(super) fn add(conn: &Connection, session: SessionId, id: i64, message: &NewMessage) -> Result<(), Fault> {
    enter(conn, session, id, &message.terms)
}

fn enter(conn: &Connection, session: SessionId, id: i64, terms: &[String]) -> Result<(), Fault> {
    conn.prepare_cached(NUMBER)?.run(params![session.0, id, count(terms)])?;
    if terms.is_empty() {
        return Ok(());
    }
    index::add(conn, session, id, terms)
}

/// Indexes a stored message again after its text was changed.
pub(super) fn index_anew(conn: &Connection, session: SessionId, id: i64, terms: &[String]) -> Result<(), Fault> {
    index::remove(conn, id)?;
    conn.prepare_cached(COUNT_TERMS)?.run(params![id, count(terms)])?;
    if terms.is_empty() {
        return Ok(());
    }
    index::add(conn, session, id, terms)
}

/// Indexes a copied message by these terms; an earlier attempt may have indexed it already.
pub(super) fn index_again(conn: &Connection, session: SessionId, id: i64, terms: &[String]) -> Result<(), Fault> {
    index::remove(conn, id)?;
    match terms {
        [] => Ok(()),
        terms => index::add(conn, session, id, terms),
    }
}

/// Removes what an attempt at a turn has recorded: from archive and index first, because the ids of its messages will
/// be used again. What receipts of other turns quote of it goes as well: its question may be erased later, when nothing
/// leads to those texts any more.
pub(super) fn forget(conn: &Connection, turn: TurnId) -> Result<(), Fault> {
    let mut of_turn = conn.prepare_cached(OF_TURN)?;
    let found = of_turn.query_map([turn.0], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let found: Vec<(i64, i64)> = found.collect::<Result<_, _>>()?;
    let (ids, sessions): (Vec<_>, Vec<_>) = found.into_iter().unzip();
    for &id in &ids {
        forget_message(conn, id)?;
    }
    if let Some(&session) = sessions.first() {
        receipt::erase_texts_of(conn, SessionId(session), &ids)?;
    }
    Ok(conn.prepare_cached(FORGET_MESSAGES)?.run([turn.0])?)
}

/// Removes a message from archive and index.
pub(super) fn forget_message(conn: &Connection, id: i64) -> Result<(), Fault> {
    index::remove(conn, id)?;
    Ok(conn.prepare_cached(FORGET)?.run([id])?)
}

/// Numbers and indexes all messages stored before there was a searchable archive. Reads one message at a time.
pub(super) fn backfill(conn: &Connection) -> Result<(), Fault> {
    prepare(conn)?;
    let mut every = conn.prepare_cached(EVERY_MESSAGE)?;
    let mut rows = every.query([])?;
    while let Some(row) = rows.next()? {
        let (id, session) = (row.get(0)?, SessionId(row.get("session_id")?));
        let terms = match codec::entry(row) {
            Ok(entry) => terms_of_message(&entry.message),
            // Its readers get the error; it must not prevent opening the whole store.
            Err(Fault::Damaged(what)) => {
                tracing::warn!("searches will not find a message: {what}");
                vec![]
            }
            Err(fault) => return Err(fault),
        };
        enter(conn, session, id, &terms)?;
    }
    Ok(())
}
