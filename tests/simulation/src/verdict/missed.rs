//! Checks that what was asked while nobody listened is read back.

use super::Verdict;
use crate::{scenario::What, slack::Question};

/// After such a time in which nobody listened, in milliseconds, Slack has given up sending for certain.
const GIVEN_UP_AFTER: u64 = 5 * 60_000;

impl Verdict<'_> {
    /// Whether the gateway must find it by itself, whether Slack has sent it or not.
    pub(super) fn is_to_be_read_back(&self, question: &Question) -> bool {
        let scenario = &self.world.scenario;
        let is_set = scenario.events.iter().any(|event| matches!(event.what, What::Clock { .. }));
        // One that says "stop" may have stopped something.
        if !scenario.setting.presence || is_set || question.is_deleted || question.is_stop {
            return false;
        }
        let said_at = question.said_at;
        self.silences.iter().filter(|silence| silence.contains(&said_at)).any(|silence| {
            let is_long = silence.end - silence.start >= GIVEN_UP_AFTER;
            // Only conversations that it knows are read.
            let is_known = self.questions.iter().any(|other| {
                let has_come = other.accepted_at.is_some_and(|came| came < silence.start);
                has_come && other.inbound.key == question.inbound.key
            });
            is_long && is_known
        })
    }
}
