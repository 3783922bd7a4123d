//! What a restored store cannot know: until when the gateway went on after the backup was made. What people asked until
//! then is in Slack and in no row, and has its answer. The time is kept in a file beside the store: the tables of a
//! backup may be those of another version.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use pmk_system::home;

const FILE_NAME: &str = "store.restored";

pub(super) fn of(path: &Path) -> PathBuf {
    path.with_file_name(FILE_NAME)
}

/// Notes until when a gateway stored what people wrote, before a backup replaces that store. If the restore comes to
/// nothing, the note is true all the same.
///
/// # Errors
/// It cannot be noted.
pub(super) fn note(path: &Path, alive_ms: i64) -> io::Result<()> {
    home::replace_private_file(&of(path), format!("{alive_ms}\n").as_bytes())
}

/// Returns the noted time, in milliseconds since the epoch, if any.
pub(super) fn alive_ms(path: &Path) -> Option<i64> {
    fs::read_to_string(of(path)).ok()?.trim().parse().ok()
}
