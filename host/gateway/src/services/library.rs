//! The knowledge base, for all who look something up in it.

use std::sync::{Arc, Mutex, PoisonError};

use pmk_knowledge::{Library, LibraryError};

/// One at a time works with it, on a thread that may block.
#[derive(Clone)]
pub struct SharedLibrary(Arc<Mutex<Library>>);

impl SharedLibrary {
    /// Shares it.
    pub fn new(library: Library) -> SharedLibrary {
        SharedLibrary(Arc::new(Mutex::new(library)))
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
        tokio::task::spawn_blocking(move || {
            // The library keeps nothing that a panic could leave half changed: files and cache are.
            work(&mut library.lock().unwrap_or_else(PoisonError::into_inner))
        })
        .await
        .expect("the knowledge base does not panic")
    }
}
