//! What could not be stored. Where the database or the disk is away everything that comes fails the same way, so the log tells of
//! the first, and once something can be stored again how many there were.

use std::sync::atomic::{AtomicU64, Ordering};

use pmk_system::error::Failure;

/// How much could not be stored since something was.
#[derive(Debug, Default)]
pub(super) struct Unstored(AtomicU64);

impl Unstored {
    /// Something failed, which `tell` tells of where it is the first.
    pub(super) fn failed(&self, error: &Failure, tell: impl FnOnce(&str)) {
        match self.0.fetch_add(1, Ordering::Relaxed) {
            0 => tell(error.message()),
            _ => tracing::debug!(error = error.message(), "this could not be stored either"),
        }
    }

    pub(super) fn stored(&self) {
        // Nearly always there is nothing to tell.
        if self.0.load(Ordering::Relaxed) > 0 {
            match self.0.swap(0, Ordering::Relaxed) {
                0 | 1 => {}
                more => {
                    tracing::warn!("{more} deliveries from Slack could not be stored; new ones can be stored again")
                }
            }
        }
    }
}
