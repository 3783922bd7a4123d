//! A file that has its name once it is whole and on the disk. Until then it is `NAME.unfinished` beside its place, and what a
//! killed program has left of it is taken away by the next that writes a file of the same name.

use std::{
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use tempfile::TempPath;

use crate::home;

/// Behind the name of the file while it is being written.
const SUFFIX: &str = ".unfinished";

/// What the file may take the place of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overwrite {
    /// Nothing: there must be no such file.
    Nothing,
    /// An earlier one.
    Another,
}

/// Why there is no such file; whoever wants it says so in words of its own.
#[derive(Debug)]
pub enum NotWritten {
    /// There is one already.
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

/// Such a file while it is being written. It goes away unless it is [placed](AtomicFile::place).
#[derive(Debug)]
pub struct AtomicFile {
    file: File,
    path: TempPath,
    to: PathBuf,
    over: Overwrite,
}

impl AtomicFile {
    /// An empty file for this one, locked; readable by the owner alone.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn begin(to: &Path, over: Overwrite) -> Result<AtomicFile, NotWritten> {
        if over == Overwrite::Nothing && to.symlink_metadata().is_ok() {
            return Err(NotWritten::Exists);
        }
        let mut name = to.as_os_str().to_owned();
        name.push(SUFFIX);
        let path = PathBuf::from(name);
        let file = home::open_private_file(&path)?;
        // Whoever had it may have finished meanwhile: then this is the whole one, under its own name.
        if file.try_lock().is_err() || !is_at(&file, &path)? {
            return Err(NotWritten::Busy);
        }
        file.set_len(0)?;
        let path = TempPath::try_from_path(path)?;
        Ok(AtomicFile { file, path, to: to.to_owned(), over })
    }

    /// Where it is meanwhile, for who writes it by its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives it its name, once it is on the disk. Its size in bytes.
    ///
    /// # Errors
    /// It cannot have that name.
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
}
