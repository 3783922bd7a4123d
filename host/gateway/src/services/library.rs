//! The knowledge base, shared by all that look something up in it.

use std::sync::{Arc, Mutex, PoisonError};

use pmk_knowledge::{Library, LibraryError};
use pmk_system::threads::offload;

/// The shared knowledge base. One caller at a time uses it, on a thread that may block.
#[derive(Clone)]
pub struct SharedLibrary(Arc<Mutex<Library>>);

impl SharedLibrary {
    /// Shares a knowledge base.
    pub fn new(library: Library) -> SharedLibrary {
        SharedLibrary(Arc::new(Mutex::new(library)))
    }

    /// Returns whether it is empty. Reads the disk once, and never waits for the lock.
    pub(crate) fn is_empty_still(&self) -> bool {
        self.0.try_lock().is_ok_and(|library| library.is_empty_still())
    }

    /// Runs work on it that blocks on the disk.
    ///
    /// # Errors
    /// The error of the work.
    pub(crate) async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Library) -> Result<T, LibraryError> + Send + 'static,
    ) -> Result<T, LibraryError> {
        let SharedLibrary(library) = self.clone();
        offload(move || {
            // A panic cannot leave the library inconsistent: its state is in files and a cache.
            work(&mut library.lock().unwrap_or_else(PoisonError::into_inner))
        })
        .await
    }
}
