//! What an attempt at a turn has come to that ended without a stored answer.

use pmk_models::Usage;

use super::Cut;
use crate::{
    ledger::{Event, TaggedEvent},
    store::TurnOutcome,
};

/// The results of an abandoned attempt. If its messages are not retried, all of it counts; otherwise only what stays
/// true whatever later attempts do: model usage, overflow refusals, what was removed, and what policies and `mra` were
/// asked.
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

    /// Adds an attempt that ended before there was a request: what an earlier one has come to stays.
    pub fn and_early(self, early: GivenUp) -> GivenUp {
        if self.outcome == TurnOutcome::default() {
            return early.after(self);
        }
        let mut all = self;
        if all.outcome.tags == early.outcome.tags {
            all.outcome.failed |= early.outcome.failed;
            all.outcome.skipped |= early.outcome.skipped;
        }
        all.events = lasting(all.events);
        all.events.extend(early.events);
        all
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

/// Keeps what has happened outside the turn. A later attempt that does the same does it once more, and notes it once
/// more; everything else is about an answer that the turn does not get.
fn lasting(mut events: Vec<TaggedEvent>) -> Vec<TaggedEvent> {
    events.retain(|tagged| {
        matches!(
            tagged.event,
            Event::TokenUsage { .. }
                | Event::OverflowDetected { .. }
                | Event::ContextExceeded { .. }
                | Event::ContextSuspected { .. }
                | Event::MraAskEnd { .. }
                | Event::PolicyFailed { .. }
                | Event::PolicySuspended { .. }
                | Event::PolicyResumed { .. }
                | Event::PolicyRead { .. }
        )
    });
    events
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::PolicyAsked;

    /// Regression: an attempt that ended while its request was prepared took the place of one that had failed.
    #[test]
    fn what_an_attempt_had_come_to_was_forgotten_for_one_that_ended_early() {
        let outcome = |failed, skipped| TurnOutcome { failed, skipped, overflowed: failed, ..TurnOutcome::default() };
        let whole = GivenUp { outcome: outcome(true, false), ..GivenUp::default() };
        let early = GivenUp { outcome: outcome(false, true), ..GivenUp::default() };
        let both = whole.and_early(early.clone()).outcome;
        assert!(both.failed && both.skipped && both.overflowed, "{both:?}");
        assert_eq!(GivenUp::default().and_early(early.clone()).outcome, early.outcome, "there was none before it");
    }

    /// Regression: nothing told of them if people edited the question, although the policy stayed suspended.
    #[test]
    fn what_policies_and_mra_were_asked_in_an_attempt_that_was_given_up_was_forgotten() {
        let asked =
            PolicyAsked { policy: "strict".into(), version: "1.0.0".into(), sha256: "00".into(), decision: "prune" };
        let (actor, reason) = ("U1".to_owned(), "trapped".to_owned());
        let (repo, kind) = ("erp".to_owned(), "mra-result");
        let events = [
            Event::MraAskEnd { actor: actor.clone(), repo, ok: false, retried: false, duration_ms: 7 },
            Event::MessageCapped { actor: actor.clone(), kind, original_chars: 9, capped_chars: 5 },
            Event::PolicyFailed { actor, asked: asked.clone(), reason: reason.clone() },
            Event::PolicySuspended { asked: asked.clone(), failures: 5, pause: 20, reason },
            Event::PolicyResumed { asked },
        ];
        let given_up = GivenUp { events: events.map(TaggedEvent::from).into(), ..GivenUp::default() };
        let kept = GivenUp::default().after(given_up).events.into_iter();
        let kept = kept.map(|tagged| serde_json::to_value(tagged.event).expect("JSON")["type"].clone());
        let lasting = ["mra-ask.end", "policy.failed", "policy.suspended", "policy.resumed"];
        assert_eq!(kept.collect::<Vec<_>>(), lasting);
    }
}
