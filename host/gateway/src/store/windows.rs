//! A cache of live windows as they are stored, so that a turn need not read again what the previous turn has left.
//!
//! A cached window is valid until something changes it: changes by people raise the revision or
//! [remove](Windows::forget) the window, and SQLite reports commits of other processes. All lookups and removals
//! happen inside the transaction that they concern, in order. On a database that others write to as well, nothing
//! is cached.

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

/// How many conversations, messages and characters are cached at most; when that is exceeded, the cache is cleared.
const MOST_WINDOWS: usize = 2_048;
const MOST_ENTRIES: usize = 8_192;
const MOST_CHARS: usize = 1 << 20;

/// A number that changes whenever another process has committed something.
pub(super) const OTHERS: &str = "PRAGMA data_version";

/// The messages of a window, oldest first.
pub(super) type Entries = Arc<Vec<LiveEntry>>;

/// The cached windows.
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

/// A cached window.
#[derive(Debug)]
struct Window {
    state: State,
    place: Place,
    /// `None` until the entries are put in.
    entries: Option<Entries>,
}

/// The state of the store for which a cached window is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    /// The conversation's revision.
    revision: i64,
    others: i64,
}

/// Where a window that was read in a transaction is to be cached; after the window is removed, the place is void.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    session: SessionId,
    number: u64,
}

impl Windows {
    /// Returns the window of a conversation at this revision, if it is cached; otherwise the place where it belongs
    /// once it is read.
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

    /// Returns a cached window that this transaction changes, with the place where the changed window belongs once
    /// it is committed.
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

    /// Caches a window at its place.
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

    /// Removes a window that the transaction changes.
    pub(super) fn forget(&self, session: SessionId) {
        self.known().remove(session);
    }

    /// Removes all windows, because the transaction may change any of them.
    pub(super) fn forget_all(&self) {
        self.known().clear();
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Every method leaves it consistent.
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
    /// Whether it is this place, and its entries are not set yet.
    fn is_empty_place(&self, place: Place) -> bool {
        self.place == place && self.entries.is_none()
    }
}

impl State {
    /// Returns the state as of this transaction; `None` where others may change a window without being noticed.
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

/// Returns how many characters of text the entries hold.
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
