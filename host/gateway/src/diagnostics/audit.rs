//! What the ledger tells of the last days (specification 003 §12, 000 §3): is this thing working, and is anything
//! close to the edge? [`read`] takes the events in, [`Audit`] counts them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

mod arms;
mod bounds;
mod count;
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
    /// The first month that is counted, where an earlier one belongs to these days and is not kept any more.
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
    pub flags: Vec<String>,
    /// Lines of the ledger that could not be read.
    pub unreadable_lines: u64,
}

/// Who talked.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Conversations {
    /// Those that a model had a part in.
    pub turns: u64,
    /// The others: commands, and words about a question to people.
    pub orders: u64,
    pub by_user: Counts,
    pub by_audience: Counts,
    pub undelivered: u64,
    /// Replies of which people got the beginning only.
    pub cut: u64,
    /// Messages that could not be answered and were set aside, and those that are now.
    pub parked: u64,
    pub parked_now: u64,
    /// Turns in which the program failed.
    pub panicked: u64,
    /// Messages that nobody worked on until the sweep found them.
    pub swept: u64,
}

/// What channels look into.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Cases {
    pub opened: u64,
    pub closed: u64,
    /// Answers that added something, and what they added.
    pub updates: u64,
    pub hypotheses: u64,
    pub questions: u64,
}

impl Cases {
    /// Whether there is nothing to tell.
    pub fn are_none(&self) -> bool {
        *self == Cases::default()
    }
}

/// How well the bot could be reached.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Connections {
    /// How often the front was not let in any more.
    pub refused: u64,
    /// How often nobody could reach the bot, and for how long all together.
    pub silences: u64,
    pub deaf_ms: u64,
    /// Messages that came late because of it.
    pub late: u64,
    /// Events that were refused: an id of theirs was none.
    pub malformed: u64,
}

impl Connections {
    /// Whether there is nothing to tell.
    pub fn are_unbroken(&self) -> bool {
        *self == Connections::default()
    }
}

/// How often nobody was there to answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Presence {
    /// How often the gateway was back, by reason, and how long it was away all together where that is known.
    pub online: Counts,
    pub away_ms: u64,
    /// How often it was asked to end.
    pub offline: u64,
    /// Messages that were found by reading back, and conversations that could not be read.
    pub caught_up: u64,
    pub unreadable: u64,
}

impl Presence {
    /// Whether there is nothing to tell.
    pub fn is_nothing(&self) -> bool {
        *self == Presence::default()
    }
}

/// How close conversations came to the window's edge.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ContextSafety {
    /// Prompts that the model refused as too long, by phase.
    pub exceeded: Counts,
    /// Plans that dropped or replaced something, without what recovery cut.
    pub pruned: u64,
    pub force_pruned: u64,
    /// Requests that were planned again under a smaller limit, because no rung was left.
    pub replanned: u64,
    /// Refusals without an explanation and empty answers for which a smaller request was tried, by what came of it.
    pub suspected: Counts,
    /// Compactions on recovery, and ahead of a call.
    pub compacted_recovering: u64,
    pub compacted_ahead: u64,
    pub rotated: u64,
    pub recovery_failed: u64,
    /// Contents stored in part, by kind.
    pub capped: Counts,
    /// Replies that went out in several parts.
    pub replies_split: u64,
}

/// Which policies did not decide although they were asked.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Policies {
    pub failures: u64,
    pub by_policy: Counts,
    /// How often one had failed so often that it was not asked for a while.
    pub suspensions: u64,
}

/// What the providers counted, and what they count beyond what is sent (specification 000 §cause-2).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Tokens {
    pub by_model: BTreeMap<String, ModelTokens>,
    /// Whose messages they were spent on.
    pub by_user: BTreeMap<String, PersonTokens>,
    /// Models whose servers were found to take no tools.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub without_tools: Counts,
}

/// One person.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PersonTokens {
    pub calls: u64,
    /// Those from the cache, too.
    pub input: u64,
    pub output: u64,
}

/// One provider and model.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ModelTokens {
    pub calls: u64,
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_creation: u64,
    /// Provider's tokens for one of the host's estimate; `null` where nothing was measured.
    pub factor: Option<f64>,
    /// Tokens that the provider counts beyond what is sent.
    pub overhead: Option<u64>,
    /// What refusals have taught of its window.
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
    /// Answered at once, after a second call, not at all: each question is in one of them.
    pub ok: u64,
    pub retried: u64,
    pub failed: u64,
    pub median_ms: Option<u64>,
    pub by_repo: Counts,
}

/// Questions to people.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Escalate {
    pub triggered: u64,
    pub absorbed: u64,
    /// Those that their asker, or an operator, did not want to wait for any more.
    pub cancelled: u64,
    /// Threads that wait now, whenever they began to.
    pub pending: u64,
    pub median_ms_to_reply: Option<u64>,
}

/// What was not done for people or for the model.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Refused {
    /// What people did who may not, by kind.
    pub access: Counts,
    /// Directives that only repeated what others wrote, by kind.
    pub echoed: Counts,
    /// Questions to others that were too many for an hour, by kind.
    pub bounded: Counts,
    /// Questions to people that were shown to their asker first, and those that they did not want.
    pub proposed: u64,
    pub dropped: u64,
}

impl Refused {
    /// Whether there is nothing to tell.
    pub fn is_nothing(&self) -> bool {
        *self == Refused::default()
    }
}

/// What people's answers came to; the corpus as it is now.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Atoms {
    pub total: u64,
    pub approved: u64,
    pub pending: u64,
    /// Atoms shown to the model, and in how many turns.
    pub injected: u64,
    pub turns_with_atoms: u64,
    /// Atoms in a turn on average, and the median of the turns that had any.
    pub a_turn: Option<f64>,
    pub median_a_turn: Option<f64>,
    pub by_contributor: Counts,
}

/// One line of the ledger.
#[derive(Clone, Debug)]
pub struct Record {
    pub at: Timestamp,
    pub event: Value,
}
