//! An answer as lines that can be compared.

use std::collections::{BTreeMap, BTreeSet};

use pmk_core::CapVerdict;
use pmk_policy::{CapDecision, DecidedBy, Outcome, PruneDecision, Record, RecoverDecision, SummaryDecision};

use super::{Difference, Unfit};
use crate::evaluation::authoring::{ranges::ranges, recorded::Recorded};

/// The lines of an answer by name.
pub(super) type Lines = BTreeMap<String, String>;

/// The rung of an answer that chooses none: what the host would then do is not the policy's answer.
const LEFT: &str = "left to the next layer";

/// The answer of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    lines: Lines,
    /// Why it cannot become the expected answer.
    pub(super) unfit: Option<Unfit>,
}

impl Answer {
    pub(super) fn of_prune(decision: &PruneDecision, recorded: &Recorded, limit: u64) -> Answer {
        let applied = &decision.applied;
        let answer = Answer::of(&decision.records, || {
            let mut lines = vec![
                ("kept", ranges(&recorded.file_indexes(&applied.kept))),
                ("tokens", format!("{} to {}", applied.tokens_before, applied.tokens_after)),
            ];
            if !applied.removed.is_empty() {
                lines.push(("dropped", ranges(&recorded.file_indexes(&applied.removed))));
            }
            if let Some((marker, before)) = &applied.marker {
                lines.push(("marker", format!("before {}: {}", recorded.file_index(*before), marker.text())));
            }
            if let Some(recall) = &applied.recall {
                // Ids of archived messages are their positions in the file.
                let indexes: Vec<usize> = recall.ids.iter().filter_map(|&id| usize::try_from(id).ok()).collect();
                lines.push(("recalled", ranges(&indexes)));
            }
            let shortened: Vec<String> = applied
                .replaced
                .iter()
                .map(|by| {
                    format!("{}: {} to {} characters", recorded.file_index(by.index), by.chars_before, by.chars_after)
                })
                .collect();
            if !shortened.is_empty() {
                lines.push(("shortened", shortened.join("; ")));
            }
            if let Some(range) = &applied.compaction {
                let indexes: Vec<u32> = range.clone().map(|at| at as u32).collect();
                lines.push(("summed up first", ranges(&recorded.file_indexes(&indexes))));
            }
            lines
        });
        let unfit = if applied.kept.is_empty() {
            Some(Unfit::Empty)
        } else {
            (applied.tokens_after > limit).then_some(Unfit::TooLarge)
        };
        Answer { unfit: answer.unfit.or(unfit), ..answer }
    }

    pub(super) fn of_cap(decision: &CapDecision) -> Answer {
        Answer::of(&decision.records, || {
            let verdict = match decision.verdict {
                CapVerdict::Keep => "keep it whole".to_owned(),
                CapVerdict::Shorten { head, tail } => format!("keep the first {head} and the last {tail} characters"),
                CapVerdict::Digest => "keep a digest".to_owned(),
            };
            vec![("verdict", verdict)]
        })
    }

    pub(super) fn of_summary(decision: &SummaryDecision) -> Answer {
        Answer::of(&decision.records, || vec![("summary", decision.text.clone())])
    }

    pub(super) fn of_recovery(decision: &RecoverDecision) -> Answer {
        Answer::of(&decision.records, || {
            let rung = match decision.decided_by {
                DecidedBy::Policy(_) => decision.rung.name(),
                DecidedBy::Floor => LEFT,
            };
            vec![("rung", rung.to_owned())]
        })
    }

    /// If the policy gave no usable answer, the outcome is the only line.
    fn of(records: &[Record], lines: impl FnOnce() -> Vec<(&'static str, String)>) -> Answer {
        let outcome = records.first().map(|record| &record.outcome);
        let (said, is_bad) = match outcome {
            Some(outcome) => (said(outcome), outcome.is_bad()),
            None => ("not asked".to_owned(), true),
        };
        let lines = if is_bad { vec![] } else { lines() };
        let lines = lines.into_iter().chain([("outcome", said)]);
        Answer {
            lines: lines.map(|(name, text)| (name.to_owned(), text)).collect(),
            unfit: matches!(outcome, Some(Outcome::Failed { .. })).then_some(Unfit::Failed),
        }
    }

    pub(super) fn into_lines(self) -> Lines {
        self.lines
    }

    /// Returns the differences from the expected answer.
    pub(super) fn differences(&self, expected: &Lines) -> Vec<Difference> {
        let names: BTreeSet<&String> = expected.keys().chain(self.lines.keys()).collect();
        names
            .into_iter()
            .filter(|name| expected.get(*name) != self.lines.get(*name))
            .map(|name| Difference {
                line: name.clone(),
                expected: expected.get(name).cloned(),
                found: self.lines.get(name).cloned(),
            })
            .collect()
    }
}

fn said(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Accepted => "accepted".to_owned(),
        Outcome::Corrected { rules } => {
            let rules: Vec<String> = rules.iter().map(u8::to_string).collect();
            format!("accepted, with the text that guard rule {} asks for", rules.join(", "))
        }
        Outcome::Rejected { rule, reason } => format!("rejected by guard rule {rule}: {reason}"),
        Outcome::Failed { reason, .. } => format!("failed: it {reason}"),
        Outcome::Skipped { why } => format!("not asked: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_or_new_is_a_difference() {
        let lines = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect::<Lines>()
        };
        let answer = Answer { lines: lines(&[("kept", "0-2"), ("tokens", "9 to 3")]), unfit: None };
        assert!(answer.differences(&lines(&[("kept", "0-2"), ("tokens", "9 to 3")])).is_empty());
        let found = answer.differences(&lines(&[("dropped", "3"), ("kept", "0-2"), ("tokens", "9 to 4")]));
        let found: Vec<_> = found.iter().map(|d| (d.line.as_str(), d.expected.is_some(), d.found.is_some())).collect();
        assert_eq!(found, [("dropped", true, false), ("tokens", true, true)]);
    }
}
