//! Clears tool results first. An agent's window is mostly filled with results of earlier tool calls; so old tool and
//! mra results are cleared, except the newest few, as in Anthropic's context editing. Calls and answers stay, and each
//! cleared result keeps its size, digest, first and last line. Turns are removed only if that is not enough.
//!
//! Caps, local summaries and recovery are left to the layers below.

mod clear;
mod prune;
mod settings;

use pmk_policy_sdk::{Description, Policy, export};

/// The policy.
pub struct ToolLean;

impl Policy for ToolLean {
    fn describe(description: &Description) {
        description.name("tool-lean");
        description.version(env!("CARGO_PKG_VERSION"));
        description.about("clears old tool and mra results first, the newest 3 stay; the oldest turns go last");
        settings::declare(description);
    }
}

export!(ToolLean: prune);
