//! The report of a finished turn: the `turn` line of the console, which is stored with the turn until it is
//! delivered.

use pmk_core::SessionKey;
use pmk_policy::{DecidedBy, Identity};
use serde::{Deserialize, Serialize};

use crate::access::audience::Audience;

/// A finished turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "turn")]
pub struct TurnReport {
    /// The question's event id.
    pub event_id: String,
    pub session: SessionKey,
    /// The event ids of all questions that were answered, in the order in which they arrived, where there are
    /// several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub event_ids: Vec<String>,
    #[serde(flatten)]
    pub kind: TurnKind,
}

/// The kind of turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum TurnKind {
    /// A command to the gateway, which the model never sees.
    Command {
        /// Its name.
        command: String,
    },
    /// A question.
    Question(Box<QuestionReport>),
}

/// How a question was answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuestionReport {
    pub audience: Audience,
    /// What decided about the window; `None` where there was nothing to decide.
    pub policy: Option<Decider>,
    pub tokens: TokenReport,
    pub turns_dropped: u32,
    pub messages_replaced: usize,
    /// Rungs of recovery that were used, by name.
    pub rungs: Vec<String>,
    /// Requests made to the model.
    pub calls: u32,
    pub mra_asks: u32,
    /// The ids of the atoms that were shown to the model.
    pub atoms: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experiment: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arm: Option<String>,
    /// The ids of the archived messages that the model was last shown again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recalled: Vec<i64>,
    /// Why the model gave no answer: the class of the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unanswered: Option<String>,
}

/// Token estimates of what the policy was asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenReport {
    /// Before the first decision.
    pub before: u64,
    /// Of the last request.
    pub after: u64,
    /// The hard limit.
    pub limit: u64,
}

/// The policy that decided, or the floor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decider {
    pub name: String,
    /// The floor has none.
    pub version: Option<String>,
    /// The digest of its component; the floor has none.
    pub sha256: Option<String>,
}

impl From<&DecidedBy> for Decider {
    fn from(by: &DecidedBy) -> Self {
        let of_policy = |what: fn(&Identity) -> &String| by.identity().map(|identity| what(identity).clone());
        Decider { name: by.name().to_owned(), version: of_policy(|it| &it.version), sha256: of_policy(|it| &it.sha256) }
    }
}

impl TurnReport {
    /// Returns the report of a command to the gateway.
    pub fn of_command(event_id: String, session: SessionKey, command: impl Into<String>) -> TurnReport {
        TurnReport { event_id, session, event_ids: vec![], kind: TurnKind::Command { command: command.into() } }
    }

    /// Returns the name of the command, where it was one.
    pub fn command(&self) -> Option<&str> {
        match &self.kind {
            TurnKind::Command { command } => Some(command),
            TurnKind::Question(_) => None,
        }
    }

    /// Returns how the question was answered, where it was one.
    pub fn question(&self) -> Option<&QuestionReport> {
        match &self.kind {
            TurnKind::Command { .. } => None,
            TurnKind::Question(question) => Some(question),
        }
    }
}
