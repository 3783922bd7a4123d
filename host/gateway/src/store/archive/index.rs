//! The search index of messages: both databases hold the same terms and the same counts of them, so that one
//! ranking serves both. Counts are per conversation.

use std::{
    collections::{BTreeSet, HashMap},
    convert::Infallible,
};

use pmk_index::{Column, Index};
use pmk_search::{Frequencies, Query};

use crate::{
    ids::SessionId,
    store::{
        error::Fault,
        sql::{Connection, params},
    },
};

/// SQLite's index.
const INDEX: Index = Index { name: "said", columns: &[Column { name: "text", weight: 1.0 }] };

/// PostgreSQL's statements. Terms contain no spaces.
const ADD: &str = "INSERT INTO said (message_id, session_id, terms) VALUES (?1, ?2, string_to_array(?3, ' '))
     ON CONFLICT (message_id) DO UPDATE SET terms = excluded.terms";
const REMOVE: &str = "DELETE FROM said WHERE message_id = ?1";
const TEXTS: &str = "SELECT count(*) FROM said WHERE session_id = ?1";
const DOCUMENTS: &str = "SELECT t.term, count(*) FROM unnest(string_to_array(?1 COLLATE \"C\", ' ')) AS t (term)
     JOIN said s ON s.terms @> ARRAY[t.term] GROUP BY t.term";
const PLACES: &str = "SELECT t.place, s.message_id, cardinality(array_positions(s.terms, t.term))
     FROM unnest(string_to_array(?1 COLLATE \"C\", ' ')) WITH ORDINALITY AS t (term, place)
     JOIN said s ON s.terms @> ARRAY[t.term] ORDER BY t.place, s.message_id";

/// Creates the index where the database needs that.
pub(in crate::store) fn prepare(conn: &Connection) -> Result<(), Fault> {
    match conn {
        Connection::Sqlite(conn) => Ok(INDEX.create(conn)?),
        // It is an ordinary table.
        Connection::Postgres(_) => Ok(()),
    }
}

/// Indexes a message that is not in the index yet by these terms.
pub(super) fn add(conn: &Connection, session: SessionId, id: i64, terms: &[String]) -> Result<(), Fault> {
    match conn {
        Connection::Sqlite(conn) => Ok(INDEX.add_terms(conn, id, session.0, &[terms])?),
        Connection::Postgres(_) => {
            let terms = joined(session, terms.iter().map(String::as_str));
            Ok(conn.prepare_cached(ADD)?.run(params![id, session.0, terms])?)
        }
    }
}

/// Rewrites the index of a copy of a store without the messages that were removed from it.
pub(in crate::store) fn purge(copy: &rusqlite::Connection) -> Result<(), Fault> {
    Ok(INDEX.purge(copy)?)
}

/// Removes a message from the index.
pub(super) fn remove(conn: &Connection, id: i64) -> Result<(), Fault> {
    match conn {
        Connection::Sqlite(conn) => Ok(INDEX.remove(conn, id)?),
        Connection::Postgres(_) => Ok(conn.prepare_cached(REMOVE)?.run([id])?),
    }
}

/// Returns how common the terms of a query are in a conversation.
pub(super) fn frequencies(conn: &Connection, session: SessionId, query: &Query) -> Result<Frequencies, Fault> {
    if let Connection::Sqlite(conn) = conn {
        return Ok(INDEX.frequencies(conn, session.0, query)?);
    }
    let texts: i64 = conn.prepare_cached(TEXTS)?.query_row([session.0], |row| row.get(0))?;
    let terms: BTreeSet<&str> = query.units().iter().flat_map(|unit| unit.terms()).collect();
    let mut statement = conn.prepare_cached(DOCUMENTS)?;
    let counts = statement.query_map([joined(session, terms.into_iter())], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let counts: HashMap<String, i64> = counts.collect::<Result<_, _>>()?;
    let documents = |term: &str| {
        let count = counts.get(&grouped(session, term)).copied().unwrap_or(0);
        Ok::<u64, Infallible>(u64::try_from(count).unwrap_or(0))
    };
    Ok(Frequencies::count(query, u64::try_from(texts).unwrap_or(0), documents).unwrap_or_else(|never| match never {}))
}

/// Returns for each of these terms the messages of a conversation that contain it, by id, and how often each
/// contains it.
pub(super) fn messages_with(
    conn: &Connection,
    session: SessionId,
    terms: &[&str],
) -> Result<Vec<Vec<(i64, u32)>>, Fault> {
    if let Connection::Sqlite(conn) = conn {
        return terms.iter().map(|term| Ok(INDEX.texts_with(conn, session.0, term)?)).collect();
    }
    let mut found = vec![Vec::new(); terms.len()];
    let mut statement = conn.prepare_cached(PLACES)?;
    let mut rows = statement.query([joined(session, terms.iter().copied())])?;
    while let Some(row) = rows.next()? {
        // Counted from one.
        let place: u32 = row.get(0)?;
        if let Some(messages) = found.get_mut((place as usize).wrapping_sub(1)) {
            messages.push((row.get(1)?, row.get(2)?));
        }
    }
    Ok(found)
}

/// Joins terms, as they are stored, into one text.
pub(super) fn joined<'a>(session: SessionId, terms: impl Iterator<Item = &'a str>) -> String {
    terms.map(|term| grouped(session, term)).collect::<Vec<_>>().join(" ")
}

/// A term with its conversation, as SQLite's index has it; no term contains `=`.
fn grouped(session: SessionId, term: &str) -> String {
    format!("{session}={term}")
}
