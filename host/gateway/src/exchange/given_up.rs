//! What an attempt at a turn has come to that ended without a stored answer.

use pmk_models::Usage;

use super::Cut;
use crate::{
    ledger::{Event, TaggedEvent},
    store::TurnOutcome,
};

/// The results of an abandoned attempt. If its messages are not retried, all of it counts; otherwise only model usage,
/// overflow refusals and what was removed.
#[derive(Clone, Debug, Default)]
pub struct GivenUp {
    pub usage: Usage,
    pub outcome: TurnOutcome,
    /// What it removed from the conversation; people are told with the answer.
    pub cut: Option<Cut>,
    /// Its ledger events that are not stored.
    pub events: Vec<TaggedEvent>,
}

impl GivenUp {
    /// Returns the events that stay true whatever later attempts do.
    pub fn into_lasting_events(self) -> Vec<TaggedEvent> {
        lasting(self.events)
    }

    /// Takes the events out, to be stored by themselves: those that stay true whatever later attempts do.
    pub fn take_lasting_events(&mut self) -> Vec<TaggedEvent> {
        lasting(std::mem::take(&mut self.events))
    }

    /// Puts events back that could not be stored: those that stay true whatever later attempts do.
    pub fn put_back_events(&mut self, events: Vec<TaggedEvent>) {
        self.events.extend(lasting(events));
    }

    /// Adds the results of earlier attempts that still count.
    pub fn after(mut self, earlier: GivenUp) -> GivenUp {
        self.usage.add(earlier.usage);
        self.cut = Cut::both(earlier.cut, self.cut);
        // An overflow under another arm does not count against this one.
        self.outcome.overflowed |= earlier.outcome.overflowed && earlier.outcome.tags == self.outcome.tags;
        self.events.splice(0..0, lasting(earlier.events));
        self
    }
}

fn lasting(mut events: Vec<TaggedEvent>) -> Vec<TaggedEvent> {
    events.retain(|tagged| {
        matches!(
            tagged.event,
            Event::TokenUsage { .. }
                | Event::OverflowDetected { .. }
                | Event::ContextExceeded { .. }
                | Event::ContextSuspected { .. }
        )
    });
    events
}
