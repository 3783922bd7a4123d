//! Something that is kept in step across several homes.

use std::{io, path::PathBuf};

use pmk_knowledge::files::FileError;
use thiserror::Error;

use crate::{config::EditError, store::StoreError};

/// Something kept in step between a home and the store. Runs on threads that may block.
pub trait Synced: Send + 'static {
    /// Logs why it cannot be kept in step at the moment.
    fn tell(why: &str);

    /// Brings both in step as far as possible now.
    ///
    /// # Errors
    /// One of the two cannot be used at the moment; what was done until then is kept.
    fn pass(&mut self) -> Result<(), SharingError>;
}

/// Why home and store cannot be kept in step at the moment.
#[derive(Debug, Error)]
pub enum SharingError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Config(#[from] EditError),
    /// What the store has is invalid here.
    #[error("cannot use what the database has of gateway.json: {0}")]
    Unusable(String),
    /// The state last in step cannot be written.
    #[error("cannot write `{}`: {source}", path.display())]
    Memory { path: PathBuf, source: io::Error },
}
