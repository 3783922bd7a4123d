//! Errors of importing and exporting conversations.

use std::{borrow::Cow, io, path::PathBuf};

use pmk_core::{SessionKey, history::HistoryError};
use pmk_system::error::Failure;
use thiserror::Error;

use crate::store::StoreError;

/// Why a conversation could not be imported or exported. Others are not affected.
#[derive(Debug, Error)]
pub enum TransferError {
    #[error("cannot read `{}`: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot write `{}`: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    /// Existing files are never overwritten.
    #[error("`{}` already exists", path.display())]
    InTheWay { path: PathBuf },
    #[error("`{}` is being written by another command", path.display())]
    Busy { path: PathBuf },
    #[error("`{}` contains no conversation", path.display())]
    NothingFound { path: PathBuf },
    /// A folder whose name is not an id.
    #[error("`{}` is not named like the id of a user, a channel or a thread", path.display())]
    NoId { path: PathBuf },
    #[error("cannot tell which conversation `{}` is", path.display())]
    Anonymous { path: PathBuf },
    /// A key was given for a file that names its conversations itself.
    #[error("`--key` is only for a single file of pmk: `{}` itself says which conversations it contains", path.display())]
    KeyOfMany { path: PathBuf },
    #[error("`{}` contains no readable message", path.display())]
    NoMessage { path: PathBuf },
    /// An id that would lead elsewhere as part of a path.
    #[error("`{key}` cannot be the name of a file")]
    NoPath { key: SessionKey },
    #[error("`{}`: {source}", path.display())]
    History { path: PathBuf, source: HistoryError },
    #[error("`{}` was written by a newer pmk-host: its format is version {found}, this one knows {known}", path.display())]
    Newer { path: PathBuf, found: u32, known: u32 },
    #[error("`{}` is not an export of pmk-host: its first line names no format", path.display())]
    NotFull { path: PathBuf },
    #[error("`{key}` cannot be read: {source}")]
    Unreadable { key: SessionKey, source: Box<StoreError> },
    /// It was cut off: conversations may be missing without a trace.
    #[error("`{}` ends early, at line {line}; what came after is missing", path.display())]
    EndsEarly { path: PathBuf, line: usize },
    /// As if it were cut off where reading fails.
    #[error("`{}` cannot be read to its end: {source}; what comes after is missing", path.display())]
    CutShort { path: PathBuf, source: io::Error },
    #[error("`{}`, line {line}: {what}", path.display())]
    Line { path: PathBuf, line: usize, what: String },
}

impl TransferError {
    /// Returns what the operator can do about it.
    pub fn hint(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            TransferError::Read { .. } => "check that it exists and that you can read it",
            TransferError::Write { .. } => "free disk space, or specify a place that you can write to",
            TransferError::InTheWay { .. } => "move it elsewhere, or export to another place",
            TransferError::Busy { .. } => "wait until it has finished, or export to another place",
            TransferError::NothingFound { .. } => {
                "specify the folder that contains `users` and `channels`, such as `~/.pmk/gateway/slack`, or a file in it"
            }
            TransferError::NoId { .. } => "rename it to the id it stands for, or move it out of the folder",
            TransferError::Anonymous { .. } => "choose one with `--key`, for example `--key slack:dm:U1`",
            TransferError::KeyOfMany { .. } => "omit `--key`",
            TransferError::NoMessage { .. } => {
                "check that it is a history of pmk, or an export of pmk-host with its first line, in UTF-8"
            }
            TransferError::NoPath { .. } => "export it with `--format full`",
            TransferError::History { source, .. } => source.hint(),
            TransferError::Unreadable { source, .. } => {
                return source.hint().unwrap_or(Cow::Borrowed("try again"));
            }
            TransferError::Newer { .. } => "upgrade pmk-host",
            TransferError::NotFull { .. } => "omit `--format` to detect the format",
            TransferError::EndsEarly { .. } | TransferError::CutShort { .. } => {
                "export it again, or copy the whole file"
            }
            TransferError::Line { .. } => "export it again; the other conversations are intact",
        })
    }
}

impl From<TransferError> for Failure {
    fn from(error: TransferError) -> Self {
        Failure::new(&error).hint(error.hint())
    }
}
