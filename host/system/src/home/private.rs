//! Files and folders that only their owner can read.

use std::{
    ffi::OsString,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use rustix::fs::OFlags;
use tempfile::NamedTempFile;

/// Creates a folder and its parents, accessible to the owner alone (0700). Existing folders stay unchanged.
///
/// # Errors
/// If the folder cannot be created.
pub fn create_private_dir(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Opens a file for reading and writing, creating it if it is missing; accessible to the owner alone (0600).
///
/// # Errors
/// If the file cannot be opened, or belongs to someone else.
pub fn open_private_file(path: &Path) -> io::Result<File> {
    open_private(path, OpenOptions::new().read(true).write(true).create(true).truncate(false))
}

/// Opens a file as [`open_private_file`] does, unless its path is a link.
///
/// # Errors
/// If the file cannot be opened, or belongs to someone else, or is a link.
pub(crate) fn open_private_file_nofollow(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    open_private(path, options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed()))
}

/// Opens a file for reading and appending, creating it if it is missing; accessible to the owner alone (0600).
///
/// # Errors
/// If the file cannot be opened, or belongs to someone else.
pub fn append_private_file(path: &Path) -> io::Result<File> {
    open_private(path, OpenOptions::new().read(true).append(true).create(true))
}

fn open_private(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let file = options.mode(0o600).open(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        if file.metadata()?.permissions().mode() & 0o077 != 0 {
            file.set_permissions(fs::Permissions::from_mode(0o600))?;
        }
    }
    Ok(file)
}

/// Replaces a file atomically; accessible to the owner alone (0600).
///
/// # Errors
/// If it cannot be written; the old file is then still there.
pub fn replace_private_file(path: &Path, content: &[u8]) -> io::Result<()> {
    stage_private_file(path, content)?.persist(path)?;
    sync_folder_of(path)
}

/// Writes the future content of this file to a hidden file in the same folder, accessible to the owner alone (0600),
/// and syncs it to the disk. Unless it is persisted it is removed; a process that is killed leaves it for
/// [`forget_staged`].
///
/// # Errors
/// If it cannot be written.
pub fn stage_private_file(path: &Path, content: &[u8]) -> io::Result<NamedTempFile> {
    let folder = folder_of(path);
    // That a folder is missing is said better here: the other error names the hidden file.
    fs::metadata(folder)?;
    let mut file = tempfile::Builder::new().prefix(&staged_prefix(path)).tempfile_in(folder)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    Ok(file)
}

/// Removes what killed processes have left beside a file that they were about to replace. Only for callers that alone
/// may replace the file.
pub fn forget_staged(path: &Path) {
    let prefix = staged_prefix(path);
    let entries = fs::read_dir(folder_of(path)).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(prefix.as_encoded_bytes())) {
        // One that cannot be removed does no harm, and the next call tries again.
        let _ = fs::remove_file(entry.path());
    }
}

fn staged_prefix(path: &Path) -> OsString {
    let mut prefix = OsString::from(".");
    prefix.push(path.file_name().unwrap_or_default());
    prefix.push(".staged-");
    prefix
}

/// Syncs the folder of a file, so that a rename or deletion survives a power failure.
///
/// # Errors
/// If the folder cannot be synced.
pub fn sync_folder_of(path: &Path) -> io::Result<()> {
    File::open(folder_of(path))?.sync_all()
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_folder_was_reported_by_the_name_of_a_hidden_file() {
        let folder = tempfile::tempdir().unwrap();
        let error = replace_private_file(&folder.path().join("none/report.html"), b"").unwrap_err();
        assert_eq!((error.kind(), error.to_string().contains("staged")), (io::ErrorKind::NotFound, false), "{error}");
    }

    /// Once, a file that was named without a folder was written, and then reported as not writable.
    #[test]
    fn a_bare_name_had_no_folder() {
        for (path, folder) in [("report.html", "."), ("./report.html", "."), ("a/b", "a"), ("/b", "/"), ("/", ".")] {
            assert_eq!(folder_of(Path::new(path)), Path::new(folder), "{path}");
        }
    }
}
