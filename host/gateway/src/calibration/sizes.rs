//! Which request sizes of a conversation its model has answered, and above which size it fails without an explanation.
//!
//! A server may fail for large requests without mentioning their size: with status 500, by a reset connection, by a
//! stream that ends with nothing. A server that is down does the same for all requests. So the size is only suspected
//! if two consecutive turns have failed in this way, and if no request as large was ever answered in this conversation.
//! What is learnt from it applies to this conversation only, and is stored with each turn.
//!
//! Like a [bound](super::bounds) for all conversations, the smallest refused size holds for a time; then a larger
//! request may be sent, whose answer removes it. Nothing here reads a clock.

use serde::{Deserialize, Serialize};

use super::{
    LEAST_LIMIT, TokenBudget,
    bounds::{Hold, Refused, Source},
};

/// The number of consecutive failed turns from which on their size is suspected.
const FAILURES: u32 = 2;

/// What is known of the request sizes of one conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sizes {
    /// The model that this applies to, by provider and name.
    model: String,
    /// Consecutive turns that have ended without an answer and without an explanation.
    failures: u32,
    /// The largest request that was ever answered.
    largest_answered: u64,
    /// The smallest request that failed while a smaller one was answered.
    smallest_refused: Option<Refused>,
}

impl Sizes {
    /// Returns these if they apply to this model; nothing is known of another one.
    pub(crate) fn of(self, provider: &str, name: &str) -> Sizes {
        let model = format!("{provider}:{name}");
        if self.model == model { self } else { Sizes { model, ..Sizes::default() } }
    }

    /// Notes that a turn has ended without an answer and without an explanation.
    pub(crate) fn turn_failed(&mut self) {
        self.failures = self.failures.saturating_add(1);
    }

    /// Notes that a turn has ended with an answer.
    pub(crate) fn turn_answered(&mut self) {
        self.failures = 0;
    }

    /// Notes that a request of this size was answered.
    pub(crate) fn answered(&mut self, size: u64) {
        self.largest_answered = self.largest_answered.max(size);
        self.smallest_refused = self.smallest_refused.filter(|refused| size < refused.size);
        if let Some(refused) = &mut self.smallest_refused {
            refused.fits = refused.fits.max(size);
        }
    }

    /// Notes that a request of this size failed, and a smaller one was answered.
    pub(crate) fn refused(&mut self, size: u64, now_ms: i64) {
        match &mut self.smallest_refused {
            Some(known) if known.size <= size => known.hold.confirm(now_ms),
            known => {
                let fits = if self.largest_answered < size { self.largest_answered } else { 0 };
                *known = Some(Refused { size, fits, source: Source::Failing, hold: Hold::new(now_ms) });
            }
        }
    }

    /// Returns whether a request of this size that got no answer, without an explanation, may have been too
    /// large.
    pub(crate) fn may_be_too_large(&self, size: u64) -> bool {
        let was_refused = self.smallest_refused.is_some_and(|refused| refused.size <= size);
        self.largest_answered < size && (was_refused || self.failures >= FAILURES)
    }

    /// Returns the largest request that may be sent now, if anything is known.
    fn most(&self, now_ms: i64) -> Option<u64> {
        self.smallest_refused.filter(|refused| !refused.hold.is_over(now_ms)).map(|refused| refused.most())
    }

    /// Limits a budget, beside a preamble of this many tokens, by what is known of this conversation.
    pub(crate) fn capped(&self, budget: TokenBudget, preamble_tokens: u64, now_ms: i64) -> TokenBudget {
        let Some(most) = self.most(now_ms) else { return budget };
        let limit = budget.limit.min(most.saturating_sub(preamble_tokens).max(LEAST_LIMIT));
        TokenBudget { limit, ..budget }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::bounds::FIRST_HOLD_MS, *};

    fn failed_twice() -> Sizes {
        let mut sizes = Sizes::default().of("openai", "m");
        sizes.turn_failed();
        assert!(!sizes.may_be_too_large(9_000), "once may be anything");
        sizes.turn_failed();
        sizes
    }

    #[test]
    fn two_turns_in_a_row_that_fail_may_be_too_large() {
        let mut sizes = failed_twice();
        assert!(sizes.may_be_too_large(9_000));
        sizes.turn_answered();
        assert!(!sizes.may_be_too_large(9_000));
    }

    #[test]
    fn what_is_as_large_as_an_answered_request_is_not_too_large() {
        let mut sizes = failed_twice();
        sizes.answered(8_000);
        assert!(!sizes.may_be_too_large(8_000) && sizes.may_be_too_large(8_001));
    }

    #[test]
    fn what_was_refused_bounds_and_is_suspected_at_once_until_as_much_is_answered() {
        let mut sizes = failed_twice();
        sizes.answered(2_000);
        sizes.refused(8_000, 0);
        sizes.turn_answered();
        assert_eq!(sizes.most(1), Some(5_000));
        assert!(sizes.may_be_too_large(8_000) && !sizes.may_be_too_large(7_999));
        sizes.answered(6_000);
        assert_eq!((sizes.most(1), sizes.most(FIRST_HOLD_MS)), (Some(7_000), None));
        sizes.refused(9_000, FIRST_HOLD_MS);
        assert_eq!(sizes.most(2 * FIRST_HOLD_MS), Some(7_000), "it holds for twice as long");
        sizes.answered(8_000);
        assert_eq!(sizes.most(FIRST_HOLD_MS), None);
    }

    #[test]
    fn a_conversation_is_never_limited_below_what_is_always_tried() {
        let mut sizes = failed_twice();
        let budget = TokenBudget::of(200_000, 500);
        assert_eq!(sizes.capped(budget, 500, 1), budget);
        sizes.answered(2_000);
        sizes.refused(8_000, 0);
        assert_eq!(sizes.capped(budget, 500, 1), TokenBudget { limit: 4_500, ..budget });
        assert_eq!(sizes.capped(budget, 4_500, 1).limit, LEAST_LIMIT);
        assert_eq!(sizes.capped(budget, 500, FIRST_HOLD_MS), budget);
    }

    #[test]
    fn of_another_model_nothing_is_known() {
        let mut sizes = failed_twice();
        sizes.answered(2_000);
        assert_eq!(sizes.clone().of("openai", "m"), sizes);
        assert_eq!(sizes.of("openai", "n"), Sizes::default().of("openai", "n"));
    }

    #[test]
    fn they_survive_the_round_trip() {
        let mut sizes = failed_twice();
        sizes.refused(8_000, 1);
        let written = serde_json::to_string(&sizes).expect("JSON");
        assert_eq!(serde_json::from_str::<Sizes>(&written).expect("the same"), sizes, "{written}");
    }
}
