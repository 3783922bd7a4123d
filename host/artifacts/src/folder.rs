//! A folder of artifacts that only this user can write to.

use std::{
    fs::{self, DirBuilder, File, Permissions},
    io::{self, Read},
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use pmk_system::ownership::{self, NotOurs};
use rustix::fs::{Mode, OFlags, openat};
use sha2::{Digest, Sha256};
use tempfile::{NamedTempFile, TempDir};
use thiserror::Error;
use wasmtime::{Engine, component::Component};

use crate::native;

/// The start of an artifact file, before its digest. The number changes with the file format.
const MAGIC: &[u8; 16] = b"pmk-artifact/2\r\n";
/// Magic and digest.
const SEAL_BYTES: usize = MAGIC.len() + 32;
/// The maximum total size of the artifacts; those unused for the longest time are removed.
const KEPT_BYTES: u64 = 1 << 30;
/// A staged file that nobody has locked is removed after this time, which is longer than it takes from creating to
/// locking it.
const LEFT_BEHIND: Duration = Duration::from_secs(10);
/// The prefix of files that are being written.
const STAGED: &str = ".staged-";

/// A folder of artifacts. It is opened again for every operation, and created again if somebody has removed it in the
/// meantime: a cache may be deleted at any time.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// A temporary folder, removed when this is dropped.
    scratch: Option<TempDir>,
}

/// Why a folder cannot hold artifacts.
#[derive(Debug, Error)]
pub enum FolderError {
    /// Somebody else could put code into this process.
    #[error(transparent)]
    NotOurs(#[from] NotOurs),
    /// It cannot be used.
    #[error("cannot use `{}`: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
}

/// What is stored under a name.
pub enum Kept {
    /// A component, ready to be linked.
    Component(Component),
    /// Nothing, or something incomplete.
    Nothing,
    /// An artifact that the engine rejects: of another version, for another processor, or requiring more than the
    /// engine has.
    Unfit(wasmtime::Error),
}

/// An artifact that is being written. Removed unless it is kept.
#[derive(Debug)]
pub struct Staged<'a> {
    folder: &'a Folder,
    file: NamedTempFile,
}

/// The header to write before the artifact of the component with this name.
pub fn seal(name: &str, artifact: &[u8]) -> [u8; SEAL_BYTES] {
    let mut seal = [0; SEAL_BYTES];
    seal[..MAGIC.len()].copy_from_slice(MAGIC);
    // Names have a fixed length, so no other name and artifact give the same input.
    let digest = Sha256::new().chain_update(name).chain_update([0]).chain_update(artifact).finalize();
    seal[MAGIC.len()..].copy_from_slice(&digest);
    seal
}

impl Folder {
    /// Opens a folder, creating it for this user alone if it does not exist.
    ///
    /// # Errors
    /// If others can write to it, or it cannot be written to at all.
    pub fn open(path: &Path) -> Result<Folder, FolderError> {
        let folder = Folder { path: path.to_owned(), scratch: None };
        // Fails now rather than after the first component has been compiled.
        drop(folder.stage()?);
        folder.clean();
        Ok(folder)
    }

    /// A temporary folder, removed when this value is dropped.
    ///
    /// # Errors
    /// If there is no space for temporary files.
    pub fn scratch() -> Result<Folder, FolderError> {
        let private = Permissions::from_mode(0o700);
        let temporary = tempfile::Builder::new().permissions(private).tempdir().map_err(at(&std::env::temp_dir()))?;
        Ok(Folder { path: temporary.path().to_owned(), scratch: Some(temporary) })
    }

    /// Opens the folder and checks the open descriptor.
    fn dir(&self) -> Result<File, FolderError> {
        let path = &self.path;
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(at(path))?;
        let dir = File::open(path).map_err(at(path))?;
        let metadata = dir.metadata().map_err(at(path))?;
        if !metadata.is_dir() {
            return Err(FolderError::Io { path: path.clone(), source: io::ErrorKind::NotADirectory.into() });
        }
        ownership::check(path, &metadata)?;
        Ok(dir)
    }

    /// Whether the folder is removed when this value is dropped.
    pub fn is_scratch(&self) -> bool {
        self.scratch.is_some()
    }

    /// Creates a file for an artifact, which is written after its [`seal`].
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn stage(&self) -> Result<Staged<'_>, FolderError> {
        self.dir()?;
        let file = NamedTempFile::with_prefix_in(STAGED, &self.path).map_err(at(&self.path))?;
        // Locked as long as any process holds it, including a child.
        file.as_file().try_lock().map_err(|error| at(&self.path)(error.into()))?;
        Ok(Staged { folder: self, file })
    }

    /// Loads what is stored under this name.
    ///
    /// # Errors
    /// If somebody else could have put it there.
    pub fn load(&self, name: &str, engine: &Engine) -> Result<Kept, FolderError> {
        let (path, dir) = (self.path.join(name), self.dir()?);
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let Ok(file) = openat(&dir, name, flags, Mode::empty()) else { return Ok(Kept::Nothing) };
        let mut file = File::from(file);
        let metadata = file.metadata().map_err(at(&path))?;
        ownership::check(&path, &metadata)?;
        let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default());
        if !metadata.is_file() || file.read_to_end(&mut bytes).is_err() {
            return Ok(Kept::Nothing);
        }
        let Some((written, artifact)) = bytes.split_at_checked(SEAL_BYTES) else { return Ok(Kept::Nothing) };
        if written != seal(name, artifact) {
            return Ok(Kept::Nothing);
        }
        // The ones unused for the longest time are removed first.
        let _ = file.set_modified(SystemTime::now());
        Ok(native::component(engine, artifact).map_or_else(Kept::Unfit, Kept::Component))
    }

    /// Removes the artifact with this name, because it is of no use.
    pub fn remove(&self, name: &str) {
        let _ = fs::remove_file(self.path.join(name));
    }

    /// Removes incomplete files, and the oldest artifacts if there are too many. Errors are ignored.
    fn clean(&self) {
        let Ok(entries) = fs::read_dir(&self.path) else { return };
        let mut kept: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
        for entry in entries.flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            let is_staged = entry.file_name().as_encoded_bytes().starts_with(STAGED.as_bytes());
            match is_staged {
                true if modified.elapsed().is_ok_and(|age| age > LEFT_BEHIND) && is_left(&entry.path()) => {
                    _ = fs::remove_file(entry.path());
                }
                true => {}
                false if metadata.is_file() => kept.push((modified, metadata.len(), entry.path())),
                // Earlier versions stored artifacts in folders.
                false => {}
            }
        }
        kept.sort_unstable();
        let mut bytes: u64 = kept.iter().map(|(_, length, _)| length).sum();
        for (_, length, path) in kept {
            if bytes <= KEPT_BYTES {
                break;
            }
            if fs::remove_file(path).is_ok() {
                bytes -= length;
            }
        }
    }
}

impl Staged<'_> {
    /// Returns another handle of the file, for writing.
    ///
    /// # Errors
    /// If the system has no handles left.
    pub fn file(&self) -> io::Result<File> {
        self.file.as_file().try_clone()
    }

    /// Stores the artifact under this name.
    ///
    /// # Errors
    /// If it cannot be renamed.
    pub fn keep(self, name: &str) -> Result<(), FolderError> {
        let path = self.folder.path.join(name);
        self.file.persist(&path).map_err(|error| FolderError::Io { path, source: error.error })?;
        self.folder.clean();
        Ok(())
    }
}

/// Whether no process is writing the file any more.
fn is_left(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| file.try_lock().is_ok())
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> FolderError {
    let path = path.to_owned();
    move |source| FolderError::Io { path, source }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

    use std::{io::Write, os::unix::fs::PermissionsExt};

    use super::*;

    /// The smallest component, compiled.
    fn artifact(engine: &Engine) -> Vec<u8> {
        engine.precompile_component(b"\0asm\x0d\0\x01\0").unwrap()
    }

    fn keep(folder: &Folder, name: &str, seal: &[u8], artifact: &[u8]) {
        let staged = folder.stage().unwrap();
        staged.file().unwrap().write_all(seal).unwrap();
        staged.file().unwrap().write_all(artifact).unwrap();
        staged.keep(name).unwrap();
    }

    #[test]
    fn only_what_is_whole_and_sealed_is_loaded() {
        let engine = Engine::default();
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::open(&home.path().join("cache")).unwrap();
        let artifact = artifact(&engine);
        keep(&folder, "good", &seal("good", &artifact), &artifact);
        let load = |name: &str| match folder.load(name, &engine).unwrap() {
            Kept::Component(_) => "a component",
            Kept::Nothing => "nothing",
            Kept::Unfit(_) => "unfit",
        };
        assert_eq!(load("good"), "a component");
        let mut damaged = artifact.clone();
        *damaged.last_mut().unwrap() ^= 1;
        keep(&folder, "damaged", &seal("damaged", &artifact), &damaged);
        keep(&folder, "short", &seal("short", &artifact), &artifact[..artifact.len() - 1]);
        // The seal of another component.
        keep(&folder, "exchanged", &seal("good", &artifact), &artifact);
        keep(&folder, "bare", &[], &artifact);
        keep(&folder, "foreign", &seal("foreign", b"no artifact"), b"no artifact");
        keep(&folder, "empty", &[], &[]);
        std::os::unix::fs::symlink(home.path().join("cache/good"), home.path().join("cache/link")).unwrap();
        for name in ["damaged", "short", "exchanged", "bare", "empty", "link", "none"] {
            assert_eq!(load(name), "nothing", "{name}");
        }
        assert_eq!(load("foreign"), "unfit");
    }

    #[test]
    fn nothing_is_loaded_that_others_could_have_written() {
        let engine = Engine::default();
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("cache");
        let folder = Folder::open(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        let artifact = artifact(&engine);
        keep(&folder, "good", &seal("good", &artifact), &artifact);
        let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        set(&path.join("good"), 0o660);
        let refused = folder.load("good", &engine).err().unwrap().to_string();
        assert!(refused.ends_with("cache/good` can be changed by other users (mode 660)"), "{refused}");
        set(&path.join("good"), 0o600);
        set(&path, 0o777);
        let refused = Folder::open(&path).unwrap_err().to_string();
        assert!(refused.ends_with("cache` can be changed by other users (mode 777)"), "{refused}");
    }

    #[test]
    fn what_was_left_half_written_goes_and_what_is_being_written_stays() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("cache");
        drop(Folder::open(&path).unwrap());
        let old = File::create(path.join(".staged-old")).unwrap();
        old.set_modified(SystemTime::now() - 2 * LEFT_BEHIND).unwrap();
        // However old it is, as long as somebody works on it.
        let held = File::create(path.join(".staged-now")).unwrap();
        held.set_modified(SystemTime::now() - 2 * LEFT_BEHIND).unwrap();
        held.try_lock().unwrap();
        drop(Folder::open(&path).unwrap());
        let left: Vec<_> = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, [".staged-now"]);
    }

    #[test]
    fn a_cache_that_was_deleted_is_made_anew() {
        let engine = Engine::default();
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("cache/components");
        let folder = Folder::open(&path).unwrap();
        fs::remove_dir_all(home.path().join("cache")).unwrap();
        let artifact = artifact(&engine);
        keep(&folder, "good", &seal("good", &artifact), &artifact);
        assert!(matches!(folder.load("good", &engine).unwrap(), Kept::Component(_)));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
    }
}
