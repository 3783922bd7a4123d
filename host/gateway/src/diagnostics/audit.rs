//! The audit: what the ledger shows of the last days (specification 003 §12, 000 §3), so whether the gateway works and
//! whether anything is close to its limits. [`read`] reads the events, [`Audit`] counts them.

use std::{collections::BTreeMap, fmt};

use jiff::Timestamp;
use serde::{Serialize, Serializer};
use serde_json::Value;

mod arms;
mod bounds;
mod count;
mod median;
pub mod read;

pub use arms::{Arm, Arms, Shadow};
pub use bounds::Bound;
pub use count::{Now, audit};

/// Counts by name, the most frequent first when shown.
pub type Counts = BTreeMap<String, u64>;

/// The counts of a window.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Audit {
    pub days: u32,
    /// The first month that is counted, if files of an earlier month in the window have been deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counted_from: Option<String>,
    pub conversations: Conversations,
    #[serde(skip_serializing_if = "Connections::are_unbroken")]
    pub connections: Connections,
    #[serde(skip_serializing_if = "Presence::is_nothing")]
    pub presence: Presence,
    pub context_safety: ContextSafety,
    pub policies: Policies,
    pub tokens: Tokens,
    pub mra_ask: MraAsk,
    pub escalate: Escalate,
    #[serde(skip_serializing_if = "Refused::is_nothing")]
    pub refused: Refused,
    #[serde(skip_serializing_if = "Cases::are_none")]
    pub cases: Cases,
    pub atoms: Atoms,
    /// The arms of experiments.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub experiments: Arms,
    /// How often the store's file was deleted, replaced or emptied while it was open.
    pub store_lost: u64,
    /// What an operator should look at.
    pub flags: Vec<Flag>,
    /// Lines of the ledger that could not be read.
    pub unreadable_lines: u64,
}

/// Turns and messages.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Conversations {
    /// Turns that ended with what the model had to say, if only that it failed.
    pub turns: u64,
    /// Answers that people stopped while they were made.
    pub stopped: u64,
    /// The other turns: commands, and messages about a question that waits for its contacts.
    pub orders: u64,
    pub by_user: Counts,
    pub by_audience: Counts,
    /// Turns in which the model gave no answer, by the class of the error.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub unanswered: Counts,
    pub undelivered: u64,
    /// Replies of which people received only the beginning.
    pub cut: u64,
    /// Messages that were parked in the window, and those that are parked now.
    pub parked: u64,
    pub parked_now: u64,
    /// Turns in which the program panicked.
    pub panicked: u64,
    /// Messages that were not processed until the sweep found them.
    pub swept: u64,
}

/// The cases of channels.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Cases {
    pub opened: u64,
    pub closed: u64,
    /// Answers that updated a case, and the hypotheses and questions that they added.
    pub updates: u64,
    pub hypotheses: u64,
    pub questions: u64,
}

impl Cases {
    /// Whether all counts are zero.
    pub fn are_none(&self) -> bool {
        *self == Cases::default()
    }
}

/// The connections of the front.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Connections {
    /// How often the front was refused a connection, or its token.
    pub refused: u64,
    /// How often the bot was unreachable, and for how long in total.
    pub silences: u64,
    pub deaf_ms: u64,
    /// Messages that arrived late because of that.
    pub late: u64,
    /// Events that were refused because one of their ids was malformed.
    pub malformed: u64,
}

impl Connections {
    /// Whether all counts are zero.
    pub fn are_unbroken(&self) -> bool {
        *self == Connections::default()
    }
}

/// When the gateway was away.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Presence {
    /// How often the gateway came back, by reason, and for how long it was away in total where that is known.
    pub online: Counts,
    pub away_ms: u64,
    /// How often it was stopped.
    pub offline: u64,
    /// Messages that were found by reading back; conversations that could not be read, that were read only in part, and
    /// that were not read because they were too many.
    pub caught_up: u64,
    pub unreadable: u64,
    pub cut: u64,
    pub left_out: u64,
}

impl Presence {
    /// Whether all counts are zero.
    pub fn is_nothing(&self) -> bool {
        *self == Presence::default()
    }
}

/// How close conversations came to the limit of the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ContextSafety {
    /// Prompts that the model refused as too long, by phase.
    pub exceeded: Counts,
    /// Plans that dropped or replaced something, not counting recovery.
    pub pruned: u64,
    pub force_pruned: u64,
    /// Requests that were planned again under a smaller limit, because no rung was left.
    pub replanned: u64,
    /// Unexplained refusals and empty answers for which a smaller request was tried, by outcome.
    pub suspected: Counts,
    /// Compactions during recovery, and ahead of a call.
    pub compacted_recovering: u64,
    pub compacted_ahead: u64,
    pub rotated: u64,
    pub recovery_failed: u64,
    /// Contents stored in part, by kind.
    pub capped: Counts,
    /// Replies that were sent in several parts.
    pub replies_split: u64,
}

/// Policy failures.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Policies {
    pub failures: u64,
    pub by_policy: Counts,
    /// How often a policy was suspended because it kept failing.
    pub suspensions: u64,
}

/// The tokens that providers counted, and what they count beyond what is sent (specification 000 §cause-2).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Tokens {
    pub by_model: BTreeMap<String, ModelTokens>,
    /// By the user whose messages they were spent on.
    pub by_user: BTreeMap<String, PersonTokens>,
    /// Models whose servers turned out not to accept tools.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub without_tools: Counts,
}

/// The tokens of one person.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PersonTokens {
    pub calls: u64,
    /// Including those from the cache.
    pub input: u64,
    pub output: u64,
}

/// The tokens of one provider and model.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ModelTokens {
    pub calls: u64,
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_creation: u64,
    /// The provider's tokens per token of the host's estimate; `null` if nothing was measured.
    pub factor: Option<f64>,
    /// Tokens that the provider counts beyond what is sent.
    pub overhead: Option<u64>,
    /// Bounds of its window learned from refusals.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<Bound>,
}

/// Questions to `mra`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MraAsk {
    pub invocations: u64,
    /// Turns in which it was asked, and their share of all.
    pub turns: u64,
    pub share_of_turns: Option<f64>,
    /// Answered at the first call, answered at the second, or not answered: each question counts in one of them.
    pub ok: u64,
    pub retried: u64,
    pub failed: u64,
    pub median_ms: Option<u64>,
    pub by_repo: Counts,
}

/// Escalations: questions to people.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Escalate {
    pub triggered: u64,
    pub absorbed: u64,
    /// Cancelled by their asker or an operator.
    pub cancelled: u64,
    /// Threads that are waiting now, whenever they began.
    pub pending: u64,
    pub median_ms_to_reply: Option<u64>,
}

/// What was refused to people or to the model.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Refused {
    /// Actions that people had no permission for, by kind.
    pub access: Counts,
    /// Directives that only repeated what others wrote, by kind.
    pub echoed: Counts,
    /// Questions to others beyond the hourly limit, by kind.
    pub bounded: Counts,
    /// Questions to people that were shown to their asker for confirmation, and those that the asker dropped.
    pub proposed: u64,
    pub dropped: u64,
}

impl Refused {
    /// Whether all counts are zero.
    pub fn is_nothing(&self) -> bool {
        *self == Refused::default()
    }
}

/// The current corpus of atoms, and their use in the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Atoms {
    pub total: u64,
    pub approved: u64,
    pub pending: u64,
    /// Atoms shown to the model, and in how many turns.
    pub injected: u64,
    pub turns_with_atoms: u64,
    /// The average number of atoms per turn, and the median over the turns that had any.
    pub a_turn: Option<f64>,
    pub median_a_turn: Option<f64>,
    pub by_contributor: Counts,
}

/// Something that an operator should look at, and how often it occurred. JSON has it as one sentence.
#[derive(Clone, Debug, PartialEq)]
pub struct Flag {
    pub count: u64,
    pub what: &'static str,
}

impl fmt::Display for Flag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.count, self.what)
    }
}

impl Serialize for Flag {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// One line of the ledger.
#[derive(Clone, Debug)]
pub struct Record {
    pub at: Timestamp,
    pub event: Value,
}
