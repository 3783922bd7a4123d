//! The archive as a policy searches and reads it.

use std::{
    collections::HashMap,
    fmt,
    ops::Range,
    sync::{Arc, OnceLock},
};

use pmk_core::{Archive, Archived, Found, Matches};
use pmk_search::{Posting, Query, Ranking};

use super::{super::codec, index};
use crate::{
    ids::SessionId,
    store::{
        Store, StoreError,
        error::Fault,
        sql::{Connection, params},
    },
};

pub(in crate::store) const READ: &str = "SELECT m.id, m.role, m.origin, m.blocks, NULL, m.tokens, m.chars, a.number
     FROM archive a JOIN message m ON m.id = a.message_id
     WHERE a.session_id = ?1 AND a.number >= ?2 AND a.number < ?3 ORDER BY a.number";
pub(in crate::store) const LENGTHS: &str =
    "SELECT message_id, terms, number FROM archive WHERE session_id = ?1 AND number < ?2 ORDER BY number";

/// The archive of one conversation as it was when a turn began. It waits for the disk: for threads that may block,
/// such as those on which policies decide.
#[derive(Clone)]
pub struct StoreArchive {
    store: Store,
    session: SessionId,
    length: u32,
    /// Read for the first search, and shared by all later ones.
    texts: Arc<OnceLock<Texts>>,
}

impl Store {
    /// Returns the archive of a conversation as it was when so many messages were recorded. Nothing is read before
    /// the first search.
    pub fn archive_of(&self, session: SessionId, length: u32) -> StoreArchive {
        StoreArchive { store: self.clone(), session, length, texts: Arc::default() }
    }
}

impl StoreArchive {
    fn or_nothing<T: Default>(&self, read: Result<T, StoreError>) -> T {
        read.unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot read the archive, so nothing is recalled from it");
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

    fn read(&self, numbers: Range<u32>) -> Vec<(u32, Archived)> {
        let (session, end) = (self.session, numbers.end.min(self.length));
        self.or_nothing(self.store.read_waiting(move |conn| read(conn, session, numbers.start..end)))
    }

    fn look_for(&self, query: &str, max: usize, wanted: &dyn Fn(i64) -> bool) -> Matches {
        let (session, length, query) = (self.session, self.length, Query::new(query));
        let texts = Arc::clone(&self.texts);
        let (ranked, took) = self.or_nothing(self.store.read_waiting(move |conn| {
            let texts = match texts.get() {
                Some(texts) => texts,
                None => {
                    let read = Texts::read(conn, session, length)?;
                    texts.get_or_init(|| read)
                }
            };
            texts.ranked(conn, session, &query)
        }));
        let found = ranked.into_iter().filter(|found| wanted(found.id)).take(max).collect();
        Matches { found, ..took }
    }
}

/// The searchable messages of a conversation.
struct Texts {
    /// In the order of their numbers.
    messages: Vec<Text>,
    /// The positions in `messages` by id.
    positions: HashMap<i64, usize>,
}

struct Text {
    id: i64,
    number: u32,
    /// Its length, in terms.
    terms: u32,
}

impl Texts {
    fn read(conn: &Connection, session: SessionId, length: u32) -> Result<Self, Fault> {
        let mut statement = conn.prepare_cached(LENGTHS)?;
        let messages = statement.query_map(params![session.0, length], |row| {
            Ok(Text { id: row.get(0)?, terms: row.get(1)?, number: row.get(2)? })
        })?;
        let messages: Vec<Text> = messages.collect::<Result<_, _>>()?;
        let positions = messages.iter().zip(0..).map(|(text, position)| (text.id, position)).collect();
        Ok(Texts { messages, positions })
    }

    /// Returns all messages that contain a distinctive term of the query, best first, and the newer first among
    /// equal ones; and the cost of the search. Ranks as [`pmk_search::MemoryArchive`] does: other conversations
    /// have no influence.
    fn ranked(&self, conn: &Connection, session: SessionId, query: &Query) -> Result<(Vec<Found>, Matches), Fault> {
        let Texts { messages, positions } = self;
        let texts = messages.iter().filter(|text| text.terms > 0).count() as u64;
        let mut ranking = Ranking::of(texts, messages.iter().map(|text| u64::from(text.terms)).sum());
        let frequencies = index::frequencies(conn, session, query)?;
        for texts in index::messages_with(conn, session, &frequencies.telling_terms())? {
            let posting = |(id, count)| {
                let &position = positions.get(&id)?;
                Some(Posting { id: i64::try_from(position).ok()?, count, length: messages[position].terms })
            };
            ranking.add(&texts.into_iter().filter_map(posting).collect::<Vec<_>>());
        }
        let found = |position: i64| {
            let text = messages.get(usize::try_from(position).ok()?)?;
            Some(Found { number: text.number, id: text.id })
        };
        let took = ranking.took(query, &frequencies);
        Ok((ranking.best_first().into_iter().filter_map(found).collect(), took))
    }
}

fn read(conn: &Connection, session: SessionId, numbers: Range<u32>) -> Result<Vec<(u32, Archived)>, Fault> {
    let mut statement = conn.prepare_cached(READ)?;
    let mut rows = statement.query(params![session.0, numbers.start, numbers.end])?;
    let mut messages = Vec::new();
    while let Some(row) = rows.next()? {
        let entry = codec::entry(row)?;
        messages.push((row.get("number")?, Archived { id: entry.id, message: entry.message }));
    }
    Ok(messages)
}
