//! The knowledge base, shared by all that look something up in it.

use std::sync::Arc;

use pmk_knowledge::{Library, LibraryError};
use pmk_system::threads::offload;
use tokio::sync::Mutex;

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
        // Whoever waits must not hold a thread meanwhile.
        let mut library = Arc::clone(&self.0).lock_owned().await;
        offload(move || work(&mut library)).await
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::HashSet, thread, time::Duration};

    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn who_waits_for_the_library_holds_no_thread() {
        let home = tempfile::tempdir().expect("a temporary folder");
        let library = SharedLibrary::new(Library::open(home.path()).expect("an empty library"));
        let looks = (0..100).map(|_| {
            let library = library.clone();
            tokio::spawn(async move {
                let look = |_: &mut Library| {
                    // So long that all others wait by then.
                    thread::sleep(Duration::from_millis(2));
                    Ok(thread::current().id())
                };
                library.with(look).await
            })
        });
        let mut threads = HashSet::new();
        for look in looks.collect::<Vec<_>>() {
            threads.insert(look.await.expect("no panic").expect("a look"));
        }
        // One that has just passed the library on may not be free for the next yet.
        assert!(threads.len() < 10, "{} threads", threads.len());
    }
}
