//! The input of a decision, as the host passes it to the layers.

use std::sync::Arc;

use pmk_core::Origin;
use serde::{Deserialize, Serialize};

/// Which model call a decision is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// The first call of the turn.
    #[default]
    First,
    /// A call that processes a result.
    Synthesise,
}

impl Phase {
    /// Its code in the contract.
    pub const fn code(self) -> u8 {
        match self {
            Phase::First => 1,
            Phase::Synthesise => 2,
        }
    }
}

/// The available tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PruneInput {
    /// The hard limit in tokens.
    pub limit: u64,
    /// The model's whole window in tokens.
    pub window: u64,
    /// Which call it is for.
    pub phase: Phase,
    /// Whether the operator allows the seed pair to be removed.
    pub seed_may_go: bool,
}

/// A large message that is about to be stored.
#[derive(Clone, Debug)]
pub struct IncomingInput {
    /// What it is: seed, mra-result, tool-result or attachment.
    pub kind: Origin,
    /// Repository, tool or file name; may be empty.
    pub name: String,
    /// The complete text.
    pub text: Arc<str>,
    /// The hard limit in tokens.
    pub limit: u64,
}

/// One step of recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rung {
    /// Keeps the seed pair and the most recent turn.
    Trim,
    /// The model summarizes the middle.
    Compact,
    /// A fresh session starts with a local summary.
    Rotate,
    /// No further rung: smaller requests are tried, then the user is told.
    GiveUp,
}

impl Rung {
    /// Every rung, in the order of the contract's codes.
    pub const ALL: [Rung; 4] = [Rung::Trim, Rung::Compact, Rung::Rotate, Rung::GiveUp];

    /// Its code in the contract, from 1.
    pub const fn code(self) -> u8 {
        self as u8 + 1
    }

    /// The rung with that code.
    pub(crate) fn of_code(code: u8) -> Option<Rung> {
        Rung::ALL.into_iter().find(|rung| rung.code() == code)
    }

    /// The name used in events and output.
    pub const fn name(self) -> &'static str {
        match self {
            Rung::Trim => "trim",
            Rung::Compact => "compact",
            Rung::Rotate => "rotate",
            Rung::GiveUp => "give-up",
        }
    }
}

/// A refused request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OverflowInput {
    /// Which call it was.
    pub phase: Phase,
    /// Rungs tried for this model call, in order.
    pub tried: Vec<Rung>,
    /// Rungs that can still be tried; giving up always can and need not be listed.
    pub available: Vec<Rung>,
    /// Tokens the provider counted, where it said so.
    pub observed_tokens: Option<u64>,
    /// Tokens the provider allows, where it said so.
    pub allowed_tokens: Option<u64>,
}
