//! Threads that wait for the answer of somebody who knows.

use pmk_core::FrontName;
use rusqlite::{Connection, OptionalExtension, params};

use super::{Store, StoreError, TurnId, codec, error::Fault, intake::front_name};
use crate::{escalation::Marker, front::Inbound};

pub(super) const FIND_MARKER: &str = "SELECT marker FROM escalation
     WHERE front = ?1 AND channel = ?2 AND thread_ts = ?3 AND (claimed_by IS NULL OR claimed_by = ?4)";
pub(super) const IS_WAITING: &str = "SELECT 1 FROM escalation WHERE front = ?1 AND channel = ?2 AND thread_ts = ?3";
pub(super) const CLAIM: &str =
    "UPDATE escalation SET claimed_by = ?4 WHERE front = ?1 AND channel = ?2 AND thread_ts = ?3";
pub(super) const RELEASE_CLAIM: &str = "UPDATE escalation SET claimed_by = NULL WHERE claimed_by = ?1";
pub(super) const ABSORBED: &str = "DELETE FROM escalation WHERE claimed_by = ?1";
pub(super) const AWAIT: &str = "INSERT INTO escalation (front, channel, thread_ts, marker) VALUES (?1, ?2, ?3, ?4)
     ON CONFLICT (front, channel, thread_ts) DO UPDATE SET marker = excluded.marker, claimed_by = NULL";
const IMPORT: &str = "INSERT INTO escalation (front, channel, thread_ts, marker) VALUES (?1, ?2, ?3, ?4)
     ON CONFLICT (front, channel, thread_ts) DO NOTHING";
const ALL_MARKERS: &str = "SELECT marker FROM escalation ORDER BY front, channel, thread_ts";

impl Store {
    /// Every thread that waits for an answer.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn escalations(&self) -> Result<Vec<Marker>, StoreError> {
        self.read(|conn| {
            let mut statement = conn.prepare_cached(ALL_MARKERS)?;
            let mut rows = statement.query([])?;
            let mut markers = Vec::new();
            while let Some(row) = rows.next()? {
                markers.push(codec::from_json(row.get_ref(0)?, "an escalation")?);
            }
            Ok(markers)
        })
        .await
    }

    /// Whether a thread waits for an answer, or for one that is just being taken in.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn is_waiting(&self, front: FrontName, channel: &str, thread_ts: &str) -> Result<bool, StoreError> {
        let (channel, thread_ts) = (channel.to_owned(), thread_ts.to_owned());
        self.read(move |conn| {
            Ok(conn.prepare_cached(IS_WAITING)?.exists(params![front_name(front), channel, thread_ts])?)
        })
        .await
    }

    /// Takes over a thread that an existing pmk left waiting; false when the thread waits already.
    ///
    /// # Errors
    /// Nothing was stored.
    pub async fn import_escalation(&self, front: FrontName, marker: &Marker) -> Result<bool, StoreError> {
        let marker = marker.clone();
        self.write(move |conn| Ok(put(conn, IMPORT, front, &marker)? > 0)).await
    }
}

/// The marker that a message answers, which from now on is this turn's to take in; nobody else's, until the
/// turn is recorded and the marker gone.
pub(super) fn claim(conn: &Connection, turn: TurnId, inbound: &Inbound) -> Result<Option<Marker>, Fault> {
    let Some(thread_ts) = &inbound.reply_to.thread_ts else { return Ok(None) };
    if inbound.is_command() {
        return Ok(None);
    }
    let place = params![front_name(inbound.key.front), inbound.reply_to.channel, thread_ts, turn.0];
    let marker: Option<String> = conn.prepare_cached(FIND_MARKER)?.query_row(place, |row| row.get(0)).optional()?;
    let Some(json) = marker else { return Ok(None) };
    let marker: Marker = serde_json::from_str(&json)
        .map_err(|error| Fault::Damaged(format!("an escalation cannot be read: {error}")))?;
    // A contact who attaches a file and writes nothing has not answered yet.
    if !marker.absorbs(&inbound.user) || inbound.text.trim().is_empty() {
        return Ok(None);
    }
    conn.prepare_cached(CLAIM)?.execute(place)?;
    Ok(Some(marker))
}

/// From now on a thread waits.
pub(super) fn await_answer(conn: &Connection, front: FrontName, marker: &Marker) -> Result<(), Fault> {
    put(conn, AWAIT, front, marker).map(drop)
}

fn put(conn: &Connection, sql: &str, front: FrontName, marker: &Marker) -> Result<usize, Fault> {
    let values = params![front_name(front), marker.channel_id, marker.thread_ts, codec::to_json(marker)];
    Ok(conn.prepare_cached(sql)?.execute(values)?)
}
