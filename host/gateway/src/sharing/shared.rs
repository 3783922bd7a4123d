//! Something that is kept the same in several homes.

use std::{io, path::PathBuf};

use pmk_knowledge::files::FileError;
use thiserror::Error;

use crate::{config::EditError, store::StoreError};

/// What is kept the same. For threads that may wait.
pub trait Synced: Send + 'static {
    /// Says that it is not, for the moment.
    fn tell(why: &str);

    /// Does whatever can be done now for both to be the same.
    ///
    /// # Errors
    /// One of them cannot be used for the moment; what was done until then is done.
    fn pass(&mut self) -> Result<(), SharingError>;
}

/// Why the two could not be kept the same for the moment.
#[derive(Debug, Error)]
pub enum SharingError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Config(#[from] EditError),
    /// What the store has makes no sense here.
    #[error("cannot use what the database has of gateway.json: {0}")]
    Unusable(String),
    /// What was last the same cannot be remembered.
    #[error("cannot write `{}`: {source}", path.display())]
    Memory { path: PathBuf, source: io::Error },
}
