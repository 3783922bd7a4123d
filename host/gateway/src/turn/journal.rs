//! The ledger of one turn: each of its events says whose decisions the turn went by.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::ledger::{Event, Ledger, Tags};

/// Notes the events of a turn.
pub(super) struct Journal<'a> {
    ledger: &'a Ledger,
    tags: Tags,
    failed: AtomicBool,
}

impl<'a> Journal<'a> {
    pub fn new(ledger: &'a Ledger, tags: Tags) -> Self {
        Journal { ledger, tags, failed: AtomicBool::new(false) }
    }

    /// Whose decisions the turn goes by.
    pub fn tags(&self) -> &Tags {
        &self.tags
    }

    pub fn note(&self, event: Event) {
        self.ledger.note_of(event, self.tags.clone());
    }

    /// A policy has failed.
    pub fn note_failure(&self) {
        self.failed.store(true, Ordering::Relaxed);
    }

    /// Whether a policy has failed in this turn.
    pub fn has_failures(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }
}
