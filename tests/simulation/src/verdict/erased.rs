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
        // How old one is that was only read back is not known.
        let is_taken_in = question.accepted_at.is_some();
        is_asked && is_taken_in && !self.is_called_off(question) && !self.may_be_erased(question, self.world.time())
    }

    /// Whether it may have been parked, which its asker sees, and then erased with its conversation.
    pub(super) fn went_parked(&self, question: &Question) -> bool {
        let attempts = self.world.erasures.attempts();
        let went = attempts.iter().any(|attempt| attempt.is_at(question) && attempt.takes_parked)
            || self.went_for_its_age(question);
        went && (self.is_told(question) || self.is_refused(question) || self.says_parked(question))
    }

    /// Whether the ledger says that something of its conversation was parked. One that is answered is parked for what
    /// remains to be done, and its asker is not told.
    fn says_parked(&self, question: &Question) -> bool {
        let session = question.inbound.key.to_string();
        let mut lines = self.ledger.lines().filter(|line| line.contains("\"turn.parked\""));
        lines.any(|line| line.contains(&format!("\"session\":\"{session}\"")))
    }

    /// Whether its conversation may have been erased for its age, and was seen to be.
    fn went_for_its_age(&self, question: &Question) -> bool {
        self.may_be_too_old(question, self.world.time()) && self.world.was_emptied_since(question)
    }

    /// Whether the question of an event went parked. What is asked again has an event of another name.
    pub(super) fn event_went_parked(&self, event_id: &str) -> bool {
        let Some(number) = number(event_id) else {
            let attempts = self.world.erasures.attempts();
            let is_taken = |question: &Question| {
                attempts.iter().any(|attempt| attempt.takes_parked && attempt.key == question.inbound.key)
            };
            let mut again = self.questions.iter().filter(|question| self.is_wished_again(question));
            return again.any(|question| is_taken(question) || self.went_for_its_age(question));
        };
        let mut questions = self.questions.iter().filter(|question| question.number == number);
        questions.any(|question| self.went_parked(question))
    }
}
