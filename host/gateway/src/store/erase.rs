//! Erasing: a deleted message is erased from everything that stores its text. A few fixed words replace the text,
//! with the same id and role, so that a window keeps its turns and its tool pairs.
//!
//! The text is erased from the archive, the search index, the live window including what a policy had reduced it
//! to, the texts of receipts, proposals that wait for a verdict, and what was handed on to an asker or said about a
//! question that waits. What others have made of it stays: the answer to a question, what was looked up for it, notes
//! of a case, atoms, and summaries, from which it cannot be removed; those are counted.

use pmk_core::{Block, Message, Origin, Role};

use super::{
    archive,
    changes::next_revision,
    codec::{self, NewMessage},
    error::Fault,
    handed_on, images,
    intake::SET_MESSAGE,
    receipt,
    sql::{Connection, OptionalExtension, params},
};
use crate::{
    chat::{Inbound, Thread},
    ids::{SessionId, TurnId},
};

pub(super) const QUESTION: &str =
    "SELECT id, blocks FROM message WHERE turn_id = ?1 AND role = 'user' AND origin = 'user'
     ORDER BY id LIMIT 1";
pub(super) const ATTACHED: &str =
    "SELECT id FROM message WHERE turn_id = ?1 AND role = 'user' AND origin = 'attachment' ORDER BY id";
pub(super) const LAST: &str = "SELECT id, role, blocks FROM message WHERE turn_id = ?1 ORDER BY id DESC LIMIT 1";
pub(super) const PIECE_OF: &str = "SELECT session_id, answered_with, piece_start, piece_bytes FROM turn WHERE id = ?1";
pub(super) const ERASE: &str = "UPDATE message SET blocks = ?2, tokens = ?3, chars = ?4, erased_at = ?5 WHERE id = ?1";
pub(super) const ERASE_LIVE: &str = "UPDATE live SET replacement = NULL, tokens = ?3, chars = ?4
     WHERE session_id = ?1 AND message_id = ?2";
pub(super) const SHORTEN_PIECE: &str = "UPDATE turn SET piece_bytes = ?2 WHERE id = ?1";
pub(super) const MOVE_PIECES: &str =
    "UPDATE turn SET piece_start = piece_start + ?3 WHERE answered_with = ?1 AND piece_start > ?2";
pub(super) const FORGET_READING: &str = "UPDATE turn SET reading = NULL WHERE id = ?1";
pub(super) const FORGET_EDITED: &str = "UPDATE inbox SET edited = NULL, attached = NULL WHERE id = ?1";
pub(super) const FORGET_PROPOSAL: &str = "DELETE FROM proposal WHERE turn_id = ?1 AND confirmed_by IS NULL";
/// Unfinished messages that have what was said before in their thread, and whether they are being answered.
pub(super) const WITH_THREAD: &str = "SELECT i.id, i.ts, i.message, i.edited_at,
         i.parked_at IS NULL AND t.id IS NOT NULL AND t.answered_at IS NULL
     FROM inbox i LEFT JOIN turn t ON t.id = i.id
     WHERE i.session_id = ?1 AND i.message IS NOT NULL AND i.message LIKE '%\"thread\":{%'";
/// A turn that is under way and may just have read what was written up to then in its thread: where the window holds
/// anything of that, it is not read, and what was written after the question never is.
pub(super) const MAY_READ: &str = "SELECT 1 FROM inbox i JOIN turn t ON t.id = i.id
     WHERE i.session_id = ?1 AND i.ts > ?2
       AND i.message IS NOT NULL AND i.parked_at IS NULL AND t.answered_at IS NULL
       AND NOT EXISTS (SELECT 1 FROM live l JOIN message m ON m.id = l.message_id
                       WHERE l.session_id = ?1 AND m.origin NOT IN ('seed', 'seed-ack'))";
const IS_LIVE: &str = "SELECT 1 FROM live WHERE session_id = ?1 AND message_id = ?2";
const SUMMARIES_SINCE: &str = "SELECT count(*) FROM message WHERE session_id = ?1 AND id > ?2 AND origin = 'summary'";

/// A message that was erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Erased {
    /// Summaries that may have been made from it and may still contain it.
    pub summaries: u32,
}

/// Returns the stored text of a question, and the id of that message.
pub(super) fn question_text(conn: &Connection, turn: TurnId) -> Result<Option<(i64, String)>, Fault> {
    let mut statement = conn.prepare_cached(QUESTION)?;
    let mut rows = statement.query([turn.0])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let id: i64 = row.get(0)?;
    let blocks: Vec<Block> = codec::from_json(row.get_ref(1)?, &format!("message {id}"))?;
    Ok(Some((id, pmk_core::message::plain_text(&blocks))))
}

/// Returns whether the archive has a question, or where its text was.
pub(super) fn is_in_archive(conn: &Connection, turn: TurnId) -> Result<bool, Fault> {
    let answered_with = conn.prepare_cached(PIECE_OF)?.query_row([turn.0], |row| row.get::<_, Option<i64>>(1));
    Ok(answered_with.optional()?.flatten().is_some() || question_text(conn, turn)?.is_some())
}

/// Erases what is stored of a question beside its text, whether it waits or was answered.
pub(super) fn beside(conn: &Connection, turn: TurnId) -> Result<(), Fault> {
    for forget in [FORGET_READING, FORGET_EDITED, FORGET_PROPOSAL, images::FORGET] {
        conn.prepare_cached(forget)?.run([turn.0])?;
    }
    handed_on::erase(conn, turn)
}

/// Erases an answered question, or its part of the text of several; `words` replace it. `None`: no text of it is
/// stored. The message is added to `gone`: its [texts in receipts](receipt::erase_texts_of) are erased together with
/// those of others.
pub(super) fn question(
    conn: &Connection,
    turn: TurnId,
    (words, now_ms): (&str, i64),
    gone: &mut Vec<i64>,
) -> Result<Option<Erased>, Fault> {
    let piece = conn
        .prepare_cached(PIECE_OF)?
        .query_row([turn.0], |row| {
            let piece: (Option<i64>, Option<u32>, Option<u32>) = (row.get(1)?, row.get(2)?, row.get(3)?);
            Ok((SessionId(row.get(0)?), piece))
        })
        .optional()?;
    let Some((session, piece)) = piece else { return Ok(None) };
    let (Some(with), Some(start), Some(bytes)) = piece else {
        let Some((id, _)) = question_text(conn, turn)? else { return Ok(None) };
        gone.push(id);
        return replace(conn, session, id, Message::user(words), now_ms).map(Some);
    };
    let (with, start, bytes) = (TurnId(with), start as usize, bytes as usize);
    let Some((id, text)) = question_text(conn, with)? else { return Ok(None) };
    let (Some(before), Some(after)) = (text.get(..start), text.get(start + bytes..)) else {
        return Err(Fault::Damaged(format!("cannot tell which part of message {id} belongs to turn {turn}")));
    };
    let left = Message::user(format!("{before}{words}{after}"));
    conn.prepare_cached(SHORTEN_PIECE)?.run(params![turn.0, words.len() as i64])?;
    let by = words.len() as i64 - bytes as i64;
    conn.prepare_cached(MOVE_PIECES)?.run(params![with.0, start as i64, by])?;
    gone.push(id);
    replace(conn, session, id, left, now_ms).map(Some)
}

/// Erases the attachments of a question; where its text is part of a text of several, the attachments of all of
/// them. Adds these messages to `gone`, as [`question`] does. `None`: there are none.
pub(super) fn attached(
    conn: &Connection,
    turn: TurnId,
    (words, now_ms): (&str, i64),
    gone: &mut Vec<i64>,
) -> Result<Option<Erased>, Fault> {
    let place = conn.prepare_cached(PIECE_OF)?.query_row([turn.0], |row| {
        let (with, start): (Option<i64>, Option<u32>) = (row.get(1)?, row.get(2)?);
        Ok((SessionId(row.get(0)?), with.filter(|_| start.is_some()).map_or(turn, TurnId)))
    });
    let Some((session, with)) = place.optional()? else { return Ok(None) };
    let mut statement = conn.prepare_cached(ATTACHED)?;
    let ids = statement.query_map([with.0], |row| row.get(0))?.collect::<Result<Vec<i64>, _>>()?;
    let mut erased: Option<Erased> = None;
    for id in ids {
        gone.push(id);
        let by = Message::text(Role::User, Origin::Attachment, words);
        erased = erased.max(Some(replace(conn, session, id, by, now_ms)?));
    }
    Ok(erased)
}

/// Erases the answer of a turn; `None` where there is none.
pub(super) fn answer(conn: &Connection, turn: TurnId, words: &str, now_ms: i64) -> Result<Option<Erased>, Fault> {
    let last = {
        let mut statement = conn.prepare_cached(LAST)?;
        let mut rows = statement.query([turn.0])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let (id, role): (i64, String) = (row.get(0)?, row.get(1)?);
        let blocks: Vec<Block> = codec::from_json(row.get_ref(2)?, &format!("message {id}"))?;
        let is_answer = role == "assistant" && blocks.iter().all(|block| matches!(block, Block::Text { .. }));
        is_answer.then_some(id)
    };
    let Some(id) = last else { return Ok(None) };
    let session = conn.prepare_cached(PIECE_OF)?.query_row([turn.0], |row| row.get(0)).map(SessionId)?;
    receipt::erase_texts_of(conn, session, &[id])?;
    replace(conn, session, id, Message::assistant(words), now_ms).map(Some)
}

/// Erases what was said in a thread before the gateway was mentioned there, once the message of that `ts` was deleted:
/// what receipts of its conversation refer to, and what unfinished messages that came later have of it; for these it is
/// read anew. Returns whether a turn that is under way is begun anew, because it may have read it.
pub(super) fn background(conn: &Connection, session: SessionId, ts: &str) -> Result<bool, Fault> {
    receipt::erase_background(conn, session)?;
    if threads(conn, session, |asked_at, thread| asked_at > ts && thread.take().is_some())? {
        return Ok(true);
    }
    // It may not have stored it yet.
    let may_read = conn.prepare_cached(MAY_READ)?.exists(params![session.0, ts])?;
    if may_read {
        next_revision(conn, session)?;
    }
    Ok(may_read)
}

/// Erases from the threads that unfinished messages of a conversation have. `erase` is given each with the ts of its
/// message, and returns whether it has erased anything. A turn that is under way has its thread in memory, and is begun
/// anew. Returns whether one is.
pub(super) fn threads(
    conn: &Connection,
    session: SessionId,
    erase: impl Fn(&str, &mut Option<Thread>) -> bool,
) -> Result<bool, Fault> {
    let mut statement = conn.prepare_cached(WITH_THREAD)?;
    let mut rows = statement.query([session.0])?;
    let (mut found, mut anew) = (Vec::new(), false);
    while let Some(row) = rows.next()? {
        let (id, ts, message): (i64, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let (edited_at, is_under_way): (Option<String>, bool) = (row.get(3)?, row.get(4)?);
        // One that cannot be read is parked when its turn begins.
        let Ok(mut message) = serde_json::from_str::<Inbound>(&message) else { continue };
        if erase(&ts, &mut message.attached.thread) {
            anew |= is_under_way;
            found.push((id, message, edited_at));
        }
    }
    for (id, message, edited_at) in found {
        conn.prepare_cached(SET_MESSAGE)?.run(params![id, codec::to_json(&message), edited_at])?;
    }
    if anew {
        next_revision(conn, session)?;
    }
    Ok(anew)
}

/// Replaces a stored message everywhere but in texts of receipts.
fn replace(conn: &Connection, session: SessionId, id: i64, by: Message, now_ms: i64) -> Result<Erased, Fault> {
    debug_assert!(matches!(
        (by.role, by.origin),
        (Role::User, Origin::User | Origin::Attachment) | (Role::Assistant, Origin::Assistant)
    ));
    let NewMessage { blocks, tokens, chars, terms, .. } = NewMessage::from(&by);
    conn.prepare_cached(ERASE)?.run(params![id, blocks, tokens, chars, now_ms])?;
    conn.prepare_cached(ERASE_LIVE)?.run(params![session.0, id, tokens, chars])?;
    archive::index_anew(conn, session, id, &terms)?;
    let is_live = conn.prepare_cached(IS_LIVE)?.exists(params![session.0, id])?;
    let summaries = match is_live {
        // A message that is still in the window was not summarized.
        true => 0,
        false => conn.prepare_cached(SUMMARIES_SINCE)?.query_row(params![session.0, id], |row| row.get(0))?,
    };
    Ok(Erased { summaries })
}
