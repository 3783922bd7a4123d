//! The ledger of one turn: each of its events says whose decisions the turn went by.

use std::sync::atomic::{AtomicBool, Ordering};

use pmk_policy::Record;

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

    /// Tells operator and ledger of every layer that did not decide although it was asked.
    pub fn note_failures(&self, actor: &str, records: &[Record]) {
        for record in records {
            let Some(reason) = record.outcome.reason() else { continue };
            self.failed.store(true, Ordering::Relaxed);
            tracing::warn!(policy = record.policy.name, sha256 = record.policy.sha256, reason, "policy failed");
            self.note(Event::PolicyFailed {
                actor: actor.to_owned(),
                policy: record.policy.name.clone(),
                version: record.policy.version.clone(),
                sha256: record.policy.sha256.clone(),
                decision: record.decision.name().to_owned(),
                reason: reason.to_owned(),
            });
        }
    }

    /// Whether a policy has failed in this turn.
    pub fn has_failures(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }
}
