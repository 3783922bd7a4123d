//! Atoms that several homes share: the text of each file, or that it was deleted. People and the library use the
//! files in the homes; [`sharing`](crate::sharing) compares those with the store.
//!
//! Each change names the digest of the previous text: of two changes to the same text, the second is refused. Each
//! change gets a greater version than all changes committed before it, because one transaction writes at a time.

use std::collections::HashMap;

use super::{
    Store, StoreError,
    error::Fault,
    sql::{Connection, params},
};

pub(super) const NEWER: &str = "SELECT path, version, sha256, octet_length(body) FROM atom_file
     WHERE version > ?1 ORDER BY version LIMIT ?2";
pub(super) const TEXTS: &str = "SELECT version, body FROM atom_file
     WHERE version >= ?1 AND octet_length(body) <= ?2 ORDER BY version LIMIT ?3";
pub(super) const LATEST: &str = "SELECT coalesce(max(version), 0) FROM atom_file";
/// An empty digest stands for a file that was deleted or never existed, so that it differs from any text.
pub(super) const OFFER: &str = "INSERT INTO atom_file (path, version, sha256, body) VALUES (?1, ?2, ?3, ?4)
     ON CONFLICT (path) DO UPDATE SET version = excluded.version, sha256 = excluded.sha256, body = excluded.body
     WHERE CASE WHEN atom_file.body IS NULL THEN '' ELSE atom_file.sha256 END = ?5";
pub(super) const IS_DELETED: &str = "SELECT 1 FROM atom_file WHERE path = ?1 AND body IS NULL";
pub(super) const TAKEN: &str = "SELECT path, version FROM atom_file WHERE version > ?1";

/// How many changes are read at once,
const PIECE: usize = 1_000;
/// and how many texts.
const PIECE_OF_TEXTS: usize = 16;

/// An atom's file as the store has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AtomRow {
    pub path: String,
    pub version: i64,
    /// The digest of its text; for a deleted file, of its last text.
    pub sha256: String,
    /// The size of its text; `None` where it was deleted.
    pub bytes: Option<u64>,
}

/// A change of an atom's file.
#[derive(Clone, Debug)]
pub struct AtomOffer {
    pub path: String,
    /// The digest of the text; for a deletion, of the deleted text.
    pub sha256: String,
    /// `None` where it is deleted.
    pub text: Option<String>,
    /// The digest of the previous text; `None` where there was none.
    pub base: Option<String>,
}

impl Store {
    /// Whether an atom's file was deleted that the homes had in common.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn is_atom_deleted(&self, path: &str) -> Result<bool, StoreError> {
        let path = path.to_owned();
        self.read(move |conn| Ok(conn.prepare_cached(IS_DELETED)?.exists([path])?)).await
    }

    /// Returns what has changed after that version, in order; everything after version 0. For threads that may
    /// block.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn atoms_since(&self, version: i64) -> Result<Vec<AtomRow>, StoreError> {
        let mut rows: Vec<AtomRow> = Vec::new();
        loop {
            let after = rows.last().map_or(version, |row| row.version);
            let mut piece = self.read_waiting(move |conn| newer(conn, after))?;
            let is_last = piece.len() < PIECE;
            rows.append(&mut piece);
            if is_last {
                return Ok(rows);
            }
        }
    }

    /// Returns some texts of that version and later ones, by version, excluding longer ones. For threads that may
    /// block.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn atom_texts(&self, from: i64, most_bytes: u64) -> Result<Vec<(i64, String)>, StoreError> {
        self.read_waiting(move |conn| {
            let mut statement = conn.prepare_cached(TEXTS)?;
            let most = (most_bytes as i64, PIECE_OF_TEXTS as i64);
            let texts = statement.query_map(params![from, most.0, most.1], |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(texts.collect::<Result<_, _>>()?)
        })
    }

    /// Applies changes, and returns the version of each: `None` where the file has changed since the text that the
    /// offer is based on. For threads that may block.
    ///
    /// # Errors
    /// None was applied.
    pub fn offer_atoms(&self, offers: Vec<AtomOffer>, now_ms: i64) -> Result<Vec<Option<i64>>, StoreError> {
        self.shared.writer.write_waiting(move |conn| offer(conn, &offers, now_ms))
    }
}

fn newer(conn: &Connection, version: i64) -> Result<Vec<AtomRow>, Fault> {
    let mut statement = conn.prepare_cached(NEWER)?;
    let rows = statement.query_map(params![version, PIECE as i64], |row| {
        let bytes: Option<i64> = row.get(3)?;
        let bytes = bytes.map(|bytes| u64::try_from(bytes).unwrap_or(0));
        Ok(AtomRow { path: row.get(0)?, version: row.get(1)?, sha256: row.get(2)?, bytes })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn offer(conn: &Connection, offers: &[AtomOffer], now_ms: i64) -> Result<Vec<Option<i64>>, Fault> {
    let latest: i64 = conn.prepare_cached(LATEST)?.query_row([], |row| row.get(0))?;
    // Versions are at least the current time, so that a database restored from a backup does not assign a version
    // again.
    let before = latest.max(now_ms);
    let mut statement = conn.prepare_cached(OFFER)?;
    for (version, AtomOffer { path, sha256, text, base }) in (before + 1..).zip(offers) {
        statement.run(params![path, version, sha256, text, base.as_deref().unwrap_or_default()])?;
    }
    let mut statement = conn.prepare_cached(TAKEN)?;
    let taken = statement.query_map([before], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)))?;
    let taken: HashMap<String, i64> = taken.collect::<Result<_, _>>()?;
    Ok(offers.iter().map(|offer| taken.get(&offer.path).copied()).collect())
}
