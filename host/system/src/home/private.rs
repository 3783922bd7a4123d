//! Files and folders that only their owner can read.

use std::{
    ffi::OsString,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write},
    path::Path,
};

use tempfile::NamedTempFile;

/// Makes a folder and those above it, readable by the owner alone (0700). Folders that are there stay
/// as they are.
///
/// # Errors
/// The folder cannot be made.
pub fn create_private_dir(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Opens a file for reading and writing, which is made if it is missing; readable by the owner alone (0600).
///
/// # Errors
/// The file cannot be opened, or belongs to someone else.
pub fn open_private_file(path: &Path) -> io::Result<File> {
    open_private(path, OpenOptions::new().read(true).write(true).create(true).truncate(false))
}

/// Opens a file for reading and for writing at its end, which is made if it is missing; readable by the owner
/// alone (0600).
///
/// # Errors
/// The file cannot be opened, or belongs to someone else.
pub fn append_private_file(path: &Path) -> io::Result<File> {
    open_private(path, OpenOptions::new().read(true).append(true).create(true))
}

fn open_private(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    let file = options.open(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        if file.metadata()?.permissions().mode() & 0o077 != 0 {
            file.set_permissions(fs::Permissions::from_mode(0o600))?;
        }
    }
    Ok(file)
}

/// Replaces a file as a whole or not at all; readable by the owner alone (0600).
///
/// # Errors
/// It cannot be written; the old one is still there then.
pub fn replace_private_file(path: &Path, content: &[u8]) -> io::Result<()> {
    stage_private_file(path, content)?.persist(path)?;
    sync_folder_of(path)
}

/// Writes what is to become this file to a hidden one beside it, readable by the owner alone (0600), and on to
/// the disk. Unless it is persisted it goes away; a process that is killed meanwhile leaves it for [`forget_staged`].
///
/// # Errors
/// It cannot be written.
pub fn stage_private_file(path: &Path, content: &[u8]) -> io::Result<NamedTempFile> {
    let mut file = tempfile::Builder::new().prefix(&staged_prefix(path)).tempfile_in(folder_of(path))?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    Ok(file)
}

/// Takes away what killed processes have left beside a file that they were about to replace. Only for who alone may
/// replace it.
pub fn forget_staged(path: &Path) {
    let prefix = staged_prefix(path);
    let entries = fs::read_dir(folder_of(path)).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(prefix.as_encoded_bytes())) {
        // One that cannot be taken away is of no use to anybody, and the next tries again.
        let _ = fs::remove_file(entry.path());
    }
}

fn staged_prefix(path: &Path) -> OsString {
    let mut prefix = OsString::from(".");
    prefix.push(path.file_name().unwrap_or_default());
    prefix.push(".staged-");
    prefix
}

/// A rename or deletion survives a power cut once the folder is synced.
///
/// # Errors
/// The folder cannot be synced.
pub fn sync_folder_of(path: &Path) -> io::Result<()> {
    File::open(folder_of(path))?.sync_all()
}

fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}
