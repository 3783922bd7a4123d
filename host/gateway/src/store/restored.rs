//! What a restored store cannot know: until when the gateway went on after the backup was made. What people asked in
//! direct messages until then has its answer in Slack, and in no row. The time is kept in a file beside the store,
//! because the tables of a backup may be older than this program, and is applied once they are not.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use super::{
    error::{Fault, StoreError},
    files, presence,
    sql::Connection,
};
use pmk_system::home;

pub(super) const FILE_NAME: &str = "store.restored";

const NEWEST: &str = "SELECT coalesce(max(received_at), 0) FROM inbox";

fn of(path: &Path) -> PathBuf {
    path.with_file_name(FILE_NAME)
}

/// Notes that this staged file is about to become the store, and until when a gateway stored what people wrote to the
/// one before it, if known.
///
/// # Errors
/// It cannot be noted.
pub(super) fn note(path: &Path, staged: &Path, alive_ms: Option<i64>) -> io::Result<()> {
    match alive_ms {
        // The file keeps its inode when it gets the store's name, and no other store has it.
        Some(alive_ms) => {
            let note = format!("{} {alive_ms}\n", fs::metadata(staged)?.ino());
            home::replace_private_file(&of(path), note.as_bytes())
        }
        None => forget(path),
    }
}

/// Takes the note back, because nothing was restored, or because it was applied.
///
/// # Errors
/// It cannot be removed.
pub(super) fn forget(path: &Path) -> io::Result<()> {
    match fs::remove_file(of(path)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Applies the note to the store that it is about, if there is one: conversations are read back from when the gateway
/// ended, and not from the last message in the backup.
///
/// # Errors
/// The note cannot be read or removed, or the store cannot be written.
pub(super) fn settle(path: &Path, conn: &Connection) -> Result<(), StoreError> {
    let note = of(path);
    let failed = |error: io::Error| StoreError::Io { path: note.clone(), message: error.to_string() };
    if files::length(&note)?.is_none() {
        return Ok(());
    }
    let text = fs::read_to_string(&note).map_err(failed)?;
    let noted: Option<(u64, i64)> =
        text.trim().split_once(' ').and_then(|(inode, ms)| Some((inode.parse().ok()?, ms.parse().ok()?)));
    // A restore may have been interrupted, and the store of before put back by hand.
    if let Some((inode, alive_ms)) = noted
        && fs::metadata(path).map_err(failed)?.ino() == inode
    {
        apply(conn, alive_ms).map_err(|fault| fault.at(path))?;
    }
    forget(path).map_err(failed)
}

/// Applying it twice, as after a crash, changes nothing more.
fn apply(conn: &Connection, alive_ms: i64) -> Result<(), Fault> {
    let newest: i64 = conn.prepare_cached(NEWEST)?.query_row([], |row| row.get(0))?;
    // A store that has more than that was used somewhere else since.
    if newest > alive_ms { Ok(()) } else { presence::read_from(conn, alive_ms) }
}
