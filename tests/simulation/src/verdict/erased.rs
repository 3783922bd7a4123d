//! What the erasure of a conversation excuses.

use super::Verdict;
use crate::{
    model,
    slack::{Post, Question, number},
    witness,
};

impl Verdict<'_> {
    /// Whether its conversation may have been erased by then.
    pub(super) fn may_be_erased(&self, question: &Question, by: u64) -> bool {
        let attempts = self.world.erasures.attempts();
        let is_erased = attempts.iter().any(|attempt| attempt.is_at(question) && attempt.began_at <= by);
        is_erased || self.may_be_too_old(question, by)
    }

    /// Whether the gateway may have erased its conversation for its age by then.
    fn may_be_too_old(&self, question: &Question, by: u64) -> bool {
        question.accepted_at.is_some_and(|accepted| self.world.may_have_aged(question, accepted, by.max(accepted)))
    }

    /// Whether the archive must have it: the model has answered it, and nobody has deleted or erased it.
    pub(super) fn must_be_archived(&self, question: &Question, replies: &[&Post]) -> bool {
        let answers = |reply: &Post| {
            let is_models = witness::answers(&reply.text).next().is_some();
            is_models && model::names(&reply.text).contains(&question.number)
        };
        // A command may be answered with earlier text.
        let is_asked = !question.is_order && !question.is_stop && matches!(replies, [reply] if answers(reply));
        is_asked && !self.is_called_off(question) && !self.may_be_erased(question, self.world.time())
    }

    /// Whether it may have been parked, which its asker sees, and then erased with its conversation.
    pub(super) fn went_parked(&self, question: &Question) -> bool {
        let attempts = self.world.erasures.attempts();
        let went = attempts.iter().any(|attempt| attempt.is_at(question) && attempt.takes_parked)
            || self.may_be_too_old(question, self.world.time());
        went && (self.is_told(question) || self.is_refused(question))
    }

    /// The same of the question of an event. What is asked again has an event of another name.
    pub(super) fn event_went_parked(&self, event_id: &str) -> bool {
        let Some(number) = number(event_id) else {
            let is_taken = self.world.erasures.attempts().iter().any(|attempt| attempt.takes_parked);
            return is_taken || self.questions.iter().any(|question| self.may_be_too_old(question, self.world.time()));
        };
        let mut questions = self.questions.iter().filter(|question| question.number == number);
        questions.any(|question| self.went_parked(question))
    }
}
