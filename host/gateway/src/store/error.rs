//! What can go wrong in the store.

mod fault;

use std::{
    borrow::Cow,
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

use pmk_core::SessionKey;
use pmk_system::error::Failure;
use thiserror::Error;

pub(super) use fault::{Fault, guarded};

use super::{paths, sql};
use crate::{database::SCHEME, ids::TurnId};

/// How long a statement waits for another process to let go of the file.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

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
    /// It needs a migration, for which the disk has no room: none is begun.
    #[error(
        "not enough disk space to upgrade the store `{}`: its backup and the upgrade need {} MiB, and {} MiB are free",
        path.display(), needed.div_ceil(1 << 20), free >> 20
    )]
    NoRoom { path: PathBuf, needed: u64, free: u64 },
    /// A migration, or the backup before it, has failed, and the store is as it was.
    #[error("cannot upgrade the store `{}` from schema {found} to {known}: {why}", path.display())]
    NotUpgraded {
        path: PathBuf,
        found: u32,
        known: u32,
        why: String,
        /// The one that was made before.
        backup: Option<PathBuf>,
    },
    /// The file is a database, but not one of ours.
    #[error("`{}` is not a store of pmk-host", path.display())]
    Foreign { path: PathBuf },
    /// The home had a store, and has lost it; or lost it while it was open, and what is written goes nowhere.
    #[error("the store `{}` {how}", path.display())]
    Gone { path: PathBuf, how: Loss },
    /// The file is no database, or its beginning is destroyed: nothing of it can be reached.
    #[error("`{}` is not a readable database: {message}", path.display())]
    NoDatabase { path: PathBuf, message: String },
    /// Something in the file cannot be understood. What does not need it goes on.
    #[error("the store `{}` is damaged: {message}", path.display())]
    Damaged { path: PathBuf, message: String },
    /// There is no room for what was to be written. The store goes on once there is.
    #[error("the disk is full: `{}` cannot be written", path.display())]
    Full { path: PathBuf },
    /// The file is as large as the process's files may be. The store goes on once it may grow.
    #[error("cannot write `{}`: files of this process cannot grow beyond {bytes} bytes", path.display())]
    Limited { path: PathBuf, bytes: u64 },
    /// The file cannot be read or written.
    #[error("cannot use the store `{}`: {message}", path.display())]
    Io { path: PathBuf, message: String },
    /// Another process kept the file locked.
    #[error("the store `{}` was locked by another process for more than {} s", path.display(), BUSY_TIMEOUT.as_secs())]
    Busy { path: PathBuf },
    /// Another process works on the conversation.
    #[error("`{key}` is being processed by {owner}")]
    Leased { key: SessionKey, owner: String },
    /// The lease ran out, or a `run` that started meanwhile made it void.
    #[error("`{key}` was taken over by someone else")]
    LeaseLost { key: SessionKey },
    /// No conversation has this key.
    #[error("there is no conversation `{0}`")]
    UnknownSession(SessionKey),
    /// A conversation of this key has messages, which are not to be mixed with others.
    #[error("conversation `{0}` already exists")]
    Exists(SessionKey),
    /// The turn is not in a state in which this can happen to it: a bug of the caller.
    #[error("turn {turn} {why}")]
    WrongState { turn: TurnId, why: &'static str },
    /// People have changed something about the turn, or about the window that it was begun with, since: it has to be begun anew.
    #[error("what the turn was based on has changed since it started")]
    Changed,
    /// The live window has no such position: a bug of the caller.
    #[error("the live window has no position {0}")]
    NoSuchPosition(i64),
    /// The store is being closed.
    #[error("the store is closed")]
    Closed,
    /// The operation ended in a panic, and was undone: a bug of the store.
    #[error("the store failed because of a bug in this program: {message}")]
    Panicked { message: String },
    /// The database refused for a reason that none of the above names.
    #[error("the store `{}` failed: {message}", path.display())]
    Sql { path: PathBuf, message: String },
    /// PostgreSQL cannot be reached, or has no room for us at the moment. The store goes on once it can be.
    #[error("cannot reach the database `{}`: {message}", path.display())]
    Away { path: PathBuf, message: String },
    /// PostgreSQL does not let us in, or not to what the store needs.
    #[error("the database `{}` refuses access: {message}", path.display())]
    Refused { path: PathBuf, message: String },
    /// What leads to PostgreSQL cannot be used: a password file, roots of certificates. Nobody was asked.
    #[error("cannot connect to the database `{}`: {message}", path.display())]
    Unusable { path: PathBuf, message: String, hint: Option<String> },
    /// Another host has taken the work over: this one was not heard of for longer than its lease.
    #[error("another host has taken over the database `{}`: this host was silent for too long", path.display())]
    TakenOver { path: PathBuf },
    /// A copy to it was cut short.
    #[error("a copy to the store `{}` is not finished", path.display())]
    Unfinished { path: PathBuf },
    /// Another host works on the database.
    #[error("the database `{}` is in use by {owner}", path.display())]
    InUse { path: PathBuf, owner: String },
}

/// How a home comes to have no store any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Nothing is at its path.
    Missing,
    /// The file is there and has 0 bytes.
    Emptied,
    /// The file is shorter than it was.
    Shrunk,
    /// Another file is at the path of the one that is open.
    Replaced,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Loss::Missing => "no longer exists",
            Loss::Emptied => "has been emptied: it has 0 bytes",
            Loss::Shrunk => "was truncated while it was in use",
            Loss::Replaced => "was replaced by another file while it was in use",
        })
    }
}

/// What an error means for whoever met it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreErrorKind {
    /// The same may work later: a full disk, a file or a conversation that someone else has.
    Passing,
    /// The same will never work, and others go on: a damaged row, a bug. What met it is put aside, for people
    /// to look at.
    Stuck,
    /// Nothing works any more, and nothing may be acknowledged: the process has to end.
    Lost,
}

impl StoreError {
    /// What it means for whoever met it.
    pub fn kind(&self) -> StoreErrorKind {
        match self {
            StoreError::Full { .. }
            | StoreError::Limited { .. }
            | StoreError::Io { .. }
            | StoreError::Busy { .. }
            | StoreError::NoRoom { .. }
            | StoreError::Away { .. }
            | StoreError::Refused { .. }
            | StoreError::Unusable { .. }
            | StoreError::InUse { .. }
            | StoreError::Leased { .. }
            | StoreError::LeaseLost { .. }
            | StoreError::Changed => StoreErrorKind::Passing,
            StoreError::Damaged { .. }
            | StoreError::UnknownSession(_)
            | StoreError::Exists(_)
            | StoreError::WrongState { .. }
            | StoreError::NoSuchPosition(_)
            | StoreError::Panicked { .. }
            | StoreError::Sql { .. } => StoreErrorKind::Stuck,
            StoreError::Missing { .. }
            | StoreError::Newer { .. }
            | StoreError::Outdated { .. }
            | StoreError::NotUpgraded { .. }
            | StoreError::Foreign { .. }
            | StoreError::Gone { .. }
            | StoreError::NoDatabase { .. }
            | StoreError::TakenOver { .. }
            | StoreError::Unfinished { .. }
            | StoreError::Closed => StoreErrorKind::Lost,
        }
    }

    /// Whether waiting and trying again is worth it.
    pub fn is_passing(&self) -> bool {
        self.kind() == StoreErrorKind::Passing
    }

    /// Whether the whole store is gone, and not only what this operation wanted of it.
    pub fn is_lost(&self) -> bool {
        self.kind() == StoreErrorKind::Lost
    }

    /// What the operator can do about it.
    pub fn hint(&self) -> Option<Cow<'static, str>> {
        match self {
            StoreError::Newer { path, known, .. } => {
                paths::way_back(path, *known).map(|backup| Cow::Owned(format!(
                    "upgrade pmk-host; or go back to the state before the upgrade with `pmk-host store restore {}` of \
                     this version: the current store is moved aside",
                    backup.display()
                )))
            }
            StoreError::NotUpgraded { backup: Some(backup), .. } => Some(Cow::Owned(format!(
                "the store was not changed, and the previous pmk-host can still use it; there is also a backup in \
                 `{}`; please report this",
                backup.display()
            ))),
            StoreError::Gone { path, how: Loss::Missing } if !paths::is_beside(path) => {
                paths::last_aside(path).map(|aside| Cow::Owned(format!(
                    "the previous store was moved aside to `{}`: if `pmk-host store restore` or `pmk-host store renew` \
                     was interrupted, run it again; or move the file back to its name",
                    aside.display()
                )))
            }
            StoreError::Unusable { hint, .. } => hint.clone().map(Cow::Owned),
            _ => None,
        }
        .or_else(|| self.settled_hint().map(Cow::Borrowed))
    }

    /// What can be said without looking.
    fn settled_hint(&self) -> Option<&'static str> {
        match self {
            StoreError::Missing { path } if is_a_database(path) => {
                Some("`pmk-host run` creates the tables; check that this is the right database")
            }
            StoreError::Foreign { path } if is_a_database(path) => {
                Some("give the store its own database or schema: `?options=-csearch_path%3Dpmk`")
            }
            StoreError::Newer { path, .. } if is_a_database(path) => {
                Some("upgrade pmk-host, or specify another database")
            }
            StoreError::Full { path } if is_a_database(path) => Some("free disk space on the machine of the database"),
            StoreError::Busy { path } if is_a_database(path) => {
                Some("find out what holds its locks in `pg_stat_activity`")
            }
            StoreError::Damaged { path, .. } if is_a_database(path) => Some(
                "a damaged conversation can be restarted with `pmk-host sessions reset KEY`; lost data can be restored \
                 from your backups of the database",
            ),
            StoreError::Missing { .. } => Some("`pmk-host run` creates one; check that `--home` is right"),
            StoreError::Newer { .. } => Some("upgrade pmk-host, or use another `--home`"),
            StoreError::Outdated { .. } => Some("restart `pmk-host run` with this version first"),
            StoreError::NoRoom { .. } => Some("free disk space; the store was not changed"),
            StoreError::NotUpgraded { .. } => {
                Some("the store was not changed; fix the problem and start again, or keep using the previous pmk-host")
            }
            StoreError::Foreign { .. } => Some("move the file elsewhere, or use another `--home`"),
            StoreError::Gone { how: Loss::Shrunk, .. } => Some(
                "stop pmk-host, then run `pmk-host store check`: if it finds damage, restore a backup with `pmk-host \
                 store restore FILE`",
            ),
            StoreError::Gone { path, .. } if paths::is_beside(path) => {
                Some("the database itself is still there: stop pmk-host, run `pmk-host store check`, then start again")
            }
            StoreError::Gone { .. } | StoreError::NoDatabase { .. } => Some(
                "if it was moved, move it back to its name; otherwise stop pmk-host and restore a backup with \
                 `pmk-host store restore FILE`; without a backup, `pmk-host store renew` moves aside what is left and \
                 starts with an empty store",
            ),
            StoreError::Damaged { .. } => Some(
                "`pmk-host store check` shows what is damaged; a damaged conversation can be restarted with `pmk-host \
                 sessions reset KEY`; or stop pmk-host, then use `pmk-host store restore FILE` with a backup, or with \
                 what `sqlite3 STORE .recover | sqlite3 FILE` saves (sqlite3 3.43 or newer)",
            ),
            StoreError::Limited { .. } => Some("raise the limit (`ulimit -f`, `LimitFSIZE=` of systemd)"),
            StoreError::Panicked { .. } => Some("the log says where; please report this"),
            StoreError::Full { .. } => Some("free disk space"),
            StoreError::Io { .. } => Some("check the disk, and that you own the file and can write to it"),
            StoreError::Busy { .. } => Some("close other programs that have the file open"),
            StoreError::Leased { .. } => Some("try again when its current turn is finished"),
            StoreError::LeaseLost { .. } | StoreError::Changed => Some("try again"),
            StoreError::UnknownSession(_) => Some("list all conversations with `pmk-host sessions list`"),
            StoreError::Exists(_) => Some("`--replace` empties its live window first; its archive stays"),
            StoreError::Sql { path, .. } if is_a_database(path) => {
                Some("see PostgreSQL's own log for details; please report this")
            }
            StoreError::Sql { .. } => Some("`sqlite3 FILE 'PRAGMA integrity_check'` shows whether the file is intact"),
            StoreError::Away { .. } => {
                Some("check that it is running and that this machine can reach it; its data is kept")
            }
            StoreError::Refused { message, .. } if message.starts_with(sql::NO_OPTIONS) => Some(
                "a connection pooler in front of it does not pass on `options`: remove them from the address, and set \
                 the schema for the user with `ALTER ROLE pmk SET search_path = pmk`",
            ),
            StoreError::Refused { .. } => {
                Some("check the user, password and database in `store`; the user must own the schema of the store")
            }
            StoreError::TakenOver { .. } => Some("the other hosts answer what it was working on; start it again"),
            StoreError::InUse { .. } => Some("stop it first"),
            StoreError::Unfinished { .. } => {
                Some("run the same `pmk-host store copy` again: it continues where it stopped")
            }
            StoreError::Unusable { .. }
            | StoreError::WrongState { .. }
            | StoreError::NoSuchPosition(_)
            | StoreError::Closed => None,
        }
    }
}

/// Whether a store is not a file: then its path is the address of a database, without the password.
pub(super) fn is_a_database(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().starts_with(SCHEME.as_bytes())
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
