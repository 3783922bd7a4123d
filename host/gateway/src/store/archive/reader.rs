//! What a policy searches and reads.

use std::{fmt, ops::Range};

use pmk_core::{Archive, Archived, Found};
use pmk_search::Query;
use rusqlite::{Connection, OptionalExtension, params};

use super::{super::codec, INDEX};
use crate::{
    search::Filter,
    store::{SessionId, Store, StoreError, error::Fault},
};

/// So many matches are looked at: enough to fill a search where nearly all of the best are in view.
const MAX_RANKED: usize = 5_000;

pub(in crate::store) const READ: &str = "SELECT m.id, m.role, m.origin, m.blocks, NULL, m.tokens, m.chars
     FROM archive a JOIN message m ON m.id = a.message_id
     WHERE a.session_id = ?1 AND a.number >= ?2 AND a.number < ?3 ORDER BY a.number";
pub(in crate::store) const FIND_NUMBER: &str = "SELECT number FROM archive WHERE message_id = ?1";

/// The archive of one conversation as it was when a turn began. It waits for the disk: for threads that may, such as
/// those that policies decide on.
pub struct StoreArchive {
    store: Store,
    session: SessionId,
    length: u32,
}

impl StoreArchive {
    pub(super) fn new(store: Store, session: SessionId, length: u32) -> Self {
        StoreArchive { store, session, length }
    }

    fn or_nothing<T: Default>(&self, read: Result<T, StoreError>) -> T {
        read.unwrap_or_else(|error| {
            tracing::warn!(%error, "the archive cannot be read, and nothing comes back from it");
            T::default()
        })
    }
}

impl fmt::Debug for StoreArchive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreArchive")
            .field("session", &self.session)
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}

impl Archive for StoreArchive {
    fn len(&self) -> u32 {
        self.length
    }

    fn read(&self, numbers: Range<u32>) -> Vec<Archived> {
        let (session, end) = (self.session, numbers.end.min(self.length));
        self.or_nothing(self.store.read_waiting(move |conn| read(conn, session, numbers.start..end)))
    }

    fn search(&self, query: &str, max: usize, wanted: &dyn Fn(i64) -> bool) -> Vec<Found> {
        let (session, length, query) = (self.session, self.length, Query::new(query));
        let ranked = self.or_nothing(self.store.read_waiting(move |conn| ranked(conn, session, &query)));
        let ids: Vec<i64> = ranked.into_iter().filter(|&id| wanted(id)).collect();
        self.or_nothing(self.store.read_waiting(move |conn| numbered(conn, &ids, length, max)))
    }
}

/// The ids of the matches, best first, ties the newer first.
fn ranked(conn: &Connection, session: SessionId, query: &Query) -> Result<Vec<i64>, Fault> {
    let mut hits = INDEX.query(conn, query, Filter { group: session.0, below: None }, MAX_RANKED)?;
    hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(b.id.cmp(&a.id)));
    Ok(hits.into_iter().map(|hit| hit.id).collect())
}

/// The first of these that were recorded before the turn, with their numbers.
fn numbered(conn: &Connection, ids: &[i64], length: u32, max: usize) -> Result<Vec<Found>, Fault> {
    let mut find = conn.prepare_cached(FIND_NUMBER)?;
    let mut found = Vec::new();
    for &id in ids {
        if found.len() == max {
            break;
        }
        let number: Option<u32> = find.query_row([id], |row| row.get(0)).optional()?;
        found.extend(number.filter(|&number| number < length).map(|number| Found { number, id }));
    }
    Ok(found)
}

fn read(conn: &Connection, session: SessionId, numbers: Range<u32>) -> Result<Vec<Archived>, Fault> {
    let mut statement = conn.prepare_cached(READ)?;
    let mut rows = statement.query(params![session.0, numbers.start, numbers.end])?;
    let mut messages = Vec::new();
    while let Some(row) = rows.next()? {
        let entry = codec::entry(row)?;
        messages.push(Archived { id: entry.id, message: entry.message });
    }
    Ok(messages)
}
