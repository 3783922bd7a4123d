//! Copies of a whole store, and how a lost store is replaced.

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

use super::{
    Store, StoreError, archive, connection, copying::Mark, error::Fault, files, mark, paths, restored, sql::Connection,
};

/// How many problems of a file are reported at most.
pub(super) const MOST_PROBLEMS: u32 = 20;
/// Separates the database's name from the time at which it was moved aside.
const ASIDE: &str = ".until-";

/// Why a copy could not be made or restored.
#[derive(Debug, Error)]
pub enum BackupError {
    /// The source cannot be read, or the copy is invalid.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no such backup.
    #[error("there is no `{}`", .0.display())]
    Missing(PathBuf),
    /// It cannot be read.
    #[error("cannot read `{}`: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    /// The file given is not a backup.
    #[error("`{}` is not a backup of a store: {why}", path.display())]
    NoBackup { path: PathBuf, why: &'static str },
    /// The file given is the store itself.
    #[error("`{}` is the store itself, not a backup of it", .0.display())]
    Itself(PathBuf),
    /// The store is a link: the database and its log would be moved aside without each other.
    #[error("the store `{}` is a link to `{}`", path.display(), to.display())]
    Linked { path: PathBuf, to: PathBuf },
    /// The target folder does not exist.
    #[error("folder `{}` does not exist", .0.display())]
    NoFolder(PathBuf),
    /// The copy would overwrite another file.
    #[error("`{}` already exists", .0.display())]
    Exists(PathBuf),
    /// Another process is writing a copy of that name.
    #[error("`{}` is being written by another command", .0.display())]
    Busy(PathBuf),
    /// A file cannot be written or moved.
    #[error("cannot write `{}`: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    /// The store is not a file.
    #[error("the store `{0}` is not a file")]
    NoFile(String),
    /// The backup itself is damaged.
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
            BackupError::Linked { .. } => Failure::new(error).hint(
                "replace the link by the file itself, and put its `-wal` file, if there is one, beside it; to have the store on \
                 another disk, link its folder instead",
            ),
            BackupError::Missing(_) | BackupError::NoBackup { .. } | BackupError::Itself(_) => {
                Failure::new(error).hint("specify a file made by `pmk-host store backup FILE`")
            }
            BackupError::Read { .. } => Failure::new(error).hint("check that it is a file that you can read"),
            BackupError::NoFile(_) => Failure::new(error).hint(
                "use PostgreSQL's own tools: `pg_dump` and `pg_restore`, WAL archiving, `pg_amcheck`; `pmk-host store \
                 copy` moves a store, and `--store sqlite` means the file in the home",
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
    /// Copies the store as of now to a new file, while others continue to use it. Returns its size in bytes.
    ///
    /// # Errors
    /// The file exists or cannot be written; something stored cannot be read.
    pub async fn back_up(&self, to: &Path) -> Result<u64, BackupError> {
        let to = to.to_owned();
        if let Some(folder) = to.parent().filter(|folder| !folder.is_dir()) {
            return Err(BackupError::NoFolder(folder.to_owned()));
        }
        let path = Store::path(&self.shared.place.home);
        self.read(move |conn| {
            Ok(match conn {
                Connection::Sqlite(conn) => copy_without_erased(conn, &path, &to),
                Connection::Postgres(conn) => Err(BackupError::NoFile(conn.link().name().to_owned())),
            })
        })
        .await?
    }

    /// Whether nobody has ever written in a store of a home, be it the current one or one that was moved aside. One that
    /// is missing or cannot be read may have been used.
    pub fn is_unused(lock: &HomeLock) -> bool {
        const IS_UNUSED: &str = "SELECT NOT EXISTS (SELECT 1 FROM session)";
        let path = Store::path(lock.home());
        let mut stores = moved_aside(&path);
        stores.push(path);
        stores.iter().all(|path| {
            connection::backup(path).is_ok_and(|conn| conn.query_row(IS_UNUSED, [], |row| row.get(0)).unwrap_or(false))
        })
    }

    /// Checks that a backup can be opened as a file. Its content is checked when it is put back.
    ///
    /// # Errors
    /// It is missing, cannot be read or is no file.
    pub fn check_backup(file: &Path) -> Result<(), BackupError> {
        let path = || file.to_owned();
        match pmk_system::files::open(file) {
            Ok(_) => Ok(()),
            Err(FileReadError::Folder) => Err(BackupError::NoBackup { path: path(), why: "it is a folder" }),
            // Opening or reading it might never end.
            Err(FileReadError::Special(why)) => Err(BackupError::NoBackup { path: path(), why }),
            Err(FileReadError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
                Err(BackupError::Missing(path()))
            }
            Err(error) => Err(BackupError::Read { path: path(), source: error.into() }),
        }
    }

    /// Replaces a home's store by a copy of `copy_of_it`. `alive_ms` returns until when a gateway stored what people wrote,
    /// if known: what was asked until then is not found in Slack and answered again. It is called right before the backup
    /// is put in place. Existing files are moved aside; returns their new paths.
    ///
    /// # Errors
    /// The backup is no store of this program, is damaged, or cannot be put in place. A store that was intact stays
    /// so.
    pub fn put_back(
        lock: &HomeLock,
        copy_of_it: &Path,
        alive_ms: impl FnOnce() -> Option<i64>,
        at: Timestamp,
    ) -> Result<Vec<PathBuf>, BackupError> {
        let path = Store::path(lock.home());
        refuse_link(&path)?;
        let staged = paths::with_suffix(&path, ".restoring");
        let _ = fs::remove_file(&staged);
        if files::are_one(copy_of_it, &path)? {
            return Err(BackupError::Itself(copy_of_it.to_owned()));
        }
        // A time in the future is from before the clock was set back.
        let noted = || match alive_ms().filter(|alive_ms| *alive_ms <= at.as_millisecond()) {
            Some(alive_ms) => restored::note(&path, alive_ms)
                .map_err(|source| BackupError::Write { path: restored::of(&path), source }),
            None => Ok(()),
        };
        let placed = stage(copy_of_it, &staged).and_then(|()| noted()).and_then(|()| place(&staged, &path, at));
        if placed.is_err() {
            let _ = fs::remove_file(&staged);
        }
        placed
    }

    /// Lets a home start with an empty store. Existing files are moved aside; returns their new paths.
    ///
    /// # Errors
    /// The files cannot be moved.
    pub fn renew(lock: &HomeLock, at: Timestamp) -> Result<Vec<PathBuf>, BackupError> {
        let path = Store::path(lock.home());
        refuse_link(&path)?;
        let aside = move_aside(&path, at)?;
        mark::clear(&path)?;
        Ok(aside)
    }
}

/// Copies the store to a new file, in which nothing is left of what was erased.
fn copy_without_erased(conn: &rusqlite::Connection, from: &Path, to: &Path) -> Result<u64, BackupError> {
    let unfinished = begin_copy(conn, from, to, Overwrite::Nothing)?;
    let purged = connection::unfinished_copy(unfinished.path()).and_then(|copy| archive::purge(&copy));
    forget_journal(unfinished.path());
    purged.map_err(|fault| fault.at(to))?;
    unfinished.place().map_err(|why| not_written(to, why))
}

/// Copies what a connection reads to a file, as of now, by SQLite's own means, so that it contains no partial
/// commit. The file gets its name once it is complete and synced; what a killed process left is removed by the next
/// copy to the same name.
pub(super) fn copy(conn: &rusqlite::Connection, from: &Path, to: &Path, over: Overwrite) -> Result<u64, BackupError> {
    begin_copy(conn, from, to, over)?.place().map_err(|why| not_written(to, why))
}

fn begin_copy(conn: &rusqlite::Connection, from: &Path, to: &Path, over: Overwrite) -> Result<AtomicFile, BackupError> {
    // SQLite accepts an existing empty file.
    let unfinished = AtomicFile::begin(to, over).map_err(|why| not_written(to, why))?;
    let path = unfinished.path();
    let name = path.to_str().ok_or_else(|| not_written(to, io::Error::other("its name is not UTF-8").into()))?;
    forget_journal(path);
    let copied = conn.execute("VACUUM INTO ?1", [name]);
    forget_journal(path);
    copied.map_err(|error| match Fault::from(error).at(to) {
        // The damage is in the source.
        StoreError::Damaged { message, .. } => {
            BackupError::from(StoreError::Damaged { path: from.to_owned(), message })
        }
        other => other.into(),
    })?;
    Ok(unfinished)
}

fn not_written(to: &Path, why: NotWritten) -> BackupError {
    match why {
        NotWritten::Exists => BackupError::Exists(to.to_owned()),
        NotWritten::Busy => BackupError::Busy(to.to_owned()),
        NotWritten::Io(source) => BackupError::Write { path: to.to_owned(), source },
    }
}

/// Removes the journal of an interrupted copy.
fn forget_journal(path: &Path) {
    let _ = fs::remove_file(paths::with_suffix(path, "-journal"));
}

/// Copies a backup to the file that is to be renamed, and checks that copy.
fn stage(from: &Path, staged: &Path) -> Result<(), BackupError> {
    Store::check_backup(from)?;
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

/// Attributes an error from reading the backup to the backup rather than to the store.
fn of_backup(error: StoreError, from: &Path) -> BackupError {
    let path = from.to_owned();
    match error {
        StoreError::NoDatabase { .. } => BackupError::NoBackup { path, why: "it is not a database" },
        StoreError::Foreign { .. } => BackupError::NoBackup { path, why: "it is empty, or belongs to another program" },
        StoreError::Damaged { message, .. } => BackupError::Unsound { path, problems: vec![message] },
        other => other.into(),
    }
}

/// Returns the problems of the file, one per line. Reads the whole file.
pub(super) fn problems(conn: &rusqlite::Connection) -> Result<Vec<String>, Fault> {
    let mut statement = conn.prepare(&format!("PRAGMA integrity_check({MOST_PROBLEMS})"))?;
    let lines = statement.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
    Ok(lines.iter().flat_map(|line| line.lines()).filter(|line| *line != "ok").map(str::to_owned).collect())
}

fn refuse_link(path: &Path) -> Result<(), BackupError> {
    match fs::read_link(path) {
        Ok(to) => Err(BackupError::Linked { path: path.to_owned(), to }),
        Err(_) => Ok(()),
    }
}

/// Moves the staged file to the store's path, after moving existing files aside; returns the paths of those.
pub(super) fn place(staged: &Path, path: &Path, at: Timestamp) -> Result<Vec<PathBuf>, BackupError> {
    let aside = move_aside(path, at)?;
    rename(staged, path)?;
    mark::set(path)?;
    Ok(aside)
}

/// Moves the database and its companion files aside, under names that SQLite still recognises as belonging
/// together.
fn move_aside(path: &Path, at: Timestamp) -> Result<Vec<PathBuf>, BackupError> {
    let time = at.to_zoned(TimeZone::UTC).strftime("%Y%m%dT%H%M%S%3fZ");
    let named = || paths::with_suffix(path, &format!("{ASIDE}{time}"));
    // After an interrupted move, its log belongs beside the database that was moved.
    let aside = paths::interrupted_move(path).filter(|_| !path.exists()).unwrap_or_else(named);
    // First, so that after a crash before the next step the missing store is reported, and no new one is created.
    mark::set_moving(path, &aside)?;
    let mut moved = Vec::new();
    for (from, to) in paths::all(path).into_iter().zip(paths::all(&aside)) {
        if files::length(&from)?.is_some() {
            rename(&from, &to)?;
            moved.push(to);
        }
    }
    // A copy to it that was not finished is none to what takes its place.
    Mark::forget(path).map_err(|source| BackupError::Write { path: path.to_owned(), source })?;
    Ok(moved)
}

/// Returns the databases beside a store that were moved aside.
fn moved_aside(path: &Path) -> Vec<PathBuf> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return vec![] };
    let prefix = format!("{}{ASIDE}", name.to_string_lossy());
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_one = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with(&prefix);
    entries.filter(is_one).map(|entry| entry.path()).filter(|path| !paths::is_beside(path)).collect()
}

fn rename(from: &Path, to: &Path) -> Result<(), BackupError> {
    fs::rename(from, to)
        .and_then(|()| home::sync_folder_of(to))
        .map_err(|source| BackupError::Write { path: to.to_owned(), source })
}
