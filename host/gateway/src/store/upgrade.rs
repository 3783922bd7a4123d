//! The backup that is made before the schema changes: beside the database, named after the schema it has, and kept until
//! the next change. It is the way back to the program of before, which cannot read what this one makes of the store.

use std::{
    fs,
    path::{Path, PathBuf},
};

use pmk_system::atomic_file::Overwrite;
use rustix::fs::statvfs;

use super::{backup, connection, error::StoreError, paths};

/// The backup is about as large as the database, and so is what a migration may write at most.
const TIMES_THE_STORE: u64 = 2;

/// From which schema to which.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub found: u32,
    pub known: u32,
}

impl Step {
    /// Why the store stays as it was.
    pub fn failed(self, path: &Path, why: &impl ToString, backup: Option<PathBuf>) -> StoreError {
        let Step { found, known } = self;
        StoreError::NotUpgraded { path: path.to_owned(), found, known, why: why.to_string(), backup }
    }
}

/// Backs up the store at this path as it is, in place of an earlier backup of the same schema. Nobody may write to it
/// meanwhile; `free` says how many bytes the disk of a folder has room for.
///
/// # Errors
/// [`StoreError::NoRoom`], or it cannot be written: there is no new backup.
pub(super) fn back_up(path: &Path, step: Step, free: impl FnOnce(&Path) -> u64) -> Result<PathBuf, StoreError> {
    let to = paths::of_schema(path, step.found);
    let conn = connection::as_committed(path)?;
    let bytes = connection::length(&conn).map_err(|fault| fault.at(path))?;
    check_room(path, bytes, free)?;
    backup::copy(&conn, path, &to, Overwrite::Another).map_err(|error| step.failed(path, &error, None))?;
    Ok(to)
}

/// Whether the disk has room for the upgrade of a store of so many bytes; `free` says how many it has room for.
///
/// # Errors
/// [`StoreError::NoRoom`].
pub(super) fn check_room(path: &Path, bytes: u64, free: impl FnOnce(&Path) -> u64) -> Result<(), StoreError> {
    let (needed, free) = (bytes.saturating_mul(TIMES_THE_STORE), free(path.parent().unwrap_or(path)));
    if free < needed { Err(StoreError::NoRoom { path: path.to_owned(), needed, free }) } else { Ok(()) }
}

/// How many bytes the disk of this folder has room for. Where nobody can tell, writing will.
pub(super) fn free(folder: &Path) -> u64 {
    statvfs(folder).map_or(u64::MAX, |disk| disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Tells what was done, and lets the backups of earlier changes go.
pub(super) fn done(path: &Path, Step { found, known }: Step, backup: &Path) {
    tracing::info!(
        "the store was upgraded from schema {found} to {known}; a backup from before is in `{}`",
        backup.display()
    );
    for (_, earlier) in paths::of_schemas(path).into_iter().filter(|(_, other)| other != backup) {
        if let Err(error) = fs::remove_file(&earlier) {
            tracing::warn!(path = %earlier.display(), %error, "cannot delete a backup of an earlier schema");
        }
    }
}
