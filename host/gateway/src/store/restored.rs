//! What a restored store cannot know: for how long the gateway went on after the backup was made. Questions that were
//! asked until then have an answer in Slack, and in no row. The time is kept in a file beside the store, because the
//! tables of a backup may be older than this program, and is applied once they are not.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{
    error::{Fault, StoreError},
    escalations, files, presence,
    sql::{Connection, params},
};
use pmk_system::home;

pub(super) const FILE_NAME: &str = "store.restored";

/// What was received at least this long before the gateway ended has an answer, or was parked: no model call takes
/// longer.
const ANSWERED_WITHIN_MS: i64 = 15 * 60 * 1_000;

/// Why such a question is parked, for the operator.
const WHY: &str = "it was open when the restored backup was made, and may have been answered since";

const HINT: &str = "`pmk-host sessions parked` lists them, and `pmk-host sessions retry` has them answered";

/// Nobody is told, because they may have their answer. A backup that has messages of the gateway's last minutes has the
/// answers, too.
const PARK: &str = "UPDATE inbox SET parked_at = ?1, parked_why = ?2, parked_told = 1
     WHERE message IS NOT NULL AND parked_at IS NULL AND called_off IS NULL AND received_at <= ?3
       AND NOT EXISTS (SELECT 1 FROM turn t WHERE t.id = inbox.id AND t.answered_at IS NOT NULL)
       AND NOT EXISTS (SELECT 1 FROM inbox newer WHERE newer.received_at > ?3)
     RETURNING id";

fn of(path: &Path) -> PathBuf {
    path.with_file_name(FILE_NAME)
}

/// Notes that the store is about to be replaced by a backup, and when a gateway last used it, if known.
///
/// # Errors
/// It cannot be noted.
pub(super) fn note(path: &Path, alive_ms: Option<i64>) -> io::Result<()> {
    match alive_ms {
        Some(alive_ms) => home::replace_private_file(&of(path), format!("{alive_ms}\n").as_bytes()),
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

/// Applies the note to a store that was restored, if there is one: conversations are read back from when the gateway
/// ended, and not from the last message in the backup; and what was open in the backup is parked.
///
/// # Errors
/// The note cannot be read or removed, or the store cannot be written.
pub(super) fn settle(path: &Path, conn: &Connection) -> Result<(), StoreError> {
    let note = of(path);
    let failed = |error: io::Error| StoreError::Io { path: note.clone(), message: error.to_string() };
    if files::length(&note)?.is_none() {
        return Ok(());
    }
    // What somebody else has written there says nothing.
    if let Ok(alive_ms) = fs::read_to_string(&note).map_err(failed)?.trim().parse() {
        let parked = apply(conn, alive_ms).map_err(|fault| fault.at(path))?;
        if parked > 0 {
            tracing::warn!(
                parked,
                hint = HINT,
                "questions that were open in the restored backup are set aside: they may have been answered since"
            );
        }
    }
    forget(path).map_err(failed)
}

/// Applying it twice, as after a crash, changes nothing more.
fn apply(conn: &Connection, alive_ms: i64) -> Result<usize, Fault> {
    presence::read_from(conn, alive_ms)?;
    let mut statement = conn.prepare_cached(PARK)?;
    let open_since = alive_ms.saturating_sub(ANSWERED_WITHIN_MS);
    let parked = statement.query_map(params![alive_ms, WHY, open_since], |row| row.get::<_, i64>(0))?;
    let parked = parked.collect::<Result<Vec<_>, _>>()?;
    for inbox in &parked {
        conn.prepare_cached(escalations::RELEASE_CLAIM)?.run([*inbox])?;
    }
    Ok(parked.len())
}
