//! Whether a file is another one than before, without reading it.

use std::{fs, path::Path, time::SystemTime};

/// What differs when a file was written anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    inode: u64,
    bytes: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    /// `None` for no file.
    pub fn of(file: &Path) -> Option<Stamp> {
        let meta = fs::metadata(file).ok()?;
        #[cfg(unix)]
        let inode = std::os::unix::fs::MetadataExt::ino(&meta);
        #[cfg(not(unix))]
        let inode = 0;
        Some(Stamp { inode, bytes: meta.len(), modified: meta.modified().ok() })
    }
}
