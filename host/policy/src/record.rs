//! The record of a decision: who was asked, the outcome, and the cost.

use pmk_core::{Lookup, Quote, Rule, text};
use serde::Serialize;

use crate::{
    breaker::Change,
    decision::{Decision, Identity},
    failure::Failure,
    log::{LogLevel, LogLine},
    texts::TextsRead,
};

/// How many lines of one decision are warnings in the host's log.
const MAX_WARNINGS: usize = 20;

/// The outcome of asking one layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "result", rename_all = "lowercase")]
pub enum Outcome {
    /// Its answer was applied, unless it left the decision to the next layer: with a summary that says nothing, or
    /// without choosing a rung.
    Accepted,
    /// The same with corrected text.
    Corrected {
        /// Numbers of the guard's rules.
        rules: Vec<u8>,
    },
    /// It answered, but the answer may not be applied.
    Rejected {
        /// Number of the guard's rule.
        rule: u8,
        /// What is wrong.
        reason: String,
    },
    /// It was not asked.
    Skipped {
        /// Why not: `suspended`, by its circuit breaker.
        why: &'static str,
    },
    /// It gave no answer.
    Failed {
        /// A short name, as in [`Failure::kind`].
        kind: &'static str,
        /// What happened.
        reason: String,
        /// The same without what the component said last.
        #[serde(skip)]
        bare_reason: String,
        /// Functions on the component's stack, innermost first.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        backtrace: Vec<String>,
    },
}

impl Outcome {
    /// Whether the next layer had to be asked.
    pub fn is_bad(&self) -> bool {
        matches!(self, Outcome::Rejected { .. } | Outcome::Failed { .. } | Outcome::Skipped { .. })
    }

    /// Whether the policy was not even asked.
    pub fn is_skipped(&self) -> bool {
        matches!(self, Outcome::Skipped { .. })
    }

    /// The functions on the component's stack, innermost first; empty unless it trapped.
    pub fn backtrace(&self) -> &[String] {
        match self {
            Outcome::Failed { backtrace, .. } => backtrace,
            _ => &[],
        }
    }

    /// What was wrong with the answer, or why there was none although the policy was asked.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Outcome::Rejected { reason, .. } | Outcome::Failed { reason, .. } => Some(reason),
            Outcome::Accepted | Outcome::Corrected { .. } | Outcome::Skipped { .. } => None,
        }
    }

    /// The [`reason`](Outcome::reason) without what the component said last, which may quote a conversation: for what
    /// is kept, and for people who may not read that conversation.
    pub fn bare_reason(&self) -> Option<&str> {
        match self {
            Outcome::Failed { bare_reason, .. } => Some(bare_reason),
            _ => self.reason(),
        }
    }

    /// Whether it counts against the policy: every failure, and every answer that may not be applied, unless it was
    /// only too large. How much fits depends on the conversation, and one with giant messages must not suspend the
    /// policy for all others. `None` if it says nothing about the policy: the system did not start it, or the
    /// archive kept it waiting.
    pub fn is_fault(&self) -> Option<bool> {
        match self {
            Outcome::Failed { kind: Failure::SYSTEM, .. } | Outcome::Skipped { .. } => None,
            Outcome::Failed { .. } => Some(true),
            Outcome::Rejected { rule, .. } => Some(![Rule::Growth.number(), Rule::HardLimit.number()].contains(rule)),
            Outcome::Accepted | Outcome::Corrected { .. } => Some(false),
        }
    }
}

impl From<&Failure> for Outcome {
    fn from(failure: &Failure) -> Self {
        Outcome::Failed {
            kind: failure.kind(),
            reason: failure.to_string(),
            bare_reason: failure.without_last_words().to_string(),
            backtrace: failure.backtrace().to_vec(),
        }
    }
}

/// One layer's part in a decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Record {
    /// The policy that was asked.
    pub policy: Identity,
    /// The kind of decision.
    pub decision: Decision,
    /// The outcome.
    pub outcome: Outcome,
    /// Microseconds from creating the instance to its answer.
    pub us: u64,
    /// Fuel used, including that of host calls.
    pub fuel: u64,
    /// Its peak linear memory, in bytes.
    pub peak_bytes: u64,
    /// Whether the same input gives the same result on every machine; `false` when the wall clock stopped it.
    pub reproducible: bool,
    /// Its log; see [`crate::limits::DEFAULT_LOG_BYTES`].
    pub log: Vec<LogLine>,
    /// Whether it logged more than that.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub log_is_cut: bool,
    /// Which texts it requested and was given.
    #[serde(skip_serializing_if = "TextsRead::is_empty")]
    pub texts_read: TextsRead,
    /// How this changed the policy's circuit breaker, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub breaker: Option<Change>,
    /// Its archive queries.
    #[serde(skip_serializing_if = "ArchiveUse::is_none")]
    pub archive: ArchiveUse,
}

impl Record {
    /// Writes what the policy logged to the host's log: the levels `error` and `warn` as warnings, unless the reason
    /// for its failure says the same.
    pub fn pass_on_log(&self) {
        let (decision, reason) = (self.decision.name(), self.outcome.reason().unwrap_or_default());
        let mut warnings = 0;
        for line in &self.log {
            let text = text::one_line(&line.text);
            let is_warning = matches!(line.level, LogLevel::Error | LogLevel::Warn) && !reason.contains(&text);
            if is_warning && warnings < MAX_WARNINGS {
                warnings += 1;
                tracing::warn!(decision, level = ?line.level, "policy `{}` logged: {text}", self.policy.name);
            } else {
                tracing::debug!(decision, level = ?line.level, "policy `{}` logged: {text}", self.policy.name);
            }
        }
    }
}

/// The archive queries of a decision: counts and ids of messages, never text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ArchiveUse {
    /// How many searches it made.
    pub searches: u32,
    /// The ids of all messages it was given, ascending.
    pub found: Vec<i64>,
    /// How many times it read the text of an archived message.
    pub texts_read: u32,
    /// The ids of the messages that its plan shows again, in the order in which it requested them.
    pub recalled: Vec<i64>,
}

impl ArchiveUse {
    /// `recalls` are the messages that a plan shows again.
    pub(crate) fn of(lookup: &Lookup, recalls: &[(u32, Option<Quote>)]) -> Self {
        ArchiveUse {
            searches: lookup.searches(),
            found: lookup.found().collect(),
            texts_read: lookup.texts_read(),
            recalled: recalls.iter().filter_map(|(_, quote)| quote.as_ref()).map(|quote| quote.id).collect(),
        }
    }

    /// Whether it did not query the archive.
    pub fn is_none(&self) -> bool {
        *self == ArchiveUse::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: a machine short of memory suspended policies that had nothing to do with it.
    #[test]
    fn what_the_system_did_not_start_says_nothing_about_the_policy() {
        let not_started = Failure::NotStarted { reason: "Cannot allocate memory (os error 12)".to_owned() };
        assert_eq!(Outcome::from(&not_started).is_fault(), None);
        assert!(Outcome::from(&not_started).is_bad(), "the layer below decides");
        assert_eq!(Outcome::from(&Failure::Exit { code: 1 }).is_fault(), Some(true));
    }

    /// Regression: the ledger kept, and all admins were sent, what a policy had quoted of a conversation.
    #[test]
    fn the_bare_reason_is_without_the_last_words() {
        let said = "the launch is on Friday".to_owned();
        let (reason, backtrace) = ("out of bounds".to_owned(), vec!["prune".to_owned()]);
        let outcome = Outcome::from(&Failure::Trapped { reason, last_words: Some(said), backtrace });
        assert_eq!(outcome.reason(), Some("trapped: out of bounds: the launch is on Friday (in prune)"));
        assert_eq!(outcome.bare_reason(), Some("trapped: out of bounds (in prune)"));
        let exit = Outcome::from(&Failure::Exit { code: 1 });
        assert_eq!(exit.bare_reason(), exit.reason());
        let rejected = Outcome::Rejected { rule: 2, reason: "touches the new message".to_owned() };
        assert_eq!(rejected.bare_reason(), rejected.reason());
    }
}
