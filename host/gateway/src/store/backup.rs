//! Copies of a whole store, and what is done when one is lost.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use jiff::{Timestamp, tz::TimeZone};
use pmk_system::{
    atomic_file::{AtomicFile, NotWritten, Overwrite},
    error::Failure,
    files::FileReadError,
    home::{self, HomeLock},
};
use thiserror::Error;

use super::{Store, StoreError, connection, error::Fault, files, mark, paths, sql::Connection};

/// So many problems of one file are told.
pub(super) const MOST_PROBLEMS: u32 = 20;

/// Why a copy could not be made or put in place.
#[derive(Debug, Error)]
pub enum BackupError {
    /// What is to be copied cannot be read, or what was copied is no good.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no such backup.
    #[error("there is no `{}`", .0.display())]
    Missing(PathBuf),
    /// It cannot be read.
    #[error("cannot read `{}`: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    /// What was given for a backup is something else.
    #[error("`{}` is not a backup of a store: {why}", path.display())]
    NoBackup { path: PathBuf, why: &'static str },
    /// What was given for a backup is the store.
    #[error("`{}` is the store itself, not a backup of it", .0.display())]
    Itself(PathBuf),
    /// The copy is to go to a folder that is not there.
    #[error("folder `{}` does not exist", .0.display())]
    NoFolder(PathBuf),
    /// The copy would be written over another file.
    #[error("`{}` already exists", .0.display())]
    Exists(PathBuf),
    /// Somebody else is writing a copy of that name.
    #[error("`{}` is being written by another command", .0.display())]
    Busy(PathBuf),
    /// A file cannot be written or moved.
    #[error("cannot write `{}`: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    /// The store is no file.
    #[error("the store `{0}` is not a file")]
    NoFile(String),
    /// The copy is damaged itself.
    #[error("`{}` is damaged: {}", path.display(), problems.join("; "))]
    Unsound { path: PathBuf, problems: Vec<String> },
}

impl From<BackupError> for Failure {
    fn from(error: BackupError) -> Self {
        match error {
            BackupError::Store(error) => error.into(),
            BackupError::NoFolder(_) => {
                Failure::new(error).hint("create it first, or specify a file in another folder")
            }
            BackupError::Missing(_) | BackupError::NoBackup { .. } | BackupError::Itself(_) => {
                Failure::new(error).hint("specify a file made by `pmk-host store backup FILE`")
            }
            BackupError::Read { .. } => Failure::new(error).hint("check that it is a file that you can read"),
            BackupError::NoFile(_) => Failure::new(error).hint(
                "use PostgreSQL's own tools: `pg_dump` and `pg_restore`, WAL archiving, `pg_amcheck`; `pmk-host store \
                 copy` moves a store",
            ),
            BackupError::Exists(_) | BackupError::Busy(_) => {
                Failure::new(error).hint("choose a name that is not in use")
            }
            BackupError::Write { .. } => Failure::new(error).hint(
                "check that the disk has free space and that you can write to the folder; the store was not changed",
            ),
            BackupError::Unsound { .. } => Failure::new(error).hint(
                "use an earlier backup, or what `sqlite3 STORE .recover | sqlite3 FILE` saves (sqlite3 3.43 or newer)",
            ),
        }
    }
}

impl Store {
    /// Copies all that is stored to a new file, as of now; others go on meanwhile. Its size in bytes.
    ///
    /// # Errors
    /// There is such a file, or it cannot be written; something stored cannot be read.
    pub async fn back_up(&self, to: &Path) -> Result<u64, BackupError> {
        let to = to.to_owned();
        if let Some(folder) = to.parent().filter(|folder| !folder.is_dir()) {
            return Err(BackupError::NoFolder(folder.to_owned()));
        }
        let path = Store::path(&self.shared.place.home);
        self.read(move |conn| {
            Ok(match conn {
                Connection::Sqlite(conn) => copy(conn, &path, &to, Overwrite::Nothing),
                Connection::Postgres(conn) => Err(BackupError::NoFile(conn.link().name().to_owned())),
            })
        })
        .await?
    }

    /// Puts a copy in the place of a home's store. What was there is moved aside: the files it went to.
    ///
    /// # Errors
    /// The copy is no store of ours, or damaged, or cannot be put there. Where the store was whole, it still is.
    pub fn put_back(lock: &HomeLock, copy_of_it: &Path, at: Timestamp) -> Result<Vec<PathBuf>, BackupError> {
        let path = Store::path(lock.home());
        let staged = paths::with_suffix(&path, ".restoring");
        let _ = fs::remove_file(&staged);
        if files::are_one(copy_of_it, &path)? {
            return Err(BackupError::Itself(copy_of_it.to_owned()));
        }
        let placed = stage(copy_of_it, &staged).and_then(|()| place(&staged, &path, at));
        if placed.is_err() {
            let _ = fs::remove_file(&staged);
        }
        placed
    }

    /// Lets a home begin anew. What was there is moved aside: the files it went to.
    ///
    /// # Errors
    /// The files cannot be moved.
    pub fn renew(lock: &HomeLock, at: Timestamp) -> Result<Vec<PathBuf>, BackupError> {
        let path = Store::path(lock.home());
        let aside = move_aside(&path, at)?;
        mark::clear(&path)?;
        Ok(aside)
    }
}

/// Copies what a connection reads to a file, as of now, in SQLite's own words: no half of a commit is in it. It has its
/// name once it is whole and on the disk; what was killed at it is taken away by the next that has the same name.
pub(super) fn copy(conn: &rusqlite::Connection, from: &Path, to: &Path, over: Overwrite) -> Result<u64, BackupError> {
    let failed = |why| match why {
        NotWritten::Exists => BackupError::Exists(to.to_owned()),
        NotWritten::Busy => BackupError::Busy(to.to_owned()),
        NotWritten::Io(source) => BackupError::Write { path: to.to_owned(), source },
    };
    // SQLite takes an empty file as it is.
    let unfinished = AtomicFile::begin(to, over).map_err(failed)?;
    let path = unfinished.path();
    let name = path.to_str().ok_or_else(|| failed(io::Error::other("its name is not UTF-8").into()))?;
    forget_journal(path);
    let copied = conn.execute("VACUUM INTO ?1", [name]);
    forget_journal(path);
    copied.map_err(|error| match Fault::from(error).at(to) {
        // It was met in what is read.
        StoreError::Damaged { message, .. } => {
            BackupError::from(StoreError::Damaged { path: from.to_owned(), message })
        }
        other => other.into(),
    })?;
    unfinished.place().map_err(failed)
}

/// SQLite's journal of a copy that was cut short.
fn forget_journal(path: &Path) {
    let _ = fs::remove_file(paths::with_suffix(path, "-journal"));
}

/// Copies a backup to where it is to be renamed from, and looks at it there.
fn stage(from: &Path, staged: &Path) -> Result<(), BackupError> {
    let path = || from.to_owned();
    match pmk_system::files::open(from) {
        Ok(_) => {}
        Err(FileReadError::Folder) => return Err(BackupError::NoBackup { path: path(), why: "it is a folder" }),
        // It would be waited for, or read, without end.
        Err(FileReadError::Special(why)) => return Err(BackupError::NoBackup { path: path(), why }),
        Err(FileReadError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
            return Err(BackupError::Missing(path()));
        }
        Err(error) => return Err(BackupError::Read { path: path(), source: error.into() }),
    }
    let conn = connection::backup(from).map_err(|error| of_backup(error, from))?;
    copy(&conn, from, staged, Overwrite::Another).map_err(|error| match error {
        BackupError::Store(error) => of_backup(error, from),
        other => other,
    })?;
    let problems = connection::backup(staged)
        .and_then(|conn| problems(&conn).map_err(|fault| fault.at(staged)))
        .map_err(|error| of_backup(error, from))?;
    if problems.is_empty() { Ok(()) } else { Err(BackupError::Unsound { path: from.to_owned(), problems }) }
}

/// What an error says of the backup, where it was met in reading it: it is not the store that is no good.
fn of_backup(error: StoreError, from: &Path) -> BackupError {
    let path = from.to_owned();
    match error {
        StoreError::NoDatabase { .. } => BackupError::NoBackup { path, why: "it is not a database" },
        StoreError::Foreign { .. } => BackupError::NoBackup { path, why: "it is empty, or belongs to another program" },
        StoreError::Damaged { message, .. } => BackupError::Unsound { path, problems: vec![message] },
        other => other.into(),
    }
}

/// What is wrong with the file, one line each. It is read as a whole.
pub(super) fn problems(conn: &rusqlite::Connection) -> Result<Vec<String>, Fault> {
    let mut statement = conn.prepare(&format!("PRAGMA integrity_check({MOST_PROBLEMS})"))?;
    let lines = statement.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
    Ok(lines.iter().flat_map(|line| line.lines()).filter(|line| *line != "ok").map(str::to_owned).collect())
}

/// Moves what is staged to where the store is to be, and what is there aside: the files that went to.
pub(super) fn place(staged: &Path, path: &Path, at: Timestamp) -> Result<Vec<PathBuf>, BackupError> {
    // First: where this ends between the other two, there is no store, and none is begun in its place.
    mark::set(path)?;
    let aside = move_aside(path, at)?;
    rename(staged, path)?;
    Ok(aside)
}

/// Moves the database and what belongs to it away, under names by which SQLite still knows them as one.
fn move_aside(path: &Path, at: Timestamp) -> Result<Vec<PathBuf>, BackupError> {
    let time = at.to_zoned(TimeZone::UTC).strftime("%Y%m%dT%H%M%S%3fZ");
    let aside = paths::with_suffix(path, &format!("{}{time}", paths::ASIDE));
    let mut moved = Vec::new();
    for (from, to) in paths::all(path).into_iter().zip(paths::all(&aside)) {
        if files::length(&from)?.is_some() {
            rename(&from, &to)?;
            moved.push(to);
        }
    }
    Ok(moved)
}

fn rename(from: &Path, to: &Path) -> Result<(), BackupError> {
    fs::rename(from, to)
        .and_then(|()| home::sync_folder_of(to))
        .map_err(|source| BackupError::Write { path: to.to_owned(), source })
}
