//! Checks whether only this user can change a file or folder.

use std::{
    fs::Metadata,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use rustix::process::geteuid;
use thiserror::Error;

/// The bits that give write access to the group and all others.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// In such a folder, only the owner of an entry can remove or rename it.
const STICKY: u32 = 0o1000;

/// The administrator, who can change everything anyway.
const ROOT: u32 = 0;

/// Why somebody else can change a file or folder.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotOurs {
    /// It belongs to another user.
    #[error("`{}` belongs to another user (uid {owner})", path.display())]
    Foreign {
        /// The file or folder.
        path: PathBuf,
        /// Its owner.
        owner: u32,
    },
    /// Others may write to it.
    #[error("`{}` can be changed by other users (mode {mode:03o})", path.display())]
    Writable {
        /// The file or folder.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
}

impl NotOurs {
    /// The command that fixes it.
    pub fn hint(&self) -> String {
        match self {
            NotOurs::Foreign { path, owner } => {
                format!(
                    "run this as that user, `sudo -u '#{owner}' …`; or, if you trust its contents, `sudo chown -R \"$(id -un)\" {}`",
                    quoted(path)
                )
            }
            NotOurs::Writable { path, .. } => chmod([path.as_path()]),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            NotOurs::Foreign { path, .. } | NotOurs::Writable { path, .. } => path,
        }
    }
}

/// The command after which others cannot write to any of these.
pub(crate) fn chmod<'a>(paths: impl IntoIterator<Item = &'a Path>) -> String {
    let quoted: Vec<String> = paths.into_iter().map(quoted).collect();
    format!("`chmod go-w {}`", quoted.join(" "))
}

fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

/// Checks that only this user and the administrator can change the file or folder with this metadata. The metadata
/// should come from an open descriptor, because a path may name something else a moment later.
///
/// # Errors
/// [`NotOurs`] says who else can.
pub fn check(path: &Path, metadata: &Metadata) -> Result<(), NotOurs> {
    judge(path, metadata.uid(), metadata.mode(), geteuid().as_raw())
}

/// Checks that only this user and the administrator can replace an entry of this folder: nobody else may write to it,
/// or it is one like `/tmp`, in which users can only change their own entries.
///
/// # Errors
/// [`NotOurs`] says who else can.
pub(crate) fn check_parent(path: &Path, metadata: &Metadata) -> Result<(), NotOurs> {
    let mode = metadata.mode();
    let mode = if mode & STICKY == 0 { mode } else { mode & !WRITABLE_BY_OTHERS };
    judge(path, metadata.uid(), mode, geteuid().as_raw())
}

fn judge(path: &Path, owner: u32, mode: u32, user: u32) -> Result<(), NotOurs> {
    if owner != user && owner != ROOT {
        return Err(NotOurs::Foreign { path: path.to_owned(), owner });
    }
    if mode & WRITABLE_BY_OTHERS != 0 {
        return Err(NotOurs::Writable { path: path.to_owned(), mode: mode & 0o7777 });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_ours_where_nobody_else_can_write() {
        let judge = |owner, mode| judge(Path::new("/home/o'neil/.pmk"), owner, mode, 1000);
        assert_eq!(judge(1000, 0o100600), Ok(()));
        assert_eq!(judge(1000, 0o040755), Ok(()));
        assert_eq!(judge(0, 0o040755), Ok(()));
        let foreign = judge(1001, 0o040700).expect_err("another user's");
        assert_eq!(foreign.to_string(), "`/home/o'neil/.pmk` belongs to another user (uid 1001)");
        for mode in [0o040720, 0o040702, 0o041777] {
            let writable = judge(1000, mode).expect_err("others may write");
            assert!(matches!(writable, NotOurs::Writable { .. }), "{writable}");
            assert_eq!(writable.hint(), r"`chmod go-w '/home/o'\''neil/.pmk'`");
        }
    }
}
