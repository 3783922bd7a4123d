//! The knowledge base, for all who look something up in it.

use std::sync::{Arc, Mutex, PoisonError};

use pmk_knowledge::{Library, LibraryError};
use pmk_system::threads::offload;

/// One at a time works with it, on a thread that may block.
#[derive(Clone)]
pub struct SharedLibrary(Arc<Mutex<Library>>);

impl SharedLibrary {
    /// Shares it.
    pub fn new(library: Library) -> SharedLibrary {
        SharedLibrary(Arc::new(Mutex::new(library)))
    }

    /// Whether nothing can be found in it. Looks at the disk once, and waits for nobody.
    pub(crate) fn is_empty_still(&self) -> bool {
        self.0.try_lock().is_ok_and(|library| library.is_empty_still())
    }

    /// Does something with it, which blocks on the disk.
    ///
    /// # Errors
    /// The work's own.
    pub(crate) async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Library) -> Result<T, LibraryError> + Send + 'static,
    ) -> Result<T, LibraryError> {
        let SharedLibrary(library) = self.clone();
        offload(move || {
            // The library keeps nothing that a panic could leave half changed: files and cache are.
            work(&mut library.lock().unwrap_or_else(PoisonError::into_inner))
        })
        .await
    }
}
