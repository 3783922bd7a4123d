//! The token budget: divides the model's window into preamble, answer, and conversation.

use pmk_models::{ANSWER_SHARE, LEAST_ANSWER_TOKENS};

use super::Calibration;
use crate::ids::SessionId;

/// Room for the answer, in tokens; never more than its share of the window.
const ANSWER_TOKENS: u64 = 8_192;

/// The least hard limit that anything learnt of a model may leave, in tokens. A conversation within it is always tried,
/// and never suspected of being too large.
pub(crate) const LEAST_LIMIT: u64 = 1_024;

/// How the model's window is divided, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TokenBudget {
    pub window: u64,
    pub answer: u32,
    /// What is left for messages: the hard limit of guard rule 9.
    pub limit: u64,
    /// What the new message alone may take. It is tried up to the refused size.
    pub alone: u64,
    /// Whether that is what fits according to the window, rather than a size that was not tried
    /// yet.
    pub is_counted: bool,
}

impl TokenBudget {
    /// Returns what a window leaves beside a preamble of this many tokens, if nothing is known of how the
    /// model counts.
    pub(crate) fn of(window: u64, preamble_tokens: u64) -> TokenBudget {
        TokenBudget::counted(window, preamble_tokens, |tokens| tokens)
    }

    /// Returns the same for a known model: `estimate_for` returns the largest estimate of a whole prompt
    /// for which the provider counts this many tokens.
    pub(crate) fn counted(window: u64, preamble_tokens: u64, estimate_for: impl Fn(u64) -> u64) -> TokenBudget {
        let answer = ANSWER_TOKENS.min(window / ANSWER_SHARE);
        let limit = estimate_for(window.saturating_sub(answer)).saturating_sub(preamble_tokens);
        TokenBudget { window, answer: u32::try_from(answer).unwrap_or(u32::MAX), limit, alone: limit, is_counted: true }
    }

    /// Returns the same with what was learnt of the model and of this conversation so far.
    pub(crate) fn calibrated(
        window: u64,
        preamble_tokens: u64,
        session: SessionId,
        calibration: &Calibration,
        now_ms: i64,
    ) -> TokenBudget {
        let stated = TokenBudget::of(window, preamble_tokens);
        let bounds = calibration.bounds();
        // A model that counts less than the host estimates does not get more room than its window.
        let mut learnt = TokenBudget::counted(bounds.window(window, session, now_ms), preamble_tokens, |tokens| {
            calibration.estimate_for(session, tokens).min(tokens)
        });
        if let Some(most) = bounds.most(session, now_ms) {
            learnt.limit = learnt.limit.min(most.saturating_sub(preamble_tokens));
        }
        if let Some(most) = bounds.most_alone(session, now_ms).map(|most| most.saturating_sub(preamble_tokens)) {
            learnt.is_counted = learnt.alone <= most;
            learnt.alone = learnt.alone.min(most);
        }
        if learnt.limit >= LEAST_LIMIT || learnt.limit >= stated.limit {
            return learnt;
        }
        // What was learnt may be wrong, and must not lock anybody out: a short question is always tried. With the room
        // for an answer that the stated window has, it would be refused again where the learnt one is right.
        tracing::warn!(
            window = learnt.window,
            factor = calibration.fit().factor(),
            overhead = calibration.fit().overhead(),
            most = bounds.most(session, now_ms),
            "the learned limits of the model leave no room for a conversation: short ones are tried all the same\n  \
             hint: if the model accepts more, stop the gateway and reset the limits with `pmk-host model forget`"
        );
        let limit = stated.limit.min(LEAST_LIMIT);
        let answer = learnt.answer.max(LEAST_ANSWER_TOKENS).min(stated.answer);
        TokenBudget { limit, alone: limit.max(learnt.alone), answer, is_counted: false, ..stated }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::calibration::{Refusal, Source};

    /// Regression: it was told as an error, although nothing went wrong with the question.
    #[test]
    fn a_limit_without_room_was_an_error_in_the_log() {
        let (mut calibration, session) = (Calibration::default(), SessionId::of(1));
        let refusal = Refusal { observed: Some(8_692), window: Some(6_000), source: Source::Refused };
        calibration.refused(session, 500, refusal, 0);
        let log = tempfile::NamedTempFile::new().expect("a file");
        let subscriber = tracing_subscriber::fmt().with_writer(log.reopen().expect("the file")).finish();
        let divide = || TokenBudget::calibrated(200_000, 300, session, &calibration, 0);
        assert_eq!(tracing::subscriber::with_default(subscriber, divide).limit, LEAST_LIMIT);
        let log = fs::read_to_string(log.path()).expect("the log");
        assert!(log.contains("WARN") && log.contains("are tried all the same"), "{log}");
    }
}
