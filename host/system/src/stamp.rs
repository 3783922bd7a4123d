//! Detects whether a file has changed, without reading it.

use std::{fs, path::Path, time::SystemTime};

/// Properties that change when a file is rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    inode: u64,
    bytes: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    /// The stamp of a file; `None` if there is none.
    pub fn of(file: &Path) -> Option<Stamp> {
        let meta = fs::metadata(file).ok()?;
        #[cfg(unix)]
        let inode = std::os::unix::fs::MetadataExt::ino(&meta);
        #[cfg(not(unix))]
        let inode = 0;
        Some(Stamp { inode, bytes: meta.len(), modified: meta.modified().ok() })
    }
}
