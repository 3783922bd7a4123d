//! The mark of a home that has had a store: a file beside it, written once the first store has been created.
//!
//! Without it an emptied or deleted database would be mistaken for a new home, and every conversation would
//! silently start again. To do that on purpose, there is `store renew`, which removes the mark.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{
    error::{Loss, StoreError},
    files,
    paths::{self, MOVING},
};
use pmk_system::home;

/// For people who look into the folder.
const TEXT: &str = "This home has a store, `pmk-host.db`. While this file exists, pmk-host does not create an empty one \
                    in its place.\n`pmk-host store restore FILE` restores a backup; `pmk-host store renew` starts \
                    with an empty store.\n";

/// Refuses a home whose store is gone.
///
/// # Errors
/// [`StoreError::Gone`] when there was one and the file is missing or has 0 bytes.
pub(super) fn refuse_loss(path: &Path) -> Result<(), StoreError> {
    let how = match files::length(path)? {
        None => Loss::Missing,
        Some(0) => Loss::Emptied,
        Some(_) => return Ok(()),
    };
    // A log, too, shows that there was a store, for stores older than the mark; SQLite would delete it.
    let had_one =
        files::length(&paths::mark(path))?.is_some() || files::length(&paths::log(path))?.is_some_and(|log| log > 0);
    if had_one { Err(StoreError::Gone { path: path.to_owned(), how }) } else { Ok(()) }
}

/// Refuses a home whose mark cannot be read, as [`set`] does.
///
/// # Errors
/// The mark cannot be read.
pub(super) fn check(path: &Path) -> Result<(), StoreError> {
    let mark = paths::mark(path);
    match fs::read(&mark) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(mark, &error)),
        _ => Ok(()),
    }
}

/// Creates the mark, or lets it forget a move that has come to its end. The store has tables by now, so after a crash
/// before this it is not empty.
///
/// # Errors
/// The mark cannot be written.
pub(super) fn set(path: &Path) -> Result<(), StoreError> {
    let mark = paths::mark(path);
    match fs::read(&mark) {
        Ok(text) if text == TEXT.as_bytes() => Ok(()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(mark, &error)),
        _ => write(mark, TEXT),
    }
}

/// Notes that the store is about to be moved aside. If it is not there, an earlier move was interrupted, and the note
/// of that one stays.
///
/// # Errors
/// The mark cannot be written.
pub(super) fn set_moving(path: &Path, aside: &Path) -> Result<(), StoreError> {
    let mark = paths::mark(path);
    match (files::length(path)?, aside.file_name().and_then(|name| name.to_str())) {
        (Some(_), Some(name)) => write(mark, &format!("{TEXT}{MOVING}{name}\n")),
        _ if files::length(&mark)?.is_some() => Ok(()),
        _ => write(mark, TEXT),
    }
}

fn write(mark: PathBuf, text: &str) -> Result<(), StoreError> {
    home::replace_private_file(&mark, text.as_bytes()).map_err(|error| failed(mark, &error))
}

fn failed(mark: PathBuf, error: &io::Error) -> StoreError {
    StoreError::Io { path: mark, message: error.to_string() }
}

/// Removes the mark.
///
/// # Errors
/// The mark cannot be removed.
pub(super) fn clear(path: &Path) -> Result<(), StoreError> {
    let mark = paths::mark(path);
    match fs::remove_file(&mark) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(mark, &error)),
        _ => Ok(()),
    }
}
