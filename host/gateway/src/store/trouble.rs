//! Why nothing can be stored at the moment although the store is there: its disk is full, its file may not be written,
//! another program keeps it locked.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::error::StoreError;

/// The trouble with writing, if there is any.
#[derive(Default)]
pub(super) struct Trouble(Mutex<Option<String>>);

impl Trouble {
    pub(super) fn begins(&self, error: &StoreError) {
        *self.why_now() = Some(error.to_string());
    }

    pub(super) fn ends(&self) {
        *self.why_now() = None;
    }

    pub(super) fn why(&self) -> Option<String> {
        self.why_now().clone()
    }

    fn why_now(&self) -> MutexGuard<'_, Option<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
