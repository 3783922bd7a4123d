//! Files that somebody names: regular ones of bounded length.
//!
//! A path is opened once, without waiting, and judged by what was opened: nobody can put a pipe in the place of a file
//! between a look at the path and the reading. A pipe would be waited for without end, a device read without end.

use std::{
    fs::{self, File, FileType, Metadata, OpenOptions},
    io::{self, Read},
    os::unix::fs::{FileTypeExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use rustix::{fs::OFlags, io::Errno};
use thiserror::Error;

/// No text that people hand over is longer: conversations of years have some ten megabytes.
pub const MAX_TEXT_BYTES: u64 = 512 << 20;

/// Why a path is no file that can be read.
#[derive(Debug, Error)]
pub enum FileReadError {
    /// The system says why.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is a folder.
    #[error("it is a folder")]
    Folder,
    /// It is a link, and what it leads to is not there: nobody is to take it for a file that was never made.
    #[error("it is a link to `{}`, which does not exist", .0.display())]
    Dangling(PathBuf),
    /// It is something that has no end, or would be waited for.
    #[error("it is not a regular file but {0}")]
    Special(&'static str),
    /// It is longer than anything sensible.
    #[error("it has {bytes} bytes, more than the limit of {limit}")]
    TooLarge {
        /// How long it is, at least.
        bytes: u64,
        /// The most that is read.
        limit: u64,
    },
}

impl From<FileReadError> for io::Error {
    fn from(error: FileReadError) -> Self {
        match error {
            FileReadError::Io(error) => error,
            FileReadError::Folder => io::Error::new(io::ErrorKind::IsADirectory, error),
            FileReadError::Dangling(_) | FileReadError::Special(_) => {
                io::Error::new(io::ErrorKind::InvalidInput, error)
            }
            FileReadError::TooLarge { .. } => io::Error::new(io::ErrorKind::FileTooLarge, error),
        }
    }
}

/// Opens a regular file, links followed, and says how long it is.
///
/// # Errors
/// [`FileReadError`] says what it is instead.
pub fn open(path: &Path) -> Result<(File, Metadata), FileReadError> {
    // Without waiting for the other end of a pipe, and without becoming a terminal's process.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path);
    let file = file.map_err(|error| match Errno::from_io_error(&error) {
        // What opening a socket says, and a device that nothing is behind.
        Some(Errno::NXIO) => FileReadError::Special("a socket or a device"),
        Some(Errno::NOENT) => fs::read_link(path).map_or(FileReadError::Io(error), FileReadError::Dangling),
        _ => FileReadError::Io(error),
    })?;
    let metadata = file.metadata()?;
    match metadata.file_type() {
        kind if kind.is_file() => Ok((file, metadata)),
        kind if kind.is_dir() => Err(FileReadError::Folder),
        kind => Err(FileReadError::Special(name(kind))),
    }
}

/// Reads a regular file of at most `limit` bytes.
///
/// # Errors
/// [`FileReadError`] says why not.
pub fn read(path: &Path, limit: u64) -> Result<Vec<u8>, FileReadError> {
    let (file, metadata) = open(path)?;
    let too_large = |bytes| FileReadError::TooLarge { bytes, limit };
    if metadata.len() > limit {
        return Err(too_large(metadata.len()));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default());
    // It may grow meanwhile, and what the kernel makes up has no length at all.
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 {
        read if read > limit => Err(too_large(read)),
        _ => Ok(bytes),
    }
}

/// Reads a text that somebody hands over, [`MAX_TEXT_BYTES`] at most.
///
/// # Errors
/// It is no such file, or not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    let bytes = read(path, MAX_TEXT_BYTES)?;
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"))
}

fn name(kind: FileType) -> &'static str {
    match kind {
        kind if kind.is_fifo() => "a pipe",
        kind if kind.is_socket() => "a socket",
        _ => "a device",
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::{fs::symlink, net::UnixListener};

    use rustix::fs::{CWD, FileType as Kind, Mode, mknodat};

    use super::*;

    /// Reads within a bound of ten bytes.
    fn said(path: &Path) -> String {
        read(path, 10).map_or_else(|error| error.to_string(), |bytes| format!("{} bytes", bytes.len()))
    }

    #[test]
    fn only_a_regular_file_of_bounded_length_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("short"), "0123456789").unwrap();
        std::fs::write(at("long"), "0123456789a").unwrap();
        mknodat(CWD, at("pipe"), Kind::Fifo, Mode::RWXU, 0).unwrap();
        let _listener = UnixListener::bind(at("socket")).unwrap();
        symlink("/dev/zero", at("endless")).unwrap();
        symlink(at("short"), at("link")).unwrap();
        symlink("/gone/for good", at("dangling")).unwrap();
        for (name, expected) in [
            ("short", "10 bytes"),
            ("link", "10 bytes"),
            ("long", "it has 11 bytes, more than the limit of 10"),
            ("pipe", "it is not a regular file but a pipe"),
            ("socket", "it is not a regular file but a socket or a device"),
            ("endless", "it is not a regular file but a device"),
            ("", "it is a folder"),
            ("dangling", "it is a link to `/gone/for good`, which does not exist"),
        ] {
            assert_eq!(said(&at(name)), expected, "{name}");
        }
        let kind = |name: &str| read(&at(name), 10).map_err(io::Error::from).unwrap_err().kind();
        assert_eq!(kind("gone"), io::ErrorKind::NotFound);
        // Nobody goes on as if there had never been a file.
        assert_eq!(kind("dangling"), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn what_the_kernel_makes_up_is_bounded_too() {
        // It says that it has no length, and has one.
        assert_eq!(said(Path::new("/proc/self/status")), "it has 11 bytes, more than the limit of 10");
    }
}
