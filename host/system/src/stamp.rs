//! Detects whether a file has changed, without reading it.

use std::{fs, os::unix::fs::MetadataExt, path::Path, time::SystemTime};

/// Properties that change when a file is rewritten, or when others may read or write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    inode: u64,
    bytes: u64,
    modified: Option<SystemTime>,
    /// When its content, its owner or its permissions were changed: seconds and nanoseconds.
    changed: (i64, i64),
}

impl Stamp {
    /// The stamp of a file; `None` if there is none.
    pub fn of(file: &Path) -> Option<Stamp> {
        let meta = fs::metadata(file).ok()?;
        let changed = (meta.ctime(), meta.ctime_nsec());
        Some(Stamp { inode: meta.ino(), bytes: meta.len(), modified: meta.modified().ok(), changed })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use pmk_stand_ins::patience::until;

    use super::*;

    /// Regression: what could not be read was not looked at again once it could.
    #[test]
    fn other_permissions_left_the_stamp_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        fs::write(&file, "xoxb-1").unwrap();
        let before = Stamp::of(&file);
        // The clock of a file system is coarse.
        until("the stamp changes", || {
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
            (Stamp::of(&file) != before).then_some(())
        });
    }
}
