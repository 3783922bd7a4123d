//! The summarize decision: what to carry over into a fresh session.

use std::sync::Arc;

use pmk_core::{Rule, Transcript, quoting, text, tokens};

use super::{Judged, Question, Stack};
use crate::{
    decision::{DecidedBy, Decision},
    instance::{self, SummarizeParams},
    limits::Size,
    record::{Outcome, Record},
    state::{SummaryDraft, Task},
};

/// What a fresh session starts from.
#[derive(Clone, Debug)]
pub struct SummaryDecision {
    /// At most the allowed number of tokens when [quoted](pmk_core::quoting), without invisible characters; empty when
    /// no layer wrote anything that can be seen.
    pub text: String,
    /// Who wrote it. With [`DecidedBy::Floor`] nobody did: the fresh session starts without a summary.
    pub decided_by: DecidedBy,
    /// Every layer that was asked, the top one first.
    pub records: Vec<Record>,
}

impl Stack {
    /// Builds the summary that a fresh session starts from, without a model call. A text longer than `max_tokens` is
    /// cut at a grapheme boundary.
    pub fn summarize(&self, transcript: &Arc<Transcript>, max_tokens: u32) -> SummaryDecision {
        let question = Question::<SummarizeParams> {
            decision: Decision::Summarize,
            function: |functions| functions.summarize,
            size: Size::of(transcript),
            params: || (instance::borrow(), instance::borrow()),
            task: &|| Task::Summarize {
                transcript: transcript.clone(),
                summary: SummaryDraft { max_tokens, text: String::new(), cut: false },
            },
        };
        let asked = self.decide(&question, |task, _| {
            let Task::Summarize { summary, .. } = task else { return Judged::misplaced() };
            let seen = text::plain(&summary.text);
            let kept = within(&seen, max_tokens);
            let is_whole = kept.len() == summary.text.len() && !summary.cut;
            let corrected = || Outcome::Corrected { rules: vec![Rule::Graphemes.number()] };
            Judged {
                outcome: if is_whole { Outcome::Accepted } else { corrected() },
                // One that says nothing is no summary: the next layer writes it.
                answer: (!kept.trim().is_empty()).then(|| kept.to_owned()),
            }
        });
        SummaryDecision { text: asked.answer.unwrap_or_default(), decided_by: asked.decided_by, records: asked.records }
    }
}

/// The longest prefix of a text that costs at most this many tokens when quoted, cut at a grapheme boundary.
fn within(summary: &str, max_tokens: u32) -> &str {
    let costs = |words: &str| if words.is_empty() { 0 } else { tokens::estimate(&quoting::quoted(words)) };
    if costs(summary) <= max_tokens {
        return summary;
    }
    let fits = |bytes: usize| costs(text::head_bytes(summary, bytes)) <= max_tokens;
    let (mut fitting, mut too_long) = (0, summary.len());
    while too_long - fitting > 1 {
        let middle = fitting + (too_long - fitting) / 2;
        if fits(middle) {
            fitting = middle;
        } else {
            too_long = middle;
        }
    }
    text::head_bytes(summary, fitting)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_summary_never_exceeds_what_is_allowed(summary in "(\\PC|預|👨‍👩‍👧|word |1234){0,60}", max in 0u32..60) {
            let kept = within(&summary, max);
            prop_assert!(summary.starts_with(kept));
            prop_assert!(kept.is_empty() || tokens::estimate(&quoting::quoted(kept)) <= max);
            prop_assert_eq!(text::head_bytes(&summary, kept.len()), kept);
        }
    }

    #[test]
    fn what_fits_is_kept_whole() {
        assert_eq!(within("short", 6_000), "short");
    }
}
