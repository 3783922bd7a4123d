//! Tool results leave first. Most of what fills an agent's window is what its tools returned long ago; so old tool and
//! mra results are cleared, all but the newest few, as Anthropic's context editing does it. Calls and answers stay, and
//! each cleared result keeps its size, digest, first and last line. Turns go only when that is not enough.
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
