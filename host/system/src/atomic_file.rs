//! A file that gets its name only when it is complete and on the disk. Until then it is `NAME.unfinished` in the same
//! folder; what a killed program has left there is removed by the next program that writes a file with the same name.

use std::{
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use rustix::io::Errno;
use tempfile::TempPath;

use crate::home;

/// Appended to the file's name while it is being written.
const SUFFIX: &str = ".unfinished";

/// Whether the file may replace another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overwrite {
    /// No: the file must not exist.
    Nothing,
    /// It may replace an earlier file.
    Another,
}

/// Why the file was not written; callers add their own message.
#[derive(Debug)]
pub enum NotWritten {
    /// The file exists already.
    Exists,
    /// Another program is writing it.
    Busy,
    /// It cannot be written.
    Io(io::Error),
}

impl From<io::Error> for NotWritten {
    fn from(error: io::Error) -> NotWritten {
        NotWritten::Io(error)
    }
}

/// A file that is being written. It is removed unless it is [placed](AtomicFile::place).
#[derive(Debug)]
pub struct AtomicFile {
    file: File,
    path: TempPath,
    to: PathBuf,
    over: Overwrite,
}

impl AtomicFile {
    /// Creates the temporary file, empty and locked; readable by the owner alone.
    ///
    /// # Errors
    /// If it cannot be created, or a link is in its place: who may write to the folder could have made it, to have
    /// another file of this user emptied.
    pub fn begin(to: &Path, over: Overwrite) -> Result<AtomicFile, NotWritten> {
        if over == Overwrite::Nothing && to.symlink_metadata().is_ok() {
            return Err(NotWritten::Exists);
        }
        let mut name = to.as_os_str().to_owned();
        name.push(SUFFIX);
        let path = PathBuf::from(name);
        let file = home::open_private_file_nofollow(&path).map_err(|error| match Errno::from_io_error(&error) {
            Some(Errno::LOOP) => io::Error::other(format!("`{}` is a link: remove it", path.display())),
            _ => error,
        })?;
        // The previous holder may have finished in the meantime: then this is the complete file, under its own name.
        if file.try_lock().is_err() || !is_at(&file, &path)? {
            return Err(NotWritten::Busy);
        }
        file.set_len(0)?;
        let path = TempPath::try_from_path(path)?;
        Ok(AtomicFile { file, path, to: to.to_owned(), over })
    }

    /// The temporary path, for callers that write by path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Syncs the file to the disk and gives it its name. Returns its size in bytes.
    ///
    /// # Errors
    /// If it cannot have that name.
    pub fn place(self) -> Result<u64, NotWritten> {
        let AtomicFile { file, path, to, over } = self;
        file.sync_all()?;
        let bytes = file.metadata()?.len();
        let placed = match over {
            Overwrite::Nothing => path.persist_noclobber(&to),
            Overwrite::Another => path.persist(&to),
        };
        placed.map_err(|error| match error.error.kind() {
            io::ErrorKind::AlreadyExists => NotWritten::Exists,
            _ => error.error.into(),
        })?;
        home::sync_folder_of(&to)?;
        Ok(bytes)
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Whether an open file is the one at a path.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let open = file.metadata()?;
    match fs::metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) == (open.dev(), open.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_was_left_of_a_file_is_begun_anew_and_nobody_writes_one_at_the_same_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let (to, left) = (folder.path().join("a.jsonl"), folder.path().join("a.jsonl.unfinished"));
        fs::write(&left, "half of a longer one").expect("a file");
        let mut unfinished = AtomicFile::begin(&to, Overwrite::Nothing).expect("it is free");
        assert!(matches!(AtomicFile::begin(&to, Overwrite::Nothing), Err(NotWritten::Busy)));
        unfinished.write_all(b"whole").expect("room");
        assert!(!to.exists());
        assert_eq!(unfinished.place().expect("its name"), 5);
        assert_eq!((fs::read(&to).expect("a file"), left.exists()), (b"whole".to_vec(), false));
        assert!(matches!(AtomicFile::begin(&to, Overwrite::Nothing), Err(NotWritten::Exists)));
        drop(AtomicFile::begin(&to, Overwrite::Another).expect("over the first"));
        assert!(!left.exists(), "what is not placed goes away");
    }

    /// Regression: in a folder like `/tmp`, anybody could have a file of whoever writes there emptied.
    #[test]
    fn a_link_in_place_of_an_unfinished_file_was_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::write(at("precious"), "all that I have").expect("a file");
        for target in ["precious", "none"] {
            symlink(at(target), at("a.jsonl.unfinished")).expect("a link");
            for over in [Overwrite::Nothing, Overwrite::Another] {
                let refused = AtomicFile::begin(&at("a.jsonl"), over).map(drop);
                let told = matches!(&refused, Err(NotWritten::Io(error)) if error.to_string().ends_with("is a link: remove it"));
                assert!(told, "{refused:?}");
            }
            fs::remove_file(at("a.jsonl.unfinished")).expect("the link");
        }
        assert_eq!(fs::read_to_string(at("precious")).expect("it is still there"), "all that I have");
        assert!(!at("none").exists());
    }
}
