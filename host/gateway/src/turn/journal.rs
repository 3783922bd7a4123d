//! The ledger events of one turn. Each event names the policies that decided for the turn. The events are stored
//! together with the turn's other writes. When an attempt is given up, its events about the answer are dropped, because
//! the next attempt notes its own; those that [stay true](crate::exchange::GivenUp), about its cost, prompts that were
//! too long, policies and `mra`, are kept. If there is no next attempt, because people have called the turn off, all of
//! them are stored with its end.

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
    skipped: AtomicBool,
}

impl Journal {
    pub fn new(tags: Tags) -> Self {
        Journal { tags, events: Mutex::default(), failed: AtomicBool::new(false), skipped: AtomicBool::new(false) }
    }

    /// The policies that decide for the turn.
    pub fn tags(&self) -> &Tags {
        &self.tags
    }

    /// Notes an event, which is stored with the next write that [takes](Journal::take) it.
    pub fn note(&self, event: Event) {
        let noted = self.of_turn(event);
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push(noted);
    }

    /// Returns an event of the turn that is stored with a write of its own.
    pub fn of_turn(&self, event: Event) -> TaggedEvent {
        TaggedEvent { event, tags: self.tags.clone() }
    }

    /// Takes the events noted and not yet taken, oldest first.
    pub fn take(&self) -> Vec<TaggedEvent> {
        std::mem::take(&mut self.events.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes that a policy has failed.
    pub fn note_failure(&self) {
        self.failed.store(true, Ordering::Relaxed);
    }

    /// Returns whether a policy has failed in this turn.
    pub fn has_failures(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Notes that a suspended policy was skipped.
    pub fn note_skip(&self) {
        self.skipped.store(true, Ordering::Relaxed);
    }

    /// Returns whether a suspended policy was skipped in this turn.
    pub fn has_skips(&self) -> bool {
        self.skipped.load(Ordering::Relaxed)
    }
}
