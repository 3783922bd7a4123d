//! What stopped an operation, and what that means to whoever wanted it.

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

/// Failures to read that say what was read is not what was written.
const DAMAGE: [i32; 3] = [ffi::SQLITE_IOERR_SHORT_READ, ffi::SQLITE_IOERR_CORRUPTFS, ffi::SQLITE_IOERR_DATA];

/// SQLite writes no more than this at once: a page, or a piece of the log's index.
const LARGEST_WRITE: u64 = 32 << 10;

/// What stopped an operation, before it is known which file it was about.
#[derive(Debug)]
pub(in crate::store) enum Fault {
    Sql(sql::Error),
    /// Something stored that is not what we store.
    Damaged(String),
    /// The operation panicked, and said this.
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
    /// The error as callers see it; a database that is not a file has its name for a path.
    pub(in crate::store) fn at(self, path: &Path) -> StoreError {
        match self {
            Fault::Store(error) => error,
            Fault::Damaged(message) => StoreError::Damaged { path: path.to_owned(), message },
            Fault::Panicked(message) => StoreError::Panicked { message },
            Fault::Sql(sql::Error::Sqlite(error)) => of_sqlite(&error, path),
            Fault::Sql(sql::Error::Postgres(error) | sql::Error::Undone(Some(error))) => of_postgres(&error, path),
            Fault::Sql(sql::Error::Away(message)) => StoreError::Away { path: path.to_owned(), message },
            // The statements are right, so it is the value.
            Fault::Sql(error @ sql::Error::Column { .. }) => {
                StoreError::Damaged { path: path.to_owned(), message: error.to_string() }
            }
            Fault::Sql(error @ (sql::Error::NoRow | sql::Error::Undone(None))) => {
                StoreError::Sql { path: path.to_owned(), message: error.to_string() }
            }
        }
    }
}

/// Does an operation whose panic is its own failure, and nobody else's: the thread that does it goes on.
pub(in crate::store) fn guarded<T>(work: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    // What it leaves behind in the database is undone by the caller; it has nothing else in common with others.
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
            // The statements are right, so it is the value.
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

/// What our own functions in the database say where a host has lost the right to write.
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
            // Who we are, and which database is meant.
            Some("28" | "3D") => StoreError::Refused { path, message },
            Some("08") if message.starts_with(sql::NO_OPTIONS) => StoreError::Refused { path, message },
            // What a pooler says of the server behind it.
            Some("08") => StoreError::Away { path, message },
            // What the server lacks at the moment.
            Some("53" | "57" | "58") => StoreError::Away { path, message },
            _ => StoreError::Sql { path, message },
        },
    }
}

/// The limit on the size of this process's files, where one of the store's has met it: SQLite tells of a write
/// that was refused, and not why.
fn limit_met(path: &Path) -> Option<u64> {
    let limit = getrlimit(Resource::Fsize).current?;
    let is_there =
        |path: PathBuf| fs::metadata(path).is_ok_and(|file| file.len().saturating_add(LARGEST_WRITE) > limit);
    paths::all(path).into_iter().any(is_there).then_some(limit)
}
