//! What can go wrong in the store.

use std::path::{Path, PathBuf};

use pmk_core::SessionKey;
use rusqlite::ErrorCode;
use thiserror::Error;

use super::TurnId;
use crate::{error::Failure, search::IndexError};

/// Why the store could not do something. Whatever it was, nothing of the operation was kept.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum StoreError {
    /// There is no store yet.
    #[error("there is no store at `{}`", path.display())]
    Missing { path: PathBuf },
    /// A later version of the program wrote it.
    #[error("`{}` was written by a newer pmk-host: its schema is version {found}, this one knows {known}", path.display())]
    Newer { path: PathBuf, found: u32, known: u32 },
    /// It needs a migration, which a running gateway would not survive.
    #[error("`{}` is in use by an older pmk-host: its schema is version {found}, this one needs {known}", path.display())]
    Outdated { path: PathBuf, found: u32, known: u32 },
    /// The file is a database, but not one of ours.
    #[error("`{}` is not a store of pmk-host", path.display())]
    Foreign { path: PathBuf },
    /// The file or something in it cannot be understood.
    #[error("the store `{}` is damaged: {message}", path.display())]
    Damaged { path: PathBuf, message: String },
    /// There is no room for what was to be written. The store goes on once there is.
    #[error("the disk is full: `{}` cannot be written", path.display())]
    Full { path: PathBuf },
    /// The file cannot be read or written.
    #[error("cannot use the store `{}`: {message}", path.display())]
    Io { path: PathBuf, message: String },
    /// Another process kept the file locked.
    #[error("the store `{}` was locked by another process for more than {} s", path.display(), super::connection::BUSY_TIMEOUT.as_secs())]
    Busy { path: PathBuf },
    /// Another process works on the conversation.
    #[error("`{key}` is being worked on by {owner}")]
    Leased { key: SessionKey, owner: String },
    /// The lease ran out, or a `run` that started meanwhile made it void.
    #[error("`{key}` was taken over by someone else")]
    LeaseLost { key: SessionKey },
    /// No conversation has this key.
    #[error("there is no conversation `{0}`")]
    UnknownSession(SessionKey),
    /// A conversation of this key has messages, which are not to be mixed with others.
    #[error("there is a conversation `{0}` already")]
    Exists(SessionKey),
    /// The turn is not in a state in which this can happen to it: a bug of the caller.
    #[error("turn {turn} {why}")]
    WrongState { turn: TurnId, why: &'static str },
    /// The live window has no such position: a bug of the caller.
    #[error("the live window has no position {0}")]
    NoSuchPosition(i64),
    /// The store is being closed.
    #[error("the store is closed")]
    Closed,
    /// SQLite refused for a reason that none of the above names.
    #[error("the store `{}` failed: {message}", path.display())]
    Sqlite { path: PathBuf, message: String },
}

impl StoreError {
    /// Whether the same may succeed a little later.
    pub fn is_passing(&self) -> bool {
        use StoreError::{Busy, Full, Io, LeaseLost, Leased};
        matches!(self, Full { .. } | Io { .. } | Busy { .. } | Leased { .. } | LeaseLost { .. })
    }

    /// Whether nothing can be stored any more by this process.
    pub fn is_lost(&self) -> bool {
        use StoreError::{Closed, Foreign, Missing, Newer, Outdated};
        matches!(self, Closed | Foreign { .. } | Missing { .. } | Newer { .. } | Outdated { .. })
    }

    /// What the operator can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            StoreError::Missing { .. } => Some("`pmk-host run` makes one; is `--home` right?"),
            StoreError::Newer { .. } => Some("upgrade pmk-host, or give another `--home`"),
            StoreError::Outdated { .. } => Some("restart `pmk-host run` with this version first"),
            StoreError::Foreign { .. } => Some("move the file away, or give another `--home`"),
            StoreError::Damaged { .. } => Some(
                "restore it from a backup or try `sqlite3 FILE .recover`; with the file moved away, all starts anew",
            ),
            StoreError::Full { .. } => Some("make room on the disk; what was not accepted will be sent again"),
            StoreError::Io { .. } => Some("check the disk, and that you own the file and may write to it"),
            StoreError::Busy { .. } => Some("close whatever else has the file open"),
            StoreError::Leased { .. } => Some("try again when its turn is over"),
            StoreError::LeaseLost { .. } => Some("try again"),
            StoreError::UnknownSession(_) => Some("`pmk-host sessions list` shows them all"),
            StoreError::Exists(_) => Some("`--replace` empties its live window first; its archive stays"),
            StoreError::Sqlite { .. } => {
                Some("`sqlite3 FILE 'PRAGMA integrity_check'` shows whether the file is sound")
            }
            StoreError::WrongState { .. } | StoreError::NoSuchPosition(_) | StoreError::Closed => None,
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let failure = Failure::new(&error);
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

/// What stopped an operation, before it is known which file it was about.
#[derive(Debug)]
pub(super) enum Fault {
    Sqlite(rusqlite::Error),
    /// Something stored that is not what we store.
    Damaged(String),
    Store(StoreError),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Fault::Sqlite(error)
    }
}

impl From<IndexError> for Fault {
    fn from(IndexError::Sqlite { source, .. }: IndexError) -> Self {
        Fault::Sqlite(source)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Fault::Store(error)
    }
}

impl Fault {
    /// The error as callers see it.
    pub(super) fn at(self, path: &Path) -> StoreError {
        let path = path.to_owned();
        let error = match self {
            Fault::Store(error) => return error,
            Fault::Damaged(message) => return StoreError::Damaged { path, message },
            Fault::Sqlite(error) => error,
        };
        let message = match &error {
            rusqlite::Error::SqliteFailure(_, Some(message)) => one_line(message),
            other => one_line(&other.to_string()),
        };
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => StoreError::Full { path },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy { path },
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreError::Damaged { path, message },
            Some(
                ErrorCode::SystemIoFailure
                | ErrorCode::CannotOpen
                | ErrorCode::ReadOnly
                | ErrorCode::PermissionDenied
                | ErrorCode::FileLockingProtocolFailed,
            ) => StoreError::Io { path, message },
            _ => StoreError::Sqlite { path, message },
        }
    }
}

fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}
