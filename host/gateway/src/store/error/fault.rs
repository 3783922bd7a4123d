//! What stopped an operation, and which store error that is.

use std::{
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
};

use pmk_core::text::collapse_whitespace;
use pmk_index::IndexError;
use pmk_system::panics;
use rusqlite::{ErrorCode, ffi};
use rustix::process::{Resource, getrlimit};
use tokio_postgres::error::SqlState;

use super::StoreError;
use crate::store::{paths, sql};

/// Read errors that mean that the data read is not what was written.
const DAMAGE: [i32; 3] = [ffi::SQLITE_IOERR_SHORT_READ, ffi::SQLITE_IOERR_CORRUPTFS, ffi::SQLITE_IOERR_DATA];

/// The largest write of SQLite: a page, or a piece of the log's index.
const LARGEST_WRITE: u64 = 32 << 10;

/// What stopped an operation, before it is known which file it concerns.
#[derive(Debug)]
pub(in crate::store) enum Fault {
    Sql(sql::Error),
    /// Stored data that is invalid.
    Damaged(String),
    /// The operation panicked, with this message.
    Panicked(String),
    Store(StoreError),
}

impl From<sql::Error> for Fault {
    fn from(error: sql::Error) -> Self {
        Fault::Sql(error)
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Fault::Sql(error.into())
    }
}

impl From<IndexError> for Fault {
    fn from(IndexError::Sqlite { source, .. }: IndexError) -> Self {
        Fault::Sql(source.into())
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Fault::Store(error)
    }
}

impl Fault {
    /// Returns the error for callers; for a database that is not a file, the path is its name.
    pub(in crate::store) fn at(self, path: &Path) -> StoreError {
        match self {
            Fault::Store(error) => error,
            Fault::Damaged(message) => StoreError::Damaged { path: path.to_owned(), message },
            Fault::Panicked(message) => StoreError::Panicked { message },
            Fault::Sql(sql::Error::Sqlite(error)) => of_sqlite(&error, path),
            Fault::Sql(sql::Error::Postgres(error) | sql::Error::Undone(Some(error))) => of_postgres(&error, path),
            Fault::Sql(sql::Error::Away(message)) => StoreError::Away { path: path.to_owned(), message },
            // The statements are correct, so the value is wrong.
            Fault::Sql(error @ sql::Error::Column { .. }) => {
                StoreError::Damaged { path: path.to_owned(), message: error.to_string() }
            }
            Fault::Sql(error @ (sql::Error::NoRow | sql::Error::Undone(None))) => {
                StoreError::Sql { path: path.to_owned(), message: error.to_string() }
            }
        }
    }
}

/// Runs an operation and turns its panic into an error, so that the thread goes on.
pub(in crate::store) fn guarded<T>(work: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    // The caller rolls back what it leaves in the database; it shares nothing else with other operations.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(Fault::Panicked(panics::words(&*panic))))
}

fn of_sqlite(error: &rusqlite::Error, path: &Path) -> StoreError {
    let path = path.to_owned();
    let message = match error {
        rusqlite::Error::SqliteFailure(_, Some(message)) => collapse_whitespace(message),
        other => collapse_whitespace(&other.to_string()),
    };
    let Some(failure) = error.sqlite_error() else {
        return match error {
            // The statements are correct, so the value is wrong.
            rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::Utf8Error(..) => StoreError::Damaged { path, message },
            _ => StoreError::Sql { path, message },
        };
    };
    match failure.code {
        ErrorCode::DiskFull => StoreError::Full { path },
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => StoreError::Busy { path },
        ErrorCode::NotADatabase => StoreError::NoDatabase { path, message },
        ErrorCode::DatabaseCorrupt => StoreError::Damaged { path, message },
        ErrorCode::SystemIoFailure if DAMAGE.contains(&failure.extended_code) => StoreError::Damaged { path, message },
        ErrorCode::SystemIoFailure => match limit_met(&path) {
            Some(bytes) => StoreError::Limited { path, bytes },
            None => StoreError::Io { path, message },
        },
        ErrorCode::CannotOpen
        | ErrorCode::ReadOnly
        | ErrorCode::PermissionDenied
        | ErrorCode::OutOfMemory
        | ErrorCode::FileLockingProtocolFailed => StoreError::Io { path, message },
        _ => StoreError::Sql { path, message },
    }
}

/// The SQL state that our database functions raise where a host has lost its right to write.
const TAKEN_OVER: &str = "PMK01";

fn of_postgres(error: &tokio_postgres::Error, path: &Path) -> StoreError {
    let (path, message) = (path.to_owned(), sql::words(error));
    let Some(code) = error.code() else { return StoreError::Away { path, message } };
    if code.code() == TAKEN_OVER {
        return StoreError::TakenOver { path };
    }
    match code {
        &SqlState::DISK_FULL => StoreError::Full { path },
        &SqlState::LOCK_NOT_AVAILABLE | &SqlState::T_R_DEADLOCK_DETECTED | &SqlState::T_R_SERIALIZATION_FAILURE => {
            StoreError::Busy { path }
        }
        &SqlState::DATA_CORRUPTED | &SqlState::INDEX_CORRUPTED => StoreError::Damaged { path, message },
        &SqlState::READ_ONLY_SQL_TRANSACTION | &SqlState::QUERY_CANCELED => StoreError::Away { path, message },
        &SqlState::INSUFFICIENT_PRIVILEGE => StoreError::Refused { path, message },
        code => match code.code().get(..2) {
            // Authentication has failed, or the database does not exist.
            Some("28" | "3D") => StoreError::Refused { path, message },
            Some("08") if message.starts_with(sql::NO_OPTIONS) => StoreError::Refused { path, message },
            // What a pooler reports about the server behind it.
            Some("08") => StoreError::Away { path, message },
            // The server lacks resources at the moment.
            Some("53" | "57" | "58") => StoreError::Away { path, message },
            _ => StoreError::Sql { path, message },
        },
    }
}

/// Returns the limit on the size of this process's files, where one of the store's files has reached it: SQLite
/// reports that a write was refused, but not why.
fn limit_met(path: &Path) -> Option<u64> {
    let limit = getrlimit(Resource::Fsize).current?;
    let is_there =
        |path: PathBuf| fs::metadata(path).is_ok_and(|file| file.len().saturating_add(LARGEST_WRITE) > limit);
    paths::all(path).into_iter().any(is_there).then_some(limit)
}
