//! The folder of atoms: `knowledge/SCOPE/ID.md`.
//!
//! A file is replaced atomically (written in the same folder, synced, renamed). Whoever changes one holds the folder's
//! lock and reads the file again first, so that a promotion never restores an atom that somebody has rejected in the
//! meantime. People who delete a file do not use the lock, so a file is only replaced while it exists.

use std::{
    fs::{self, File, Permissions},
    io,
    path::{Path, PathBuf},
};

use pmk_system::error::Failure;
use pmk_system::files::{self, FileReadError};
use pmk_system::home;
use rustix::{
    fs::{CWD, RenameFlags, renameat_with},
    io::Errno,
};
use tempfile::NamedTempFile;
use thiserror::Error;

use super::atom::{Atom, AtomError, Notice};
/// A larger file is not an atom: somebody put a dump there.
pub(super) const MAX_FILE_BYTES: u64 = 1024 * 1024;

const LOCK: &str = ".lock";

/// Why a file or the folder cannot be used.
#[derive(Debug, Error)]
pub enum FileError {
    /// The system returned an error.
    #[error("`{}` cannot be {action}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The attempted action, as in "cannot be read".
        action: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// It is text, but not an atom.
    #[error("`{}` is not an atom: {source}", path.display())]
    Atom {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: AtomError,
    },
    /// It is not UTF-8.
    #[error("`{}` is not an atom: it is not UTF-8 text", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
    },
    /// It is larger than 1 MiB.
    #[error("`{}` is not an atom: it has more than {} KiB", path.display(), MAX_FILE_BYTES / 1024)]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// It is a folder, a pipe or a device.
    #[error("`{}` is not a file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// There is an atom with this id already.
    #[error("`{}` already exists", path.display())]
    Exists {
        /// Its file.
        path: PathBuf,
    },
    /// It is no longer what was read, and is left as somebody else has made it.
    #[error("`{}` was changed by somebody else in the meantime", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
}

impl FileError {
    /// Whether the file does not exist.
    pub fn is_missing(&self) -> bool {
        matches!(self, FileError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// The file that somebody has to mend: it is there, but is not an atom.
    pub fn broken(&self) -> Option<&Path> {
        match self {
            FileError::Atom { path, .. }
            | FileError::NotText { path }
            | FileError::TooLarge { path }
            | FileError::NotAFile { path } => Some(path),
            FileError::Io { .. } | FileError::Exists { .. } | FileError::Changed { .. } => None,
        }
    }
}

/// The folder.
#[derive(Clone, Debug)]
pub struct AtomFiles {
    root: PathBuf,
}

/// The lock for changing files; other processes wait for it.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl AtomFiles {
    /// Opens the folder `knowledge` of a home, creating it if it is missing.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn open(home: &Path) -> Result<Self, FileError> {
        let root = folder(home);
        make_private_dir(&root)?;
        let root = root.canonicalize().map_err(|source| io_error(&root, "opened", source))?;
        Ok(AtomFiles { root })
    }

    /// Opens the folder; `None` if it does not exist yet.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open_existing(home: &Path) -> Result<Option<Self>, FileError> {
        let root = folder(home);
        match root.canonicalize() {
            Ok(root) => Ok(Some(AtomFiles { root })),
            Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(io_error(&root, "opened", source)),
        }
    }

    /// The file in this folder that corresponds to a path in another home with the same atoms.
    pub fn here(&self, path: &Path) -> PathBuf {
        let scope = path.parent().and_then(Path::file_name).unwrap_or_default();
        self.root.join(scope).join(path.file_name().unwrap_or_default())
    }

    /// The folder of the scopes' folders.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The names of all scopes' folders, sorted.
    ///
    /// # Errors
    /// If the folder cannot be listed.
    pub(crate) fn scopes(&self) -> Result<Vec<String>, FileError> {
        list(&self.root, |path| path.is_dir())
    }

    /// The names of all files of a scope that may be atoms, sorted.
    ///
    /// # Errors
    /// If the folder cannot be listed; a folder that does not exist is empty.
    pub(crate) fn names(&self, scope: &str) -> Result<Vec<String>, FileError> {
        match list(&self.root.join(scope), is_atom_name) {
            Err(error) if error.is_missing() => Ok(Vec::new()),
            names => names,
        }
    }

    /// Every file that may be an atom, sorted.
    ///
    /// # Errors
    /// If a folder cannot be listed.
    pub(crate) fn paths(&self) -> Result<Vec<PathBuf>, FileError> {
        let mut paths = Vec::new();
        for scope in self.scopes()? {
            let folder = self.root.join(&scope);
            paths.extend(self.names(&scope)?.into_iter().map(|name| folder.join(name)));
        }
        Ok(paths)
    }

    /// Reads one atom.
    ///
    /// # Errors
    /// [`FileError`] says why it is not an atom.
    pub(crate) fn read(&self, path: &Path) -> Result<Atom, FileError> {
        self.read_with_text(path).map(|(atom, _)| atom)
    }

    /// Reads one atom, and returns its file's text with it.
    ///
    /// # Errors
    /// [`FileError`] says why it is not an atom.
    pub(crate) fn read_with_text(&self, path: &Path) -> Result<(Atom, String), FileError> {
        let text = read_text(path)?;
        let atom = Atom::parse(&text).map_err(|source| FileError::Atom { path: path.to_owned(), source })?;
        Ok((atom, text))
    }

    /// Waits for the lock and takes it.
    ///
    /// # Errors
    /// If the lock's file cannot be created or locked.
    pub(crate) fn lock(&self) -> Result<Lock, FileError> {
        let path = self.root.join(LOCK);
        let file = File::options().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(|source| io_error(&path, "opened", source))?;
        file.lock().map_err(|source| io_error(&path, "locked", source))?;
        Ok(Lock { _file: file })
    }

    /// The path at which an atom is saved.
    pub fn path_of(&self, atom: &Atom) -> PathBuf {
        self.root.join(&atom.meta.scope).join(format!("{}.md", atom.meta.id))
    }

    /// Saves a new atom and returns its path.
    ///
    /// # Errors
    /// [`FileError::Exists`] if this very atom was saved before; otherwise if it cannot be written.
    pub fn save_new(&self, atom: &Atom) -> Result<PathBuf, FileError> {
        make_private_dir(&self.root.join(&atom.meta.scope))?;
        let path = self.path_of(atom);
        let failed = |source| io_error(&path, "written", source);
        let staged = home::stage_private_file(&path, render(atom, &path)?.as_bytes()).map_err(failed)?;
        match staged.persist_noclobber(&path) {
            Ok(_) => sync_folder(&path)?,
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => return Err(FileError::Exists { path }),
            Err(error) => return Err(failed(error.error)),
        }
        Ok(path)
    }

    /// Replaces an existing atom whose file had this text.
    ///
    /// # Errors
    /// If it cannot be written, or [somebody else](FileError::Changed) has; what is there then stays, unless somebody
    /// has deleted it.
    pub(crate) fn replace(&self, lock: &Lock, path: &Path, before: &str, atom: &Atom) -> Result<(), FileError> {
        self.replace_text(lock, path, before, &render(atom, path)?)
    }

    /// The same with a text that somebody edited, unchanged. A link stays one, and its file keeps its permissions.
    ///
    /// # Errors
    /// Those of [`replace`](AtomFiles::replace).
    pub(crate) fn replace_text(&self, _lock: &Lock, path: &Path, before: &str, text: &str) -> Result<(), FileError> {
        let failed = |source| io_error(path, "written", source);
        let file = path.canonicalize().map_err(failed)?;
        // The file that a link leads to may be shared with others.
        let permissions = if file == path { None } else { Some(fs::metadata(&file).map_err(failed)?.permissions()) };
        let path = &file;
        let Some(old) = exchange(path, text, permissions)? else { return Ok(()) };
        // People who edit a file do not use the lock.
        if read_text(old.path()).is_ok_and(|old| old == before) {
            return Ok(());
        }
        fs::rename(old.path(), path).map_err(|source| io_error(path, "written", source))?;
        sync_folder(path)?;
        Err(FileError::Changed { path: path.to_owned() })
    }

    /// Deletes an atom's file. It is not an error if it does not exist.
    ///
    /// # Errors
    /// If it cannot be deleted.
    pub(crate) fn delete(&self, _lock: &Lock, path: &Path) -> Result<(), FileError> {
        match fs::remove_file(path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(io_error(path, "deleted", source)),
            _ => sync_folder(path),
        }
    }
}

/// The folder of a home.
pub fn folder(home: &Path) -> PathBuf {
    home.join("knowledge")
}

/// Whether a file name is that of an atom: Markdown, and not hidden, as temporary files are.
pub(super) fn is_atom_name(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md") && !is_hidden(path)
}

/// Reads a regular text file of limited size.
///
/// # Errors
/// [`FileError`] says why it cannot be read.
pub fn read_text(path: &Path) -> Result<String, FileError> {
    let failed = |source| io_error(path, "read", source);
    let bytes = files::read(path, MAX_FILE_BYTES).map_err(|problem| match problem {
        link @ FileReadError::Dangling(_) => failed(link.into()),
        FileReadError::Folder | FileReadError::Special(_) => FileError::NotAFile { path: path.to_owned() },
        FileReadError::TooLarge { .. } => FileError::TooLarge { path: path.to_owned() },
        FileReadError::Io(source) => failed(source),
    })?;
    String::from_utf8(bytes).map_err(|_| FileError::NotText { path: path.to_owned() })
}

/// Whether a file still names a notice as its own although it is not an atom.
pub(super) fn names_notice(path: &Path, notice: &Notice) -> bool {
    let Ok(bytes) = files::read(path, MAX_FILE_BYTES) else { return false };
    let text = String::from_utf8_lossy(&bytes);
    let is_of_notice = |line: &str| line.contains("messageTs") && line.contains(&notice.message_ts);
    text.contains(&notice.channel_id) && text.lines().any(is_of_notice)
}

/// Creates a folder and its parents, accessible to their owner alone.
pub(super) fn make_private_dir(path: &Path) -> Result<(), FileError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(|source| io_error(path, "created", source))
}

pub(super) fn io_error(path: &Path, action: &'static str, source: io::Error) -> FileError {
    FileError::Io { path: path.to_owned(), action, source }
}

fn render(atom: &Atom, path: &Path) -> Result<String, FileError> {
    atom.render().map_err(|source| FileError::Atom { path: path.to_owned(), source })
}

/// Replaces an existing file, by a private one unless other permissions are given, and returns the old one, which is
/// deleted when dropped; `None` where the file system cannot exchange files.
pub(super) fn exchange(
    path: &Path,
    text: &str,
    permissions: Option<Permissions>,
) -> Result<Option<NamedTempFile>, FileError> {
    let failed = |source| io_error(path, "written", source);
    let staged = home::stage_private_file(path, text.as_bytes()).map_err(failed)?;
    if let Some(permissions) = permissions {
        staged.as_file().set_permissions(permissions).map_err(failed)?;
    }
    if fs::symlink_metadata(path).map_err(failed)?.is_dir() {
        return Err(failed(io::ErrorKind::IsADirectory.into()));
    }
    let old = match renameat_with(CWD, staged.path(), CWD, path, RenameFlags::EXCHANGE) {
        // The staged file is now the old one.
        Ok(()) => Some(staged),
        // The file system cannot exchange files.
        Err(Errno::INVAL | Errno::NOSYS) => {
            staged.persist(path).map_err(|error| failed(error.error))?;
            None
        }
        Err(error) => return Err(failed(error.into())),
    };
    sync_folder(path)?;
    Ok(old)
}

pub(super) fn sync_folder(path: &Path) -> Result<(), FileError> {
    home::sync_folder_of(path).map_err(|source| io_error(path.parent().unwrap_or(path), "synced", source))
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

/// The names in a folder; names that are not UTF-8 were not written by us and are ignored.
fn list(folder: &Path, keep: impl Fn(&Path) -> bool) -> Result<Vec<String>, FileError> {
    let failed = |source| io_error(folder, "listed", source);
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if let Some(name) = path.file_name().and_then(|name| name.to_str())
            && !is_hidden(&path)
            && keep(&path)
        {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        if let FileError::Changed { .. } = error {
            return Failure::new(error).hint("read it again and repeat your command if you still want it");
        }
        Failure::new(error).hint("check that you own the folder, that you can write to it and that the disk has free space, or use another `--home`")
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;
    use crate::testing::atom;

    #[test]
    fn a_saved_atom_is_private_and_reads_back() {
        let home = tempfile::tempdir().unwrap();
        let files = AtomFiles::open(home.path()).unwrap();
        let atom = atom("../../etc/passwd", "預算？", "很多");
        let path = files.save_new(&atom).unwrap();
        assert!(path.starts_with(files.root().join("etc-passwd")));
        assert_eq!(files.read(&path).unwrap(), atom);
        assert_eq!(files.paths().unwrap(), std::slice::from_ref(&path));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap()), mode(files.root())), (0o600, 0o700, 0o700));
        assert!(matches!(files.save_new(&atom), Err(FileError::Exists { .. })));
    }

    /// Regression: a plain file took the place of the link, and the file that it led to stayed as it was.
    #[test]
    fn a_verdict_on_an_atom_whose_file_is_a_link_replaced_the_link() {
        let home = tempfile::tempdir().unwrap();
        let files = AtomFiles::open(home.path()).unwrap();
        let link = files.save_new(&atom("erp", "q", "a")).unwrap();
        let file = home.path().join("elsewhere.md");
        fs::rename(&link, &file).unwrap();
        symlink(&file, &link).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o664)).unwrap();
        let (mut atom, before) = files.read_with_text(&link).unwrap();
        atom.approve();
        files.replace(&files.lock().unwrap(), &link, &before, &atom).unwrap();
        assert!(link.is_symlink());
        assert_eq!(files.read(&file).unwrap(), atom);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o664);
    }

    #[test]
    fn an_atom_of_another_home_is_found_in_this_one() {
        let (home, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let [here, there] = [&home, &other].map(|home| AtomFiles::open(home.path()).unwrap());
        let [path, path_there] = [&here, &there].map(|files| files.save_new(&atom("erp", "q", "a")).unwrap());
        assert_eq!((here.here(&path_there), here.here(&path)), (path.clone(), path));
    }

    #[test]
    fn a_write_that_fails_leaves_the_old_file_and_no_litter() {
        let home = tempfile::tempdir().unwrap();
        let files = AtomFiles::open(home.path()).unwrap();
        let path = files.save_new(&atom("erp", "q", "old")).unwrap();
        let blocked = path.with_file_name("blocked.md");
        fs::create_dir_all(blocked.join("full")).unwrap();
        assert!(files.replace_text(&files.lock().unwrap(), &blocked, "old", "new").is_err());
        let names = fs::read_dir(path.parent().unwrap()).unwrap().count();
        assert_eq!((files.read(&path).unwrap().answer(), names), ("old", 2));
    }

    #[test]
    fn what_was_deleted_is_not_brought_back_by_a_change() {
        let home = tempfile::tempdir().unwrap();
        let files = AtomFiles::open(home.path()).unwrap();
        let atom = atom("erp", "q", "a");
        let path = files.save_new(&atom).unwrap();
        fs::remove_file(&path).unwrap();
        assert!(files.replace(&files.lock().unwrap(), &path, "old", &atom).unwrap_err().is_missing());
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 0);
    }

    #[test]
    fn what_is_no_text_file_of_reasonable_size_is_named() {
        let home = tempfile::tempdir().unwrap();
        let files = AtomFiles::open(home.path()).unwrap();
        let scope = files.root().join("erp");
        fs::create_dir_all(scope.join("folder.md")).unwrap();
        fs::write(scope.join("binary.md"), [0xff, 0xfe, 0]).unwrap();
        fs::write(scope.join("huge.md"), vec![b'x'; MAX_FILE_BYTES as usize + 1]).unwrap();
        fs::write(scope.join("notes.txt"), "x").unwrap();
        fs::write(scope.join(".hidden.md"), "x").unwrap();
        let problems: Vec<String> =
            files.paths().unwrap().iter().map(|path| files.read(path).unwrap_err().to_string()).collect();
        let expected = ["not UTF-8", "not a file", "more than 1024 KiB"];
        assert_eq!(problems.len(), expected.len(), "{problems:?}");
        assert!(problems.iter().zip(expected).all(|(problem, expected)| problem.contains(expected)), "{problems:?}");
    }
}
