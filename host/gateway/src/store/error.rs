//! Errors of the store.

mod fault;

use std::{
    borrow::Cow,
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

use pmk_core::SessionKey;
use pmk_system::{error::Failure, home};
use thiserror::Error;

pub(super) use fault::{Fault, guarded};

use super::{paths, sql};
use crate::{database::SCHEME, ids::TurnId};

/// How long a statement waits for another process to unlock the file.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Why the store could not do something. In every case, nothing of the operation was kept.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum StoreError {
    /// There is no store yet.
    #[error("there is no store at `{}`", path.display())]
    Missing { path: PathBuf },
    /// A later version of the program wrote it.
    #[error("`{}` was written by a newer pmk-host: its schema is version {found}, this one knows {known}", path.display())]
    Newer { path: PathBuf, found: u32, known: u32 },
    /// It needs a migration, which an older gateway that is running would not survive.
    #[error("`{}` is in use by an older pmk-host: its schema is version {found}, this one needs {known}", path.display())]
    Outdated { path: PathBuf, found: u32, known: u32 },
    /// It needs a migration, and cannot be written.
    #[error(
        "`{}` is of an older pmk-host and can only be read: its schema is version {found}, this one needs {known}",
        path.display()
    )]
    OldAndReadOnly { path: PathBuf, found: u32, known: u32 },
    /// It needs a migration, for which there is not enough disk space: none was begun.
    #[error(
        "not enough disk space to upgrade the store, on the disk of `{}`: {} MiB are needed, and {} MiB are free",
        path.display(), needed.div_ceil(1 << 20), free >> 20
    )]
    NoRoom { path: PathBuf, needed: u64, free: u64 },
    /// A migration of a store in a database, or the backup before one of a file, has failed, and the store is unchanged.
    #[error("cannot upgrade the store `{}` from schema {found} to {known}: {why}", path.display())]
    NotMigrated { path: PathBuf, found: u32, known: u32, why: String },
    /// A migration of a file has failed, and the store is unchanged.
    #[error("cannot upgrade the store `{}` from schema {found} to {known}: {why}", path.display())]
    NotUpgraded {
        path: PathBuf,
        found: u32,
        known: u32,
        why: Box<StoreError>,
        /// The backup made before the migration.
        backup: PathBuf,
    },
    /// The file is a database, but not a store of this program.
    #[error("`{}` is not a store of pmk-host", path.display())]
    Foreign { path: PathBuf },
    /// The store of this home is gone; or it was lost while it was open, and what is written goes nowhere.
    #[error("the store `{}` {how}", path.display())]
    Gone { path: PathBuf, how: Loss },
    /// The file is no database, or its beginning is destroyed: nothing in it can be read.
    #[error("`{}` is not a readable database: {message}", path.display())]
    NoDatabase { path: PathBuf, message: String },
    /// Some data in the file is invalid. Operations that do not need it still work.
    #[error("the store `{}` is damaged: {message}", path.display())]
    Damaged { path: PathBuf, message: String },
    /// The disk is full. The store works again once there is space.
    #[error("the disk is full: `{}` cannot be written", path.display())]
    Full { path: PathBuf },
    /// The file has reached the process's file size limit. The store works again once the limit is raised.
    #[error("cannot write `{}`: files of this process cannot grow beyond {bytes} bytes", path.display())]
    Limited { path: PathBuf, bytes: u64 },
    /// The file cannot be read or written.
    #[error("cannot use the store `{}`: {message}", path.display())]
    Io { path: PathBuf, message: String },
    /// Another process kept the file locked.
    #[error("the store `{}` was locked by another process for more than {} s", path.display(), BUSY_TIMEOUT.as_secs())]
    Busy { path: PathBuf },
    /// Another process is working on the conversation.
    #[error("`{key}` is being processed by {owner}")]
    Leased { key: SessionKey, owner: String },
    /// The conversation has messages that are not answered yet.
    #[error("`{0}` has messages that are not answered yet")]
    Unanswered(SessionKey),
    /// Somebody has written in a conversation that was to be erased because nobody had.
    #[error("somebody has written in `{0}` meanwhile")]
    NotIdle(SessionKey),
    /// A contact was asked in the conversation, and the answer did not come yet.
    #[error("`{0}` waits for a contact's answer")]
    AwaitsContact(SessionKey),
    /// The lease expired, or a `run` that started meanwhile made it void.
    #[error("`{key}` was taken over by someone else")]
    LeaseLost { key: SessionKey },
    /// No conversation has this key.
    #[error("there is no conversation `{0}`")]
    UnknownSession(SessionKey),
    /// A conversation with this key has messages, which must not be mixed with others.
    #[error("conversation `{0}` already exists")]
    Exists(SessionKey),
    /// The turn is not in a state that allows the operation: a bug of the caller.
    #[error("turn {turn} {why}")]
    WrongState { turn: TurnId, why: &'static str },
    /// People have changed something about the turn, or about the window that it was begun with: it has to be begun
    /// anew.
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
    /// The database failed for a reason that has no variant of its own.
    #[error("the store `{}` failed: {message}", path.display())]
    Sql { path: PathBuf, message: String },
    /// PostgreSQL cannot be reached, or accepts no more connections at the moment. The store works again once it
    /// can be reached.
    #[error("cannot reach the database `{}`: {message}", path.display())]
    Away { path: PathBuf, message: String },
    /// PostgreSQL denies access, or access to what the store needs.
    #[error("the database `{}` refuses access: {message}", path.display())]
    Refused { path: PathBuf, message: String },
    /// PostgreSQL keeps the database in an encoding that cannot hold what people write.
    #[error("the database `{}` has the encoding {encoding}, but must have UTF8", path.display())]
    Encoding { path: PathBuf, encoding: String },
    /// The connection settings cannot be used: a password file, root certificates. No connection was tried.
    #[error("cannot connect to the database `{}`: {message}", path.display())]
    Unusable { path: PathBuf, message: String, hint: Option<String> },
    /// Another host has taken the work over: this one was not heard of for longer than its lease.
    #[error("another host has taken over the database `{}`: this host was silent for too long", path.display())]
    TakenOver { path: PathBuf },
    /// A copy to this store was interrupted.
    #[error("a copy to the store `{}` is not finished", path.display())]
    Unfinished { path: PathBuf },
    /// Another host is using the database.
    #[error("the database `{}` is in use by {owner}", path.display())]
    InUse { path: PathBuf, owner: String },
}

/// How a home has lost its store.
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

/// What an error means for its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreErrorKind {
    /// The same operation may work later: a full disk, or a file or conversation that someone else holds.
    Passing,
    /// The same operation will never work, but others do: a damaged row, a bug. The message it concerns is parked
    /// for people to look at.
    Stuck,
    /// Nothing works any more, and nothing may be acknowledged: the process has to end.
    Lost,
}

impl StoreError {
    /// Returns what it means for its caller.
    pub fn kind(&self) -> StoreErrorKind {
        match self {
            StoreError::Full { .. }
            | StoreError::Limited { .. }
            | StoreError::Io { .. }
            | StoreError::Busy { .. }
            | StoreError::NoRoom { .. }
            | StoreError::Away { .. }
            | StoreError::Refused { .. }
            | StoreError::Encoding { .. }
            | StoreError::Unusable { .. }
            | StoreError::InUse { .. }
            | StoreError::Leased { .. }
            | StoreError::Unanswered(_)
            | StoreError::AwaitsContact(_)
            | StoreError::NotIdle(_)
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
            | StoreError::OldAndReadOnly { .. }
            | StoreError::NotMigrated { .. }
            | StoreError::NotUpgraded { .. }
            | StoreError::Foreign { .. }
            | StoreError::Gone { .. }
            | StoreError::NoDatabase { .. }
            | StoreError::TakenOver { .. }
            | StoreError::Unfinished { .. }
            | StoreError::Closed => StoreErrorKind::Lost,
        }
    }

    /// Whether it is worth waiting and trying again.
    pub fn is_passing(&self) -> bool {
        self.kind() == StoreErrorKind::Passing
    }

    /// Whether nothing else can be stored either, until somebody does something about the disk or the file.
    pub(super) fn is_of_disk(&self) -> bool {
        matches!(
            self,
            StoreError::Full { .. } | StoreError::Limited { .. } | StoreError::Io { .. } | StoreError::Busy { .. }
        )
    }

    /// Whether a conversation is busy: others can be worked on.
    pub fn is_of_conversation(&self) -> bool {
        matches!(
            self,
            StoreError::Leased { .. }
                | StoreError::LeaseLost { .. }
                | StoreError::Unanswered(_)
                | StoreError::AwaitsContact(_)
                | StoreError::NotIdle(_)
        )
    }

    /// Whether the whole store is lost, and not only this operation failed.
    pub fn is_lost(&self) -> bool {
        self.kind() == StoreErrorKind::Lost
    }

    /// Returns what the operator can do about it.
    pub fn hint(&self) -> Option<Cow<'static, str>> {
        match self {
            StoreError::Newer { path, known, .. } => paths::way_back(path, *known).map(|backup| {
                let backup = backup.display().to_string();
                let backup = shlex::try_quote(&backup).unwrap_or_else(|_| backup.as_str().into());
                let restore = command(path, &format!("store restore {backup}"));
                Cow::Owned(format!(
                    "upgrade pmk-host; or go back to the state before the upgrade with `{restore}` of this version: the \
                     current store is moved aside"
                ))
            }),
            StoreError::NotUpgraded { why, backup, .. } => {
                let advice = if why.is_of_disk() { why.hint() } else { None };
                Some(Cow::Owned(format!(
                    "the store was not changed, and the previous pmk-host can still use it; there is also a backup in \
                     `{}`; {}",
                    backup.display(),
                    advice.as_deref().unwrap_or("please report this")
                )))
            }
            StoreError::Gone { path, how } => Some(Cow::Owned(hint_of_loss(path, *how))),
            StoreError::NoDatabase { path, .. } => Some(Cow::Owned(hint_of_loss(path, Loss::Emptied))),
            StoreError::Damaged { path, .. } if !is_a_database(path) => Some(Cow::Owned(format!(
                "`{}` shows what is damaged; a damaged conversation can be restarted with `{}`; or stop pmk-host, then \
                 use `{}` with a backup, or with what `sqlite3 STORE .recover | sqlite3 FILE` saves (sqlite3 3.43 or \
                 newer)",
                command(path, "store check"),
                command(path, "sessions reset KEY"),
                command(path, "store restore FILE")
            ))),
            StoreError::Unusable { hint, .. } => hint.clone().map(Cow::Owned),
            _ => None,
        }
        .or_else(|| self.settled_hint().map(Cow::Borrowed))
    }

    /// Returns a hint that needs no look at the disk.
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
            StoreError::Damaged { .. } => Some(
                "a damaged conversation can be restarted with `pmk-host sessions reset KEY`; lost data can be restored \
                 from your backups of the database",
            ),
            StoreError::Missing { .. } => Some("`pmk-host run` creates one; check that `--home` is right"),
            StoreError::Newer { .. } => Some("upgrade pmk-host, or use another `--home`"),
            StoreError::Outdated { .. } => Some("restart `pmk-host run` with this version first"),
            StoreError::NoRoom { .. } => Some("free disk space; the store was not changed"),
            StoreError::OldAndReadOnly { .. } => {
                Some("copy the home to where it can be written, and use that one with `--home`")
            }
            StoreError::NotMigrated { .. } => {
                Some("the store was not changed; fix the problem and start again, or keep using the previous pmk-host")
            }
            StoreError::Foreign { .. } => Some("move the file elsewhere, or use another `--home`"),
            StoreError::Limited { .. } => Some("raise the limit (`ulimit -f`, `LimitFSIZE=` of systemd)"),
            StoreError::Panicked { .. } => Some("the log says where; please report this"),
            StoreError::Full { .. } => Some("free disk space"),
            StoreError::Io { .. } => Some("check the disk, and that you own the file and can write to it"),
            StoreError::Busy { .. } => Some("close other programs that have the file open"),
            StoreError::Leased { .. } => Some("try again when its current turn is finished"),
            StoreError::AwaitsContact(_) => {
                Some("`pmk-host escalation list` shows the question; `pmk-host escalation cancel KEY` ends the wait")
            }
            StoreError::Unanswered(_) => {
                Some("try again once they are answered; `pmk-host status` shows what is in their way")
            }
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
            StoreError::Encoding { .. } => Some(
                "the encoding of a database stays: create another with `CREATE DATABASE pmk ENCODING 'UTF8' TEMPLATE \
                 template0`, and specify it in `store`",
            ),
            StoreError::TakenOver { .. } => Some("the other hosts answer what it was working on; start it again"),
            StoreError::InUse { .. } => Some("stop it first"),
            StoreError::Unfinished { .. } => {
                Some("run the same `pmk-host store copy` again: it continues where it stopped")
            }
            StoreError::Gone { .. }
            | StoreError::NotIdle(_)
            | StoreError::NoDatabase { .. }
            | StoreError::Unusable { .. }
            | StoreError::WrongState { .. }
            | StoreError::NoSuchPosition(_)
            | StoreError::NotUpgraded { .. }
            | StoreError::Closed => None,
        }
    }
}

/// What to do about a home that has lost its store.
fn hint_of_loss(path: &Path, how: Loss) -> String {
    let (check, restore) = (command(path, "store check"), command(path, "store restore FILE"));
    let renew = command(path, "store renew");
    if how == Loss::Shrunk {
        return format!("stop pmk-host, then run `{check}`: if it finds damage, restore a backup with `{restore}`");
    }
    if paths::is_beside(path) {
        return format!("the database itself is still there: stop pmk-host, run `{check}`, then start again");
    }
    match paths::interrupted_move(path).filter(|_| how == Loss::Missing) {
        Some(aside) => format!(
            "`{restore}` or `{renew}` was interrupted after it had moved the store aside to `{}`: run it again; or move \
             the file back to its name",
            aside.display()
        ),
        None => format!(
            "if it was moved, move it back to its name; otherwise stop pmk-host and restore a backup with `{restore}`; \
             without a backup, `{renew}` moves aside what is left and starts with an empty store"
        ),
    }
}

/// A command for the home of the store at this path.
fn command(path: &Path, words: &str) -> String {
    // `Store::path` is two folders down.
    home::command(path.parent().and_then(Path::parent).unwrap_or(path), words)
}

/// Whether a store is in a database: then its path is the database's address, without the password.
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
