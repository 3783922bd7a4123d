//! The backup made before the schema changes: beside the database, named after its schema, and kept until the next
//! change. It allows going back to the previous program, which cannot read the migrated store.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use pmk_system::atomic_file::Overwrite;
use rustix::fs::statvfs;

use super::{backup, connection, error::StoreError, paths};

/// Appended to the backup's name while it is being [written](pmk_system::atomic_file).
const UNFINISHED: &str = ".unfinished";

/// The schema versions before and after a migration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub found: u32,
    pub known: u32,
}

impl Step {
    /// Returns the error of a migration that left the store unchanged.
    pub fn failed(self, path: &Path, why: StoreError, backup: PathBuf) -> StoreError {
        let Step { found, known } = self;
        StoreError::NotUpgraded { path: path.to_owned(), found, known, why: Box::new(why), backup }
    }

    /// Returns the error of a migration without a backup, or of the backup before one, that left the store unchanged.
    pub fn not_migrated(self, path: &Path, why: &impl ToString) -> StoreError {
        let Step { found, known } = self;
        StoreError::NotMigrated { path: path.to_owned(), found, known, why: why.to_string() }
    }
}

/// Backs up the store at this path, replacing an earlier backup of the same schema. Nobody may write to the store
/// meanwhile; `free` returns the free bytes on a folder's disk.
///
/// # Errors
/// [`StoreError::NoRoom`], or the backup cannot be written: there is no new backup.
pub(super) fn back_up(path: &Path, step: Step, free: impl Fn(&Path) -> u64) -> Result<PathBuf, StoreError> {
    let to = paths::of_schema(path, step.found);
    let conn = connection::as_committed(path)?;
    let bytes = connection::length(&conn).map_err(|fault| fault.at(path))?;
    check_room(path, step.found, bytes, free)?;
    backup::copy(&conn, path, &to, Overwrite::Another).map_err(|error| step.not_migrated(path, &error))?;
    Ok(to)
}

/// Checks that the disk has space for the upgrade of a store of this schema and of so many bytes: the backup is about as
/// large as the database, and a migration writes at most as much again. `free` returns the free bytes on a folder's disk.
///
/// # Errors
/// [`StoreError::NoRoom`].
pub(super) fn check_room(path: &Path, found: u32, bytes: u64, free: impl Fn(&Path) -> u64) -> Result<(), StoreError> {
    // The backup is beside a link, and what the migration writes beside the file that it leads to.
    let (backup, file) = (paths::of_schema(path, found), fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()));
    let (here, there) = (folder(path), folder(&file));
    // What a killed attempt has left goes: half a backup before another is written, a whole one after that, and what
    // the migration has written to the log is written over.
    let committed = bytes.saturating_sub(length(&file));
    let logged = length(&paths::log(path)).saturating_sub(committed);
    let for_backup = bytes.saturating_sub(length(&paths::with_suffix(&backup, UNFINISHED)));
    let for_change = bytes.saturating_sub(logged);
    if disk(here) == disk(there) {
        return ensure(path, for_backup.saturating_add(for_change.saturating_sub(length(&backup))), free(here));
    }
    ensure(path, for_backup, free(here))?;
    ensure(&file, for_change, free(there))
}

fn ensure(path: &Path, needed: u64, free: u64) -> Result<(), StoreError> {
    if free < needed { Err(StoreError::NoRoom { path: path.to_owned(), needed, free }) } else { Ok(()) }
}

fn folder(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

fn disk(folder: &Path) -> Option<u64> {
    fs::metadata(folder).ok().map(|folder| folder.dev())
}

fn length(file: &Path) -> u64 {
    fs::symlink_metadata(file).ok().filter(|file| file.is_file()).map_or(0, |file| file.len())
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
