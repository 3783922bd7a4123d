//! The metadata of every atom's file, and the index of the approved ones: a cache in SQLite that can be deleted at any
//! time.

use std::{
    collections::HashMap,
    fs::{self, Metadata},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use pmk_index::{Column, Filter, Hit, Index, IndexError};
use pmk_search::{Asked, Floor, Frequencies, folded_terms};
use rusqlite::{Connection, ErrorCode, OptionalExtension, Transaction, TransactionBehavior, config::DbConfig, params};
use thiserror::Error;

use super::{
    atom::{Atom, Notice, Status},
    files::{FileError, make_private_dir},
};

/// Incremented whenever the tables, or the terms of texts, change.
const VERSION: i32 = 3;

/// A shorter word is not corrected: too many words are similar to it.
const LEAST_MISTYPED: usize = 6;

/// Enough for every statement of the catalogue and of its index.
const CACHED_STATEMENTS: usize = 64;

/// How long to wait for another process that uses the cache.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// All atoms are one collection: a question may be about any scope.
const ONE_GROUP: i64 = 0;

const INDEX: Index = Index {
    name: "atom_index",
    columns: &[
        Column { name: "question", weight: 3.0 },
        Column { name: "asked_as", weight: 2.0 },
        Column { name: "tags", weight: 2.0 },
        Column { name: "summary", weight: 1.0 },
        Column { name: "answer", weight: 1.0 },
    ],
};

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS atom (
    key         INTEGER PRIMARY KEY,
    scope       TEXT NOT NULL,
    name        TEXT NOT NULL,
    stamp       TEXT NOT NULL,
    due_at      INTEGER,
    channel_id  TEXT,
    message_ts  TEXT,
    problem     TEXT,
    is_findable INTEGER NOT NULL,
    UNIQUE (scope, name)
);
CREATE TABLE IF NOT EXISTS atom_floor (one INTEGER PRIMARY KEY CHECK (one = 1), atoms INTEGER NOT NULL, value REAL NOT NULL);
CREATE INDEX IF NOT EXISTS atom_due ON atom (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS atom_notice ON atom (channel_id, message_ts) WHERE message_ts IS NOT NULL;
";

/// Why an operation of the catalogue failed.
#[derive(Debug, Error)]
pub enum CatalogueError {
    #[error("the cache of the knowledge base cannot be used: {0}")]
    Sqlite(#[from] rusqlite::Error),
    #[error(transparent)]
    Index(#[from] IndexError),
}

/// The location of an atom's file within the folder of atoms.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place {
    pub scope: String,
    pub name: String,
}

/// Changes whenever a file's content does, and when it may become readable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stamp(String);

impl Stamp {
    /// The stamp of a file. A file that changed a moment ago gets a stamp that never matches: it may change again
    /// within the resolution of the file system's clock.
    pub(super) fn of(meta: &Metadata) -> Self {
        const SETTLES_AFTER: Duration = Duration::from_millis(100);
        let modified = meta.modified().unwrap_or(UNIX_EPOCH);
        let seconds = u64::try_from(meta.ctime()).unwrap_or_default();
        let changed = UNIX_EPOCH + Duration::new(seconds, u32::try_from(meta.ctime_nsec()).unwrap_or_default());
        let is_recent = |at: SystemTime| at.elapsed().map_or(true, |age| age < SETTLES_AFTER);
        let nanos = |at: SystemTime| at.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let mark = if is_recent(modified) || is_recent(changed) { "?" } else { "" };
        Stamp(format!("{}:{}:{}:{}{mark}", nanos(modified), nanos(changed), meta.len(), meta.ino()))
    }

    /// A stamp that never matches.
    pub(super) fn unsettled() -> Self {
        Stamp("?".to_owned())
    }
}

/// The catalogue.
#[derive(Debug)]
pub(super) struct Catalogue {
    db: Connection,
}

impl Catalogue {
    /// Opens the cache of a home, or creates a new one; if there is no usable place for it, it is in memory.
    pub(super) fn open(home: &Path) -> Result<Self, CatalogueError> {
        let path = home.join("cache").join("knowledge.sqlite");
        let opened = Self::open_file(&path).or_else(|error| {
            // Another process uses it: then it is intact and must not be discarded.
            if error.is_busy() {
                return Err(error);
            }
            tracing::info!(%error, "rebuilding the cache of the knowledge base");
            discard(&path);
            Self::open_file(&path)
        });
        opened.or_else(|error| {
            tracing::warn!(%error, "the cache of the knowledge base is kept in memory");
            Self::prepare(Connection::open_in_memory()?)
        })
    }

    fn open_file(path: &Path) -> Result<Self, OpenError> {
        if let Some(folder) = path.parent() {
            make_private_dir(folder)?;
        }
        let db = Connection::open(path).map_err(CatalogueError::from)?;
        db.busy_timeout(BUSY_TIMEOUT).map_err(CatalogueError::from)?;
        restrict(path)?;
        let version: i32 =
            db.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(CatalogueError::from)?;
        if version != VERSION && version != 0 {
            return Err(OpenError::OtherVersion(version));
        }
        db.pragma_update(None, "journal_mode", "WAL").map_err(CatalogueError::from)?;
        db.pragma_update(None, "synchronous", "NORMAL").map_err(CatalogueError::from)?;
        Ok(Self::prepare(db)?)
    }

    fn prepare(db: Connection) -> Result<Self, CatalogueError> {
        // Every statement is compiled once and has one query plan, whatever its parameters are.
        db.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        db.execute_batch(SCHEMA)?;
        INDEX.create(&db)?;
        db.pragma_update(None, "user_version", VERSION)?;
        Ok(Catalogue { db })
    }

    /// Makes all changes in one transaction.
    pub(super) fn atomically<T, E: From<CatalogueError>>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, E>,
    ) -> Result<T, E> {
        let sqlite = |error| E::from(CatalogueError::Sqlite(error));
        let transaction = Transaction::new_unchecked(&self.db, TransactionBehavior::Immediate).map_err(sqlite)?;
        let done = work(self)?;
        transaction.commit().map_err(sqlite)?;
        Ok(done)
    }

    /// The scopes of all known atoms.
    pub(super) fn scopes(&self) -> Result<Vec<String>, CatalogueError> {
        let mut select = self.db.prepare_cached("SELECT DISTINCT scope FROM atom ORDER BY scope")?;
        Ok(select.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?)
    }

    /// Every known file of a scope, with its stamp.
    pub(super) fn stamps(&self, scope: &str) -> Result<HashMap<String, Stamp>, CatalogueError> {
        let mut select = self.db.prepare_cached("SELECT name, stamp FROM atom WHERE scope = ?")?;
        Ok(select.query_map([scope], |row| Ok((row.get(0)?, Stamp(row.get(1)?))))?.collect::<Result<_, _>>()?)
    }

    /// Stores what a file contains: an approved atom can be found from now on.
    pub(super) fn put(&self, place: &Place, stamp: &Stamp, read: Result<&Atom, &str>) -> Result<(), CatalogueError> {
        let meta = read.ok().map(|atom| &atom.meta);
        let notice = meta.and_then(|meta| meta.approval.as_ref());
        let key: i64 = self
            .db
            .prepare_cached(
                "INSERT INTO atom (scope, name, stamp, due_at, channel_id, message_ts, problem, is_findable) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) \
                 ON CONFLICT (scope, name) DO UPDATE SET stamp = ?3, due_at = ?4, channel_id = ?5, message_ts = ?6, \
                 problem = ?7, is_findable = ?8 RETURNING key",
            )?
            .query_row(
                params![
                    place.scope,
                    place.name,
                    stamp.0,
                    read.ok().and_then(Atom::due_at_ms),
                    notice.map(|notice| &notice.channel_id),
                    notice.map(|notice| &notice.message_ts),
                    read.err(),
                    meta.is_some_and(|meta| meta.status == Status::Approved),
                ],
                |row| row.get(0),
            )?;
        INDEX.remove(&self.db, key)?;
        match read {
            Ok(atom) if atom.meta.status == Status::Approved => {
                let (asked_as, tags) = (atom.meta.asked_as.join("\n"), atom.meta.tags.join(" "));
                let texts = [&atom.meta.question, &asked_as, &tags, atom.summary(), atom.answer()];
                Ok(INDEX.add_terms(&self.db, key, ONE_GROUP, &texts.map(folded_terms))?)
            }
            _ => Ok(()),
        }
    }

    /// Removes a file that no longer exists.
    pub(super) fn remove(&self, place: &Place) -> Result<(), CatalogueError> {
        let key: Option<i64> = self
            .db
            .prepare_cached("DELETE FROM atom WHERE scope = ? AND name = ? RETURNING key")?
            .query_row([&place.scope, &place.name], |row| row.get(0))
            .optional()?;
        key.map_or(Ok(()), |key| Ok(INDEX.remove(&self.db, key)?))
    }

    /// Pending atoms that are due for approval.
    pub(super) fn due(&self, now_ms: i64) -> Result<Vec<Place>, CatalogueError> {
        // Sorted here: with ORDER BY, SQLite would scan the whole table in order instead of using `atom_due`.
        let mut due = self.places("SELECT scope, name FROM atom WHERE due_at <= ?", [now_ms])?;
        due.sort();
        Ok(due)
    }

    /// The files that name a notice as their own, sorted: more than one if somebody has copied one.
    pub(super) fn by_notice(&self, notice: &Notice) -> Result<Vec<Place>, CatalogueError> {
        let sql = "SELECT scope, name FROM atom WHERE channel_id = ? AND message_ts = ?";
        let mut places = self.places(sql, [&notice.channel_id, &notice.message_ts])?;
        places.sort();
        Ok(places)
    }

    /// Files that are not atoms, and why.
    pub(super) fn problems(&self) -> Result<Vec<(Place, String)>, CatalogueError> {
        let sql = "SELECT scope, name, problem FROM atom WHERE problem IS NOT NULL ORDER BY scope, name";
        let mut select = self.db.prepare_cached(sql)?;
        let rows = select.query_map([], |row| Ok((place(row)?, row.get(2)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Approved atoms that share words with the question, best match first.
    pub(super) fn search(&self, frequencies: &Frequencies, limit: usize) -> Result<Vec<Place>, CatalogueError> {
        let hits: Vec<Hit> =
            INDEX.query_with(&self.db, frequencies, Filter { group: ONE_GROUP, below: None }, limit)?;
        let mut select = self.db.prepare_cached("SELECT scope, name FROM atom WHERE key = ?")?;
        let mut places = Vec::with_capacity(hits.len());
        for hit in hits {
            places.extend(select.query_row([hit.id], place).optional()?);
        }
        Ok(places)
    }

    /// How common the terms of a question are among approved atoms.
    pub(super) fn frequencies(&self, asked: &Asked) -> Result<Frequencies, CatalogueError> {
        let terms = asked.terms().iter().map(|term| term.text.as_str());
        Ok(INDEX.frequencies_of(&self.db, ONE_GROUP, terms)?)
    }

    /// A question with its typing errors corrected, using the words in atoms.
    pub(super) fn corrected(&self, asked: Asked) -> Result<Asked, CatalogueError> {
        let mut corrections = HashMap::new();
        for term in asked.terms() {
            if let Some(word) = self.nearest(&term.text)? {
                corrections.insert(term.text.clone(), word);
            }
        }
        Ok(asked.corrected(|term| corrections.remove(term)))
    }

    /// The one word in atoms that an unknown word was probably meant to be. People usually type the first letters
    /// correctly.
    fn nearest(&self, word: &str) -> Result<Option<String>, CatalogueError> {
        if word.len() < LEAST_MISTYPED || !word.bytes().all(|b| b.is_ascii_lowercase()) {
            return Ok(None);
        }
        let mut near = INDEX.terms_with(&self.db, ONE_GROUP, &word[..2])?;
        if near.iter().any(|term| term == word) {
            return Ok(None);
        }
        near.retain(|term| strsim::osa_distance(term, word) == 1);
        Ok(near.into_iter().min())
    }

    /// The number of atoms that can be found.
    pub(super) fn len(&self) -> Result<u32, CatalogueError> {
        Ok(u32::try_from(INDEX.len(&self.db, ONE_GROUP)?).unwrap_or(u32::MAX))
    }

    /// About this many findable atoms, spread evenly.
    pub(super) fn sample(&self, atoms: u32) -> Result<Vec<Place>, CatalogueError> {
        let every = self.len()?.div_ceil(atoms.max(1)).max(1);
        let sql = "SELECT scope, name FROM atom WHERE is_findable AND key % ?1 = 0 ORDER BY key LIMIT ?2";
        self.places(sql, [every, atoms])
    }

    /// The measured floor, and the number of atoms at that time.
    pub(super) fn floor(&self) -> Result<Option<(u32, Floor)>, CatalogueError> {
        let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, Floor::from_value(row.get(1)?)));
        Ok(self.db.prepare_cached("SELECT atoms, value FROM atom_floor")?.query_row([], row).optional()?)
    }

    /// Stores a floor, and the number of atoms for which it was measured.
    pub(super) fn keep_floor(&self, atoms: u32, floor: Floor) -> Result<(), CatalogueError> {
        let sql = "INSERT OR REPLACE INTO atom_floor (one, atoms, value) VALUES (1, ?1, ?2)";
        self.db.prepare_cached(sql)?.execute(params![atoms, floor.value()])?;
        Ok(())
    }

    fn places(&self, sql: &str, params: impl rusqlite::Params) -> Result<Vec<Place>, CatalogueError> {
        Ok(self.db.prepare_cached(sql)?.query_map(params, place)?.collect::<Result<_, _>>()?)
    }
}

fn place(row: &rusqlite::Row<'_>) -> rusqlite::Result<Place> {
    Ok(Place { scope: row.get(0)?, name: row.get(1)? })
}

#[derive(Debug, Error)]
enum OpenError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    #[error("it was made by another version ({0})")]
    OtherVersion(i32),
}

impl OpenError {
    fn is_busy(&self) -> bool {
        let OpenError::Catalogue(error) = self else { return false };
        let (CatalogueError::Sqlite(source) | CatalogueError::Index(IndexError::Sqlite { source, .. })) = error;
        matches!(source.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
    }
}

/// SQLite gives the same mode to the files beside the database.
fn restrict(path: &Path) -> Result<(), FileError> {
    #[cfg(unix)]
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600))
        .map_err(|source| super::files::io_error(path, "made private", source))?;
    Ok(())
}

fn discard(path: &Path) {
    for suffix in ["", "-wal", "-shm"] {
        let mut file = path.as_os_str().to_owned();
        file.push(suffix);
        // If it cannot be removed, creating the new one fails.
        let _ = fs::remove_file(PathBuf::from(file));
    }
}
