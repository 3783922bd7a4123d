//! The live window: a list of references into the archive.

use std::sync::Arc;

use pmk_core::{CapVerdict, Entry, Language, Message, cap};

use super::{
    Store, StoreError, archive, changes,
    codec::{self, NewMessage, Shown, entry_columns},
    error::Fault,
    events,
    sql::{Connection, Found, PrefetchedRows, Rows, params},
};
use crate::ids::{InboxId, SessionId, TurnId};
use crate::ledger::TaggedEvent;

/// A window with at most so many entries and bytes is read in a fraction of a millisecond.
pub(super) const SHORT_ENTRIES: usize = 128;
pub(super) const SHORT_BYTES: usize = 128 << 10;
/// About the same size in characters, counting both the original and the reduced messages.
const SHORT_CHARS: i64 = 128 << 10;

pub(super) const READ_LIVE: &str = concat!(
    "SELECT ",
    entry_columns!(),
    ", l.position FROM live l JOIN message m ON m.id = l.message_id WHERE l.session_id = ?1 ORDER BY l.position"
);
/// The live window of a question's conversation, if it is short; no rows if it is long.
pub(super) const READ_SHORT: &str = concat!(
    "SELECT ",
    entry_columns!(),
    ", l.position FROM inbox i JOIN live l ON l.session_id = i.session_id JOIN message m ON m.id = l.message_id
     WHERE i.id = ?1
       AND CASE WHEN (SELECT count(*) FROM live c WHERE c.session_id = i.session_id) <= ?2
           THEN (SELECT coalesce(sum(w.chars + CASE WHEN w.replacement IS NULL THEN w.chars
                         ELSE (SELECT n.chars FROM message n WHERE n.id = w.message_id) END), 0)
                 FROM live w WHERE w.session_id = i.session_id) <= ?3 END
     ORDER BY l.position"
);
pub(super) const NEXT_POSITION: &str = "SELECT coalesce(max(position) + 1, 0) FROM live WHERE session_id = ?1";
pub(super) const ADD_LIVE: &str =
    "INSERT INTO live (session_id, position, message_id, replacement, tokens, chars) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
pub(super) const REMOVE_LIVE: &str = "DELETE FROM live WHERE session_id = ?1 AND position BETWEEN ?2 AND ?3";
pub(super) const REPLACE_LIVE: &str =
    "UPDATE live SET replacement = ?3, tokens = ?4, chars = ?5 WHERE session_id = ?1 AND position = ?2";
pub(super) const MARK_SESSION: &str = "UPDATE session SET dropped_turns = ?2, marker = ?3 WHERE id = ?1";

/// The live window: what the next request would hold, before the new message.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// Oldest first.
    pub entries: Vec<LiveEntry>,
    /// How many turns were dropped so far; the marker is made from it (guard rule 6).
    pub dropped_turns: u32,
    /// A policy's own text for the marker.
    pub marker_template: Option<String>,
    /// The revision of the conversation.
    pub revision: i64,
}

/// One message of the live window.
#[derive(Clone, Debug)]
pub struct LiveEntry {
    /// Its position: ascending, with gaps where messages were dropped.
    pub position: i64,
    pub entry: Entry,
}

/// What a plan does to the live window.
#[derive(Clone, Debug, Default)]
pub struct WindowEdit {
    /// Positions to remove.
    pub removed: Vec<i64>,
    /// Reduced messages that replace the ones at these positions.
    pub replaced: Vec<Replacement>,
    /// Turns dropped since the conversation began, including the ones dropped by this edit.
    pub dropped_turns_total: u32,
    /// A policy's own text for the marker.
    pub marker_template: Option<String>,
    /// The revision of the conversation that the edit was made for.
    pub revision: i64,
}

/// A reduced message and the position it takes.
#[derive(Clone, Debug)]
pub struct Replacement {
    pub position: i64,
    pub message: Arc<Message>,
    /// The estimate of `message`.
    pub tokens: u32,
    /// The length of `message` in characters.
    pub chars: u32,
}

/// A range of the live window that is replaced by a summary.
#[derive(Clone, Debug)]
pub struct FoldEdit {
    /// The first and last position to remove.
    pub first: i64,
    pub last: i64,
    /// What replaces them, at the first position.
    pub summary: Option<Message>,
    /// Turns that the window's marker then stands for.
    pub dropped_turns: u32,
    pub marker_template: Option<String>,
    /// The revision of the conversation that the edit was made for.
    pub revision: i64,
}

impl Store {
    /// Applies a plan to the live window; the archive is not changed. Committed before the model is called, so that
    /// a prune is never done twice. The ledger events are stored with it.
    ///
    /// # Errors
    /// [`StoreError::NoSuchPosition`] when a replaced message is not in the window, [`StoreError::Changed`] when people have
    /// changed the conversation meanwhile; nothing is changed then.
    pub async fn edit_live(
        &self,
        session: SessionId,
        edit: WindowEdit,
        events: Vec<TaggedEvent>,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let lines = self.pen(now_ms).lines(&events);
        let removed = ranges(edit.removed);
        let replaced: Vec<(Replacement, String)> = edit
            .replaced
            .into_iter()
            .map(|replacement| {
                let json = codec::to_exact_json(&*replacement.message);
                (replacement, json)
            })
            .collect();
        let windows = self.windows();
        let work = move |conn: &Connection| {
            changes::refuse_stale(conn, session, edit.revision)?;
            let known = windows.take(conn, session, edit.revision)?;
            let mut remove = conn.prepare_cached(REMOVE_LIVE)?;
            for (first, last) in &removed {
                remove.run(params![session.0, first, last])?;
            }
            let mut replace = conn.prepare_cached(REPLACE_LIVE)?;
            for (Replacement { position, tokens, chars, .. }, json) in &replaced {
                if replace.execute(params![session.0, position, json, tokens, chars])? == 0 {
                    return Err(StoreError::NoSuchPosition(*position).into());
                }
            }
            let marked = params![session.0, edit.dropped_turns_total, edit.marker_template];
            conn.prepare_cached(MARK_SESSION)?.run(marked)?;
            events::add(conn, None, &lines)?;
            Ok(known.map(|(place, entries)| (place, edited(&entries, &removed, &replaced))))
        };
        if let Some((place, entries)) = self.write_with_events(work).await? {
            self.shared.windows.put(place, Arc::new(entries));
        }
        Ok(())
    }

    /// Replaces a range of the live window by a summary, and stores the ledger events with it. The archive keeps
    /// the messages it stands for.
    ///
    /// # Errors
    /// Nothing was changed.
    pub async fn fold(
        &self,
        session: SessionId,
        edit: FoldEdit,
        events: Vec<TaggedEvent>,
        now_ms: i64,
    ) -> Result<Option<LiveEntry>, StoreError> {
        let lines = self.pen(now_ms).lines(&events);
        let windows = self.windows();
        self.write_with_events(move |conn| {
            windows.forget(session);
            let FoldEdit { first, last, summary, dropped_turns, marker_template, revision } = &edit;
            changes::refuse_stale(conn, session, *revision)?;
            events::add(conn, None, &lines)?;
            conn.prepare_cached(REMOVE_LIVE)?.run(params![session.0, first, last])?;
            conn.prepare_cached(MARK_SESSION)?.run(params![session.0, dropped_turns, marker_template])?;
            let Some(summary) = summary else { return Ok(None) };
            let id = archive::record(conn, session, None, &NewMessage::from(summary), now_ms)?;
            let entry = Entry::new(id, summary.clone());
            show(conn, session, *first, id, &Shown::from(&entry))?;
            Ok(Some(LiveEntry { position: *first, entry }))
        })
        .await
    }

    /// Begins a conversation with a seed pair: the seed is archived in full, and in the live window it is capped by
    /// the verdict, with its notice in that language. Returns the entries. `capped` is the ledger event of a capped text
    /// of this size in characters, before and after.
    ///
    /// # Errors
    /// Nothing was stored.
    pub async fn seed(
        &self,
        session: SessionId,
        [seed, acknowledgement]: [Message; 2],
        (verdict, language): (CapVerdict, Language),
        capped: impl Fn(usize, usize) -> TaggedEvent + Send + 'static,
        now_ms: i64,
    ) -> Result<Vec<LiveEntry>, StoreError> {
        let (windows, pen) = (self.windows(), self.pen(now_ms));
        self.write_with_events(move |conn| {
            windows.forget(session);
            let id = archive::record(conn, session, None, &NewMessage::from(&seed), now_ms)?;
            let kind = seed.origin.name();
            let (seed, sizes) = cap::message(id, seed.clone(), kind, &[verdict], language);
            let id = archive::record(conn, session, None, &NewMessage::from(&acknowledgement), now_ms)?;
            let entries = [seed, Entry::new(id, acknowledgement.clone())];
            let mut live = Vec::with_capacity(entries.len());
            for (position, entry) in (next_position(conn, session)?..).zip(entries) {
                show(conn, session, position, entry.id, &Shown::from(&entry))?;
                live.push(LiveEntry { position, entry });
            }
            for (before, after) in sizes {
                pen.write(conn, None, capped(before, after))?;
            }
            Ok(live)
        })
        .await
    }

    /// Archives what a turn has produced so far, before its end, so that the result of a search that took minutes
    /// is not lost. Returns the ids.
    ///
    /// # Errors
    /// Nothing was stored.
    pub async fn archive(
        &self,
        session: SessionId,
        turn: TurnId,
        messages: &[Message],
        now_ms: i64,
    ) -> Result<Vec<i64>, StoreError> {
        let messages: Vec<NewMessage> = messages.iter().map(NewMessage::from).collect();
        self.write(move |conn| {
            messages.iter().map(|message| archive::record(conn, session, Some(turn), message, now_ms)).collect()
        })
        .await
    }
}

pub(super) fn next_position(conn: &Connection, session: SessionId) -> Result<i64, Fault> {
    Ok(conn.prepare_cached(NEXT_POSITION)?.query_row([session.0], |row| row.get(0))?)
}

/// Adds an archived message to the live window.
pub(super) fn show(
    conn: &Connection,
    session: SessionId,
    position: i64,
    message: i64,
    shown: &Shown,
) -> Result<(), Fault> {
    let Shown { replacement, tokens, chars } = shown;
    conn.prepare_cached(ADD_LIVE)?.run(params![session.0, position, message, replacement, tokens, chars])?;
    Ok(())
}

/// Requests the live window of a question's conversation, as it is now, if it is short.
pub(super) fn short(conn: &Connection, inbox: InboxId) -> Result<PrefetchedRows<'_>, Fault> {
    Ok(conn.prefetch(READ_SHORT, params![inbox.0, SHORT_ENTRIES as i64, SHORT_CHARS])?)
}

/// Decodes those rows; `None` where the window may be long.
pub(super) fn found(found: Found) -> Result<Option<Vec<LiveEntry>>, Fault> {
    let entries = entries_in(found.rows(), (usize::MAX, usize::MAX))?;
    Ok(entries.filter(|entries| !entries.is_empty()))
}

/// Returns the entries of the live window, oldest first.
pub(super) fn read(conn: &Connection, session: SessionId) -> Result<Vec<LiveEntry>, Fault> {
    Ok(read_most(conn, session, (usize::MAX, usize::MAX))?.unwrap_or_default())
}

/// As [`read`], if the window is short enough to be read on a busy thread; otherwise `None`.
pub(super) fn read_short(conn: &Connection, session: SessionId) -> Result<Option<Vec<LiveEntry>>, Fault> {
    read_most(conn, session, (SHORT_ENTRIES, SHORT_BYTES))
}

/// As [`read`], if the window has at most so many entries and bytes.
fn read_most(conn: &Connection, session: SessionId, most: (usize, usize)) -> Result<Option<Vec<LiveEntry>>, Fault> {
    let mut statement = conn.prepare_cached(READ_LIVE)?;
    entries_in(statement.query([session.0])?, most)
}

fn entries_in(mut rows: Rows<'_>, (most_entries, most_bytes): (usize, usize)) -> Result<Option<Vec<LiveEntry>>, Fault> {
    let (mut entries, mut bytes) = (Vec::new(), 0usize);
    while let Some(row) = rows.next()? {
        bytes = bytes.saturating_add(codec::stored_bytes(row)?);
        if entries.len() == most_entries || bytes > most_bytes {
            return Ok(None);
        }
        entries.push(LiveEntry { entry: codec::entry(row)?, position: row.get("position")? });
    }
    Ok(Some(entries))
}

/// Returns a window with the removals and replacements applied.
fn edited(entries: &[LiveEntry], removed: &[(i64, i64)], replaced: &[(Replacement, String)]) -> Vec<LiveEntry> {
    let stays = |live: &&LiveEntry| !removed.iter().any(|&(first, last)| (first..=last).contains(&live.position));
    let mut entries: Vec<LiveEntry> = entries.iter().filter(stays).cloned().collect();
    for (Replacement { position, message, tokens, chars }, _) in replaced {
        if let Some(LiveEntry { entry, .. }) = entries.iter_mut().find(|live| live.position == *position) {
            let before = std::mem::replace(&mut entry.message, Arc::clone(message));
            entry.original.get_or_insert(before);
            (entry.tokens, entry.chars) = (*tokens, *chars);
        }
    }
    entries
}

/// Returns the first and last position of each run of consecutive positions.
fn ranges(mut positions: Vec<i64>) -> Vec<(i64, i64)> {
    positions.sort_unstable();
    let mut ranges: Vec<(i64, i64)> = Vec::new();
    for position in positions {
        match ranges.last_mut() {
            Some((_, last)) if position <= last.saturating_add(1) => *last = position,
            _ => ranges.push((position, position)),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::ranges;

    #[test]
    fn positions_become_runs() {
        assert_eq!(ranges(vec![]), []);
        assert_eq!(ranges(vec![7, 3, 2, 4, 4, 9]), [(2, 4), (7, 7), (9, 9)]);
    }
}
