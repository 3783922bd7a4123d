//! Where the files of a store are.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

/// What SQLite puts behind a database's name for its log, and for the index of the log.
const BESIDE: [&str; 2] = ["-wal", "-shm"];

/// The database at this path, and what belongs to it.
pub(super) fn all(path: &Path) -> [PathBuf; 3] {
    let [log, index] = BESIDE;
    [path.to_owned(), with_suffix(path, log), with_suffix(path, index)]
}

/// The write-ahead log of the database at this path.
pub(super) fn log(path: &Path) -> PathBuf {
    with_suffix(path, BESIDE[0])
}

pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

/// Whether this is not a database, but what SQLite keeps beside one.
pub(super) fn is_beside(path: &Path) -> bool {
    let name = path.as_os_str().as_encoded_bytes();
    BESIDE.iter().any(|suffix| name.ends_with(suffix.as_bytes()))
}
