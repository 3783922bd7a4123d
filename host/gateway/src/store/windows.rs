//! Live windows as they are stored, so that a turn need not read again what the turn before has left.
//!
//! What is known of one holds as long as nothing has changed it since: not what people change about messages, which counts as a
//! revision or has it [forgotten](Windows::forget), and no other process, of which SQLite tells. All is asked and forgotten
//! within the transaction that it is about, in their order. Of a database that others write to as well nothing is known.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use pmk_core::{Entry, message};

use super::{
    LiveEntry,
    error::Fault,
    sql::Connection,
    window::{self, SHORT_ENTRIES},
};
use crate::ids::SessionId;

/// So many conversations are remembered, and so many messages and characters of them; then it is begun anew.
const MOST_WINDOWS: usize = 2_048;
const MOST_ENTRIES: usize = 8_192;
const MOST_CHARS: usize = 1 << 20;

/// Another number whenever another process has committed something.
pub(super) const OTHERS: &str = "PRAGMA data_version";

/// The messages of a window, oldest first.
pub(super) type Entries = Arc<Vec<LiveEntry>>;

/// Windows that are known.
#[derive(Debug, Default)]
pub(super) struct Windows(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    windows: HashMap<SessionId, Window>,
    entries: usize,
    chars: usize,
    /// The number of the last place.
    last: u64,
}

/// What is known of one.
#[derive(Debug)]
struct Window {
    state: State,
    place: Place,
    /// Nothing, until somebody has put them there.
    entries: Option<Entries>,
}

/// What nothing has changed a window since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    /// How often people had changed the conversation.
    revision: i64,
    others: i64,
}

/// Where the entries of a window belong that it has in a transaction; once it is forgotten they belong nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    session: SessionId,
    number: u64,
}

impl Windows {
    /// The window of a conversation that was changed by people so often, if it is known; else where it belongs once it was read.
    pub(super) fn find(
        &self,
        conn: &Connection,
        session: SessionId,
        revision: i64,
    ) -> Result<(Option<Place>, Option<Entries>), Fault> {
        let Some(state) = State::of(conn, revision)? else { return Ok((None, None)) };
        let mut known = self.known();
        if let Some(entries) = known.at(conn, session, state)? {
            return Ok((None, Some(entries)));
        }
        Ok((Some(known.expect(session, state)), None))
    }

    /// The same of a window that this transaction changes: where it belongs as it is then, once that is committed.
    pub(super) fn take(
        &self,
        conn: &Connection,
        session: SessionId,
        revision: i64,
    ) -> Result<Option<(Place, Entries)>, Fault> {
        let Some(state) = State::of(conn, revision)? else { return Ok(None) };
        let mut known = self.known();
        let found = known.at(conn, session, state)?;
        Ok(found.map(|entries| (known.expect(session, state), entries)))
    }

    /// Remembers a window that is there by now.
    pub(super) fn put(&self, place: Place, entries: Entries) {
        let (count, chars) = (entries.len(), chars(&entries));
        if count > SHORT_ENTRIES || chars > MOST_CHARS {
            return;
        }
        let mut known = self.known();
        if known.entries + count > MOST_ENTRIES || known.chars + chars > MOST_CHARS {
            known.clear();
        }
        let Known { windows, entries: all, chars: all_chars, .. } = &mut *known;
        if let Some(window) = windows.get_mut(&place.session).filter(|window| window.is_empty_place(place)) {
            window.entries = Some(entries);
            (*all, *all_chars) = (*all + count, *all_chars + chars);
        }
    }

    /// This window is changed by the transaction.
    pub(super) fn forget(&self, session: SessionId) {
        self.known().remove(session);
    }

    /// Any may be changed by it.
    pub(super) fn forget_all(&self) {
        self.known().clear();
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Whole after each of its methods.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn at(&self, conn: &Connection, session: SessionId, state: State) -> Result<Option<Entries>, Fault> {
        let window = self.windows.get(&session).filter(|window| window.state == state);
        let Some(entries) = window.and_then(|window| window.entries.clone()) else { return Ok(None) };
        debug_assert!(are_one(&entries, &window::read(conn, session)?), "a window is not as it is stored");
        Ok(Some(entries))
    }

    fn expect(&mut self, session: SessionId, state: State) -> Place {
        self.remove(session);
        if self.windows.len() >= MOST_WINDOWS {
            self.clear();
        }
        self.last += 1;
        let place = Place { session, number: self.last };
        self.windows.insert(session, Window { state, place, entries: None });
        place
    }

    fn remove(&mut self, session: SessionId) {
        if let Some(entries) = self.windows.remove(&session).and_then(|window| window.entries) {
            self.entries -= entries.len();
            self.chars -= chars(&entries);
        }
    }

    fn clear(&mut self) {
        self.windows.clear();
        (self.entries, self.chars) = (0, 0);
    }
}

impl Window {
    /// Whether it is this place, and nothing is there yet.
    fn is_empty_place(&self, place: Place) -> bool {
        self.place == place && self.entries.is_none()
    }
}

impl State {
    /// As of this transaction; `None` where others may change a window of which nobody is told.
    fn of(conn: &Connection, revision: i64) -> Result<Option<State>, Fault> {
        match conn {
            Connection::Sqlite(_) => {
                let others = conn.prepare_cached(OTHERS)?.query_row([], |row| row.get(0))?;
                Ok(Some(State { revision, others }))
            }
            Connection::Postgres(_) => Ok(None),
        }
    }
}

/// How much text is held for them.
fn chars(entries: &[LiveEntry]) -> usize {
    let of = |Entry { chars, original, .. }: &Entry| {
        let original = original.as_ref().map_or(0, |original| message::chars(&original.blocks));
        *chars as usize + original
    };
    entries.iter().map(|live| of(&live.entry)).sum()
}

fn are_one(known: &[LiveEntry], stored: &[LiveEntry]) -> bool {
    let of = |LiveEntry { position, entry }: &LiveEntry| {
        let Entry { id, message, original, tokens, chars } = entry.clone();
        (*position, id, message, original, tokens, chars)
    };
    known.iter().map(of).eq(stored.iter().map(of))
}
