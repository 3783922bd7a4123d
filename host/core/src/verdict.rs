//! What can be said of a plan: the rules it may break, and the guard's verdict.

use std::fmt;

use thiserror::Error;

/// The nine rules, by the numbers the documentation uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// 1: tool pairs stay together; messages go only as whole turns.
    Pairs,
    /// 2: the new message is never touched.
    NewMessage,
    /// 3: the seed pair stays.
    Seed,
    /// 4: the request starts with a user message.
    Roles,
    /// 5: no plan makes the request larger; on recovery it must shrink by a tenth.
    Growth,
    /// 6: at most one marker, with the cumulative number of turns.
    Marker,
    /// 7: text is cut at grapheme boundaries.
    Graphemes,
    /// 8: a policy that fails or answers nonsense is passed over.
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

/// Why a plan is refused.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{rule}: {what}")]
pub struct Breach {
    /// The one that is broken.
    pub rule: Rule,
    /// How, for who wrote the policy.
    pub what: String,
}

/// What the guard said of a policy's plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Carried out as it is.
    Accepted,
    /// Carried out with corrected text.
    Corrected(Vec<Rule>),
    /// Nothing of it is carried out.
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

    /// The numbers of the rules it rests on.
    pub fn rules(&self) -> Vec<u8> {
        match self {
            Verdict::Accepted => vec![],
            Verdict::Corrected(rules) => rules.iter().map(|rule| rule.number()).collect(),
            Verdict::Rejected(breach) => vec![breach.rule.number()],
        }
    }
}
