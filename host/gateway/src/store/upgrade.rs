//! The backup made before the schema changes: beside the database, named after its schema, and kept until the next
//! change. It allows going back to the previous program, which cannot read the migrated store.

use std::{
    fs,
    path::{Path, PathBuf},
};

use pmk_system::atomic_file::Overwrite;
use rustix::fs::statvfs;

use super::{backup, connection, error::StoreError, paths};

/// The backup is about as large as the database, and a migration writes at most as much again.
const TIMES_THE_STORE: u64 = 2;

/// The schema versions before and after a migration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub found: u32,
    pub known: u32,
}

impl Step {
    /// Returns the error of a migration that left the store unchanged.
    pub fn failed(self, path: &Path, why: &impl ToString, backup: Option<PathBuf>) -> StoreError {
        let Step { found, known } = self;
        StoreError::NotUpgraded { path: path.to_owned(), found, known, why: why.to_string(), backup }
    }
}

/// Backs up the store at this path, replacing an earlier backup of the same schema. Nobody may write to the store
/// meanwhile; `free` returns the free bytes on a folder's disk.
///
/// # Errors
/// [`StoreError::NoRoom`], or the backup cannot be written: there is no new backup.
pub(super) fn back_up(path: &Path, step: Step, free: impl FnOnce(&Path) -> u64) -> Result<PathBuf, StoreError> {
    let to = paths::of_schema(path, step.found);
    let conn = connection::as_committed(path)?;
    let bytes = connection::length(&conn).map_err(|fault| fault.at(path))?;
    check_room(path, bytes, free)?;
    backup::copy(&conn, path, &to, Overwrite::Another).map_err(|error| step.failed(path, &error, None))?;
    Ok(to)
}

/// Checks that the disk has space for the upgrade of a store of so many bytes; `free` returns the free bytes.
///
/// # Errors
/// [`StoreError::NoRoom`].
pub(super) fn check_room(path: &Path, bytes: u64, free: impl FnOnce(&Path) -> u64) -> Result<(), StoreError> {
    let (needed, free) = (bytes.saturating_mul(TIMES_THE_STORE), free(path.parent().unwrap_or(path)));
    if free < needed { Err(StoreError::NoRoom { path: path.to_owned(), needed, free }) } else { Ok(()) }
}

/// Returns the free bytes on this folder's disk; the maximum where that is unknown, so that writing decides.
pub(super) fn free(folder: &Path) -> u64 {
    statvfs(folder).map_or(u64::MAX, |disk| disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Logs the upgrade, in whatever command made it, and deletes the backups of earlier ones.
pub(super) fn done(path: &Path, Step { found, known }: Step, backup: &Path) {
    tracing::warn!(
        "the store was upgraded from schema {found} to {known}; a backup from before is in `{}`",
        backup.display()
    );
    for (_, earlier) in paths::of_schemas(path).into_iter().filter(|(_, other)| other != backup) {
        if let Err(error) = fs::remove_file(&earlier) {
            tracing::warn!(path = %earlier.display(), %error, "cannot delete a backup of an earlier schema");
        }
    }
}
