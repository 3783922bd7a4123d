//! Decisions: which kinds there are, and which policy made one.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A kind of decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// How much to keep of a large message.
    Cap,
    /// Which messages the model sees.
    Prune,
    /// What is carried over into a fresh session.
    Summarize,
    /// What to try after an overflow.
    Recover,
}

impl Decision {
    /// All kinds.
    pub const ALL: [Decision; 4] = [Decision::Cap, Decision::Prune, Decision::Summarize, Decision::Recover];

    /// The name of the interface it belongs to.
    pub const fn name(self) -> &'static str {
        match self {
            Decision::Cap => "cap",
            Decision::Prune => "prune",
            Decision::Summarize => "summarize",
            Decision::Recover => "recover",
        }
    }
}

/// Identifies a policy.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// The name it gave itself.
    pub name: String,
    /// The version it gave itself.
    pub version: String,
    /// SHA-256 of the component, lower-case hexadecimal.
    pub sha256: String,
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.version)
    }
}

/// Who made the decision that is used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DecidedBy {
    /// The uppermost layer that gave an acceptable answer.
    Policy(Identity),
    /// No policy: the host's own floor.
    Floor,
}

/// The name that stands for the floor; no policy may have it.
pub const FLOOR: &str = "floor";

impl DecidedBy {
    /// The policy; `None` for the floor.
    pub fn identity(&self) -> Option<&Identity> {
        match self {
            DecidedBy::Policy(identity) => Some(identity),
            DecidedBy::Floor => None,
        }
    }

    /// The policy's name, or `floor`.
    pub fn name(&self) -> &str {
        self.identity().map_or(FLOOR, |identity| &identity.name)
    }
}
