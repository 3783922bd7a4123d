//! What the erasure of a conversation excuses.

use super::Verdict;
use crate::slack::{Question, number};

impl Verdict<'_> {
    /// Whether its conversation may have been erased by then.
    pub(super) fn may_be_erased(&self, question: &Question, by: u64) -> bool {
        let attempts = self.world.erasures.attempts();
        attempts.iter().any(|attempt| attempt.is_at(question) && attempt.began_at <= by)
    }

    /// Whether it may have been parked, which its asker sees, and then erased with its conversation.
    pub(super) fn went_parked(&self, question: &Question) -> bool {
        let attempts = self.world.erasures.attempts();
        let went = attempts.iter().any(|attempt| attempt.is_at(question) && attempt.takes_parked);
        went && (self.is_told(question) || self.is_refused(question))
    }

    /// The same of the question of an event. What is asked again has an event of another name.
    pub(super) fn event_went_parked(&self, event_id: &str) -> bool {
        let Some(number) = number(event_id) else {
            return self.world.erasures.attempts().iter().any(|attempt| attempt.takes_parked);
        };
        let mut questions = self.questions.iter().filter(|question| question.number == number);
        questions.any(|question| self.went_parked(question))
    }
}
