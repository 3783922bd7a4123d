//! The paths of a store's files.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

/// The suffixes of SQLite's log, and of the index of the log.
const BESIDE: [&str; 2] = ["-wal", "-shm"];

/// Returns the path of the database and of its companion files.
pub(super) fn all(path: &Path) -> [PathBuf; 3] {
    let (real, [log, index]) = (real(path), BESIDE);
    [path.to_owned(), with_suffix(&real, log), with_suffix(&real, index)]
}

/// Returns the path of the database's write-ahead log.
pub(super) fn log(path: &Path) -> PathBuf {
    with_suffix(&real(path), BESIDE[0])
}

/// Returns where the database is if its path is a link: SQLite keeps its companion files there.
fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

/// Whether this is one of SQLite's companion files rather than a database.
pub(super) fn is_beside(path: &Path) -> bool {
    let name = path.as_os_str().as_encoded_bytes();
    BESIDE.iter().any(|suffix| name.ends_with(suffix.as_bytes()))
}

/// Separates the database's name from the schema version of a backup.
const SCHEMA: &str = ".schema-";

/// Returns the path of the backup that is made of a store with this schema before it is changed.
pub(super) fn of_schema(path: &Path, schema: u32) -> PathBuf {
    with_suffix(path, &format!("{SCHEMA}{schema}"))
}

/// Returns the newest backup beside a store that a program with this schema can read.
pub(super) fn way_back(path: &Path, known: u32) -> Option<PathBuf> {
    of_schemas(path).into_iter().filter(|(schema, _)| *schema <= known).max().map(|(_, path)| path)
}

/// Returns the schema version and path of each such backup beside a store.
pub(super) fn of_schemas(path: &Path) -> Vec<(u32, PathBuf)> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return vec![] };
    let prefix = format!("{}{SCHEMA}", name.to_string_lossy());
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let schema = |path: &Path| path.file_name()?.to_str()?.strip_prefix(&prefix)?.parse().ok();
    entries.filter_map(|entry| Some((schema(&entry.path())?, entry.path()))).collect()
}

/// Its name has another prefix than the database's files, so that `rm pmk-host.db*` leaves it.
const MARK: &str = "store.mark";

/// Returns the path of the mark of a home that has had a store.
pub(super) fn mark(path: &Path) -> PathBuf {
    path.with_file_name(MARK)
}

/// In the mark, before the name that the store gets while `store restore` or `store renew` moves it aside: what is left of such a
/// move must not be taken for an old store that was rejected long ago.
pub(super) const MOVING: &str = "It is being moved aside to ";

/// Returns where the store is, if moving it aside was interrupted.
pub(super) fn interrupted_move(path: &Path) -> Option<PathBuf> {
    let text = fs::read_to_string(mark(path)).ok()?;
    let name = text.lines().find_map(|line| line.strip_prefix(MOVING))?;
    Some(path.with_file_name(name)).filter(|aside| aside.exists())
}
