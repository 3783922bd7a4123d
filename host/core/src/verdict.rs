//! The verdict on a plan: the rules it may break, and the guard's result.

use std::fmt;

use thiserror::Error;

/// The nine rules, numbered as in the documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// 1: tool pairs stay together; stored messages go only as whole turns.
    Pairs,
    /// 2: the new message is never touched.
    NewMessage,
    /// 3: the seed pair stays.
    Seed,
    /// 4: the request starts with a user message.
    Roles,
    /// 5: no plan makes the request larger, except by what it recalls; on recovery it must shrink by a tenth.
    Growth,
    /// 6: at most one marker, with the cumulative number of turns.
    Marker,
    /// 7: text is cut at grapheme boundaries.
    Graphemes,
    /// 8: a policy that fails or gives an invalid answer is skipped.
    Sane,
    /// 9: nothing over the hard limit is sent.
    HardLimit,
}

impl Rule {
    /// The rule's number.
    pub const fn number(self) -> u8 {
        self as u8 + 1
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "guard rule {}", self.number())
    }
}

/// Why a plan is rejected.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{rule}: {what}")]
pub struct Breach {
    /// The rule that is broken.
    pub rule: Rule,
    /// Details for the policy's author.
    pub what: String,
}

/// The guard's verdict on a policy's plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Applied unchanged.
    Accepted,
    /// Applied with corrected text.
    Corrected(Vec<Rule>),
    /// Not applied at all.
    Rejected(Breach),
}

impl Verdict {
    /// `accepted`, `corrected` or `rejected`.
    pub fn name(&self) -> &'static str {
        match self {
            Verdict::Accepted => "accepted",
            Verdict::Corrected(_) => "corrected",
            Verdict::Rejected(_) => "rejected",
        }
    }

    /// The numbers of the rules that were corrected or broken.
    pub fn rules(&self) -> Vec<u8> {
        match self {
            Verdict::Accepted => vec![],
            Verdict::Corrected(rules) => rules.iter().map(|rule| rule.number()).collect(),
            Verdict::Rejected(breach) => vec![breach.rule.number()],
        }
    }
}
