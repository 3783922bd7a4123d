//! Why a file is no conversation, or a conversation no file.

use std::{borrow::Cow, io, path::PathBuf};

use pmk_core::{SessionKey, history::HistoryError};
use pmk_system::error::Failure;
use thiserror::Error;

use crate::store::StoreError;

/// What kept a conversation from being moved. The others are not concerned.
#[derive(Debug, Error)]
pub enum TransferError {
    #[error("cannot read `{}`: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot write `{}`: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    /// Nothing is ever written over.
    #[error("`{}` is there already", path.display())]
    InTheWay { path: PathBuf },
    #[error("`{}` is being written by another command", path.display())]
    Busy { path: PathBuf },
    #[error("there is no conversation in `{}`", path.display())]
    NothingFound { path: PathBuf },
    /// The name of a folder that ought to be an id.
    #[error("`{}` is not named like the id of a user, a channel or a thread", path.display())]
    NoId { path: PathBuf },
    #[error("nothing tells which conversation `{}` is", path.display())]
    Anonymous { path: PathBuf },
    /// What was given as the key of what says so itself.
    #[error("`--key` is for a single file of pmk's: `{}` says itself which conversations it holds", path.display())]
    KeyOfMany { path: PathBuf },
    #[error("no message can be read in `{}`", path.display())]
    NoMessage { path: PathBuf },
    /// An id that would lead elsewhere as part of a path.
    #[error("`{key}` cannot be the name of a file")]
    NoPath { key: SessionKey },
    #[error("`{}`: {source}", path.display())]
    History { path: PathBuf, source: HistoryError },
    #[error("`{}` was written by a newer pmk-host: its format is version {found}, this one knows {known}", path.display())]
    Newer { path: PathBuf, found: u32, known: u32 },
    #[error("`{}` is no export of pmk-host: its first line says no format", path.display())]
    NotFull { path: PathBuf },
    #[error("`{key}` cannot be read: {source}")]
    Unreadable { key: SessionKey, source: Box<StoreError> },
    #[error("`{}`, line {line}: {what}", path.display())]
    Line { path: PathBuf, line: usize, what: String },
}

impl TransferError {
    /// What the operator can do about it.
    pub fn hint(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            TransferError::Read { .. } => "check that it is there and that you may read it",
            TransferError::Write { .. } => "make room on the disk, or name a place where you may write",
            TransferError::InTheWay { .. } => "move it away, or export to another place",
            TransferError::Busy { .. } => "wait until it is done, or export to another place",
            TransferError::NothingFound { .. } => {
                "name the folder that holds `users` and `channels`, such as `~/.pmk/gateway/slack`, or a file of it"
            }
            TransferError::NoId { .. } => "rename it to the id it stands for, or move it out of the folder",
            TransferError::Anonymous { .. } => "say which with `--key`, such as `--key slack:dm:U1`",
            TransferError::KeyOfMany { .. } => "leave `--key` out",
            TransferError::NoMessage { .. } => {
                "is it a history of pmk's, or an export of pmk-host whose first line is there, as UTF-8?"
            }
            TransferError::NoPath { .. } => "`--format full` exports it",
            TransferError::History { source, .. } => source.hint(),
            TransferError::Unreadable { source, .. } => {
                return source.hint().unwrap_or(Cow::Borrowed("try it again"));
            }
            TransferError::Newer { .. } => "upgrade pmk-host",
            TransferError::NotFull { .. } => "leave `--format` out to have it recognised",
            TransferError::Line { .. } => "export it anew; the conversations around it are sound",
        })
    }
}

impl From<TransferError> for Failure {
    fn from(error: TransferError) -> Self {
        Failure::new(&error).hint(error.hint())
    }
}
