//! Counts what could not be stored. If the database or disk is unavailable, everything fails in the same way; so only
//! the first failure is logged and, once something can be stored again, their number.

use std::sync::atomic::{AtomicU64, Ordering};

use pmk_system::error::Failure;

/// How many failures there were since something was last stored.
#[derive(Debug, Default)]
pub(super) struct Unstored(AtomicU64);

impl Unstored {
    /// Notes a failure; `tell` logs it if it is the first.
    pub(super) fn failed(&self, error: &Failure, tell: impl FnOnce(&str)) {
        match self.0.fetch_add(1, Ordering::Relaxed) {
            0 => tell(error.message()),
            _ => tracing::debug!(error = error.message(), "this could not be stored either"),
        }
    }

    pub(super) fn stored(&self) {
        // Nearly always, there is nothing to log.
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
