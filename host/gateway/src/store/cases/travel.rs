//! Exports and imports cases with the conversations of their channel. Two cases are the same if title and opening
//! time are equal: numbers are specific to a store.

use std::collections::HashMap;

use pmk_core::{Place, SessionKey};

use super::{ADD_MESSAGE, ADD_NOTE, IS_KNOWN, of_channel, open_in, stored_spelling};
use crate::{
    case::{Case, CaseId, Note},
    ids::{GREATEST_KEPT, SessionId},
    store::{
        error::Fault,
        intake::front_name,
        sql::{Connection, OptionalExtension, params},
    },
};

pub(in crate::store) const OF_SESSION: &str = "SELECT c.message_id, c.user, c.at
     FROM case_message c JOIN message m ON m.id = c.message_id
     WHERE c.case_id = ?1 AND m.session_id = ?2 ORDER BY c.at, c.message_id";
pub(in crate::store) const IS_TAKEN: &str = "SELECT 1 FROM case_file WHERE id = ?1";
pub(in crate::store) const RESTORE: &str =
    "INSERT INTO case_file (front, channel, title, opened_by, opened_at, closed_by, closed_at)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
pub(in crate::store) const RESTORE_AS: &str =
    "INSERT INTO case_file (front, channel, title, opened_by, opened_at, closed_by, closed_at, id)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
/// The same message from an earlier import.
pub(in crate::store) const IS_THERE: &str = "SELECT 1 FROM case_message c JOIN message m ON m.id = c.message_id
     WHERE c.case_id = ?1 AND m.session_id = ?2 AND c.at = ?3 AND c.user IS NOT DISTINCT FROM ?4 AND m.blocks = ?5";
pub(in crate::store) const NOTE_SOURCE: &str = "UPDATE case_note SET message_id = ?4
     WHERE case_id = ?1 AND kind = ?2 AND spelling = ?3 AND message_id IS NULL";

/// A case of the channel that a conversation is in.
#[derive(Clone, Debug, PartialEq)]
pub struct DumpedCase {
    /// Its number in the store it comes from.
    pub number: i64,
    pub title: String,
    pub opened_by: Option<String>,
    pub opened_at_ms: i64,
    /// When it was closed, and by whom.
    pub closed: Option<(i64, Option<String>)>,
    /// Each with its time, and the index of the message of the dump that it comes from, if any.
    pub notes: Vec<(Note, i64, Option<usize>)>,
    /// Messages of the dump that belong to it, with their authors and times.
    pub messages: Vec<(usize, Option<String>, i64)>,
}

/// Returns all cases of the channel that a conversation is in. `index` finds a message of the dump.
pub(in crate::store) fn dump(
    conn: &Connection,
    key: &SessionKey,
    session: SessionId,
    index: impl Fn(i64) -> Option<usize>,
) -> Result<Vec<DumpedCase>, Fault> {
    let Place::Channel(channel) = &key.place else { return Ok(vec![]) };
    let mut dumped = Vec::new();
    for Case { id, title, opened_by, opened_at_ms, closed, notes, .. } in of_channel(conn, key.front, channel)? {
        let notes = notes.into_iter().map(|kept| (kept.note, kept.at_ms, kept.message.and_then(&index))).collect();
        let mut statement = conn.prepare_cached(OF_SESSION)?;
        let mut rows = statement.query(params![id.0, session.0])?;
        let mut messages = Vec::new();
        while let Some(row) = rows.next()? {
            let message = row.get(0)?;
            let at = index(message).ok_or_else(|| {
                Fault::Damaged(format!("message {message} of case {id} belongs to another conversation"))
            })?;
            messages.push((at, row.get(1)?, row.get(2)?));
        }
        dumped.push(DumpedCase { number: id.0, title, opened_by, opened_at_ms, closed, notes, messages });
    }
    Ok(dumped)
}

/// The stored messages of a conversation and their blocks, by their index in the dump.
pub(in crate::store) struct Stored<'a> {
    pub session: SessionId,
    pub messages: HashMap<usize, (i64, &'a str)>,
    pub now_ms: i64,
}

/// Imports cases, or what is new in them. Returns how many that were open are now closed, because their channel has
/// another open one.
pub(in crate::store) fn restore(
    conn: &Connection,
    key: &SessionKey,
    cases: &[DumpedCase],
    stored: &Stored<'_>,
) -> Result<usize, Fault> {
    let Place::Channel(channel) = &key.place else { return Ok(0) };
    let mut closed_now = 0;
    for case in cases {
        let identity = params![front_name(key.front), channel, case.title, case.opened_at_ms];
        let known: Option<i64> = conn.prepare_cached(IS_KNOWN)?.query_row(identity, |row| row.get(0)).optional()?;
        let id = match known {
            Some(id) => CaseId(id),
            None => {
                let is_in_the_way = case.closed.is_none() && open_in(conn, key.front, channel)?.is_some();
                closed_now += usize::from(is_in_the_way);
                let closed = if is_in_the_way { Some((stored.now_ms, None)) } else { case.closed.clone() };
                insert(conn, key, channel, case, closed)?
            }
        };
        add(conn, id, case, stored)?;
    }
    Ok(closed_now)
}

fn insert(
    conn: &Connection,
    key: &SessionKey,
    channel: &str,
    case: &DumpedCase,
    closed: Option<(i64, Option<String>)>,
) -> Result<CaseId, Fault> {
    let is_taken = conn.prepare_cached(IS_TAKEN)?.exists([case.number])?;
    let (closed_at, closed_by) = closed.unzip();
    let (front, closed_by) = (front_name(key.front), closed_by.flatten());
    let DumpedCase { number, title, opened_by, opened_at_ms, .. } = case;
    if !(1..=GREATEST_KEPT).contains(number) || is_taken {
        let values = params![front, channel, title, opened_by, opened_at_ms, closed_by, closed_at];
        return Ok(CaseId(conn.prepare_cached(RESTORE)?.insert(values)?));
    }
    let values = params![front, channel, title, opened_by, opened_at_ms, closed_by, closed_at, number];
    conn.prepare_cached(RESTORE_AS)?.run(values)?;
    conn.follow_ids("case_file")?;
    Ok(CaseId(*number))
}

fn add(conn: &Connection, id: CaseId, case: &DumpedCase, stored: &Stored<'_>) -> Result<(), Fault> {
    for (index, user, at_ms) in &case.messages {
        let Some((message, blocks)) = stored.messages.get(index) else { continue };
        let there = params![id.0, stored.session.0, at_ms, user, blocks];
        if !conn.prepare_cached(IS_THERE)?.exists(there)? {
            conn.prepare_cached(ADD_MESSAGE)?.run(params![message, id.0, user, at_ms])?;
        }
    }
    for (note, at_ms, index) in &case.notes {
        let source = index.and_then(|index| stored.messages.get(&index)).map(|(message, _)| message);
        let (kind, spelling) = (note.kind.name(), stored_spelling(conn, id, note)?);
        let added = conn.prepare_cached(ADD_NOTE)?.execute(params![id.0, kind, spelling, note.text, at_ms, source])?;
        if let (0, Some(source)) = (added, source) {
            // Its answer is in another conversation of the channel than the one from which the note was imported
            // first.
            conn.prepare_cached(NOTE_SOURCE)?.run(params![id.0, kind, spelling, source])?;
        }
    }
    Ok(())
}
