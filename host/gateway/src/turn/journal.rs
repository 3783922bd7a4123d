//! What the ledger is to tell of one turn: each of its events says whose decisions the turn went by. They are stored with
//! what the turn stores; what a turn has noted that comes to nothing is gone with it, and noted again when it is run again.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use crate::ledger::{Event, TaggedEvent, Tags};

/// Collects the events of a turn.
pub(super) struct Journal {
    tags: Tags,
    events: Mutex<Vec<TaggedEvent>>,
    failed: AtomicBool,
}

impl Journal {
    pub fn new(tags: Tags) -> Self {
        Journal { tags, events: Mutex::default(), failed: AtomicBool::new(false) }
    }

    /// Whose decisions the turn goes by.
    pub fn tags(&self) -> &Tags {
        &self.tags
    }

    /// Notes an event, which goes along with the next write that [takes](Journal::take) it.
    pub fn note(&self, event: Event) {
        let noted = self.of_turn(event);
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push(noted);
    }

    /// An event of the turn that goes along with a write of its own.
    pub fn of_turn(&self, event: Event) -> TaggedEvent {
        TaggedEvent { event, tags: self.tags.clone() }
    }

    /// What was noted and not taken yet, oldest first.
    pub fn take(&self) -> Vec<TaggedEvent> {
        std::mem::take(&mut self.events.lock().unwrap_or_else(PoisonError::into_inner))
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
