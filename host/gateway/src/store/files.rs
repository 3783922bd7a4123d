//! The files of a store, and whether they are still the ones that are open.
//!
//! A database that is deleted or replaced while it is open accepts every write, and loses all of it when the
//! process ends. So the writer checks before it begins and again before it answers: what is acknowledged is in the
//! file that the next start will find.

use std::{
    cell::Cell,
    fs::{self, Metadata},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use super::{
    error::{Loss, StoreError},
    paths,
};

/// Whether both paths lead to the same file.
///
/// # Errors
/// One cannot be read.
pub(super) fn are_one(a: &Path, b: &Path) -> Result<bool, StoreError> {
    Ok(matches!((look(a)?, look(b)?), (Some(a), Some(b)) if Inode::of(&a) == Inode::of(&b)))
}

/// Returns the length of a file; `None` where there is none.
///
/// # Errors
/// It cannot be read.
pub(super) fn length(path: &Path) -> Result<Option<u64>, StoreError> {
    Ok(look(path)?.map(|file| file.len()))
}

fn look(path: &Path) -> Result<Option<Metadata>, StoreError> {
    match fs::metadata(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(StoreError::Io { path: path.to_owned(), message: error.to_string() }),
    }
}

/// The files of an open store. SQLite does not recreate any of them while the store is open.
#[derive(Debug)]
pub(super) struct OpenFiles {
    files: Vec<(PathBuf, Inode)>,
    /// The greatest length of the database seen. It never shrinks, because nothing here vacuums it.
    longest: Cell<u64>,
}

/// The file system's identity of a file, regardless of its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Inode {
    device: u64,
    number: u64,
}

impl OpenFiles {
    /// Returns the files of a store that has just been opened.
    ///
    /// # Errors
    /// The database is gone already.
    pub(super) fn of(path: &Path) -> Result<OpenFiles, StoreError> {
        let mut files = Vec::new();
        for path in paths::all(path) {
            if let Some(file) = look(&path)? {
                files.push((path, Inode::of(&file)));
            }
        }
        match files.first() {
            Some((first, _)) if first == path => Ok(OpenFiles { files, longest: Cell::new(0) }),
            _ => Err(StoreError::Gone { path: path.to_owned(), how: Loss::Missing }),
        }
    }

    /// Checks that each file is still at its path.
    ///
    /// # Errors
    /// [`StoreError::Gone`] when one is not; [`StoreError::Io`] when that cannot be told.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        for (at, (path, inode)) in self.files.iter().enumerate() {
            let how = match look(path)? {
                None => Loss::Missing,
                Some(file) if Inode::of(&file) != *inode => Loss::Replaced,
                // A log is empty at times; a database never is.
                Some(file) if at == 0 && file.len() == 0 => Loss::Emptied,
                Some(file) if at == 0 && file.len() < self.longest.get() => Loss::Shrunk,
                Some(file) => {
                    if at == 0 {
                        self.longest.set(file.len());
                    }
                    continue;
                }
            };
            return Err(StoreError::Gone { path: path.clone(), how });
        }
        Ok(())
    }
}

impl Inode {
    fn of(file: &Metadata) -> Inode {
        Inode { device: file.dev(), number: file.ino() }
    }
}
