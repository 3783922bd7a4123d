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
    files, paths,
};
use pmk_system::home;

/// Its name has another prefix than the database's files, so that `rm pmk-host.db*` leaves it.
const FILE_NAME: &str = "store.mark";

/// For people who look into the folder.
const TEXT: &str = "This home has a store, `pmk-host.db`. While this file exists, pmk-host does not create an empty one \
                    in its place.\n`pmk-host store restore FILE` restores a backup; `pmk-host store renew` starts \
                    with an empty store.\n";

fn of(path: &Path) -> PathBuf {
    path.with_file_name(FILE_NAME)
}

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
    let had_one = files::length(&of(path))?.is_some() || files::length(&paths::log(path))?.is_some_and(|log| log > 0);
    if had_one { Err(StoreError::Gone { path: path.to_owned(), how }) } else { Ok(()) }
}

/// Creates the mark. The store has tables by now, so after a crash before this it is not empty.
///
/// # Errors
/// The mark cannot be written.
pub(super) fn set(path: &Path) -> Result<(), StoreError> {
    let mark = of(path);
    match files::length(&mark)? {
        Some(_) => Ok(()),
        None => home::replace_private_file(&mark, TEXT.as_bytes())
            .map_err(|error| StoreError::Io { path: mark, message: error.to_string() }),
    }
}

/// Removes the mark.
///
/// # Errors
/// The mark cannot be removed.
pub(super) fn clear(path: &Path) -> Result<(), StoreError> {
    let mark = of(path);
    match fs::remove_file(&mark) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(StoreError::Io { path: mark, message: error.to_string() })
        }
        _ => Ok(()),
    }
}
