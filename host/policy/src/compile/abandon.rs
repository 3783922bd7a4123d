//! Loading that nobody waits for any more.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// How often is looked whether somebody still waits.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Tells a component that is being compiled that nobody waits for it any more. Clones are one.
#[derive(Clone, Debug, Default)]
pub struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    /// Ends what is being compiled for it, soon.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether nobody waits any more.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
