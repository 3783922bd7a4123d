//! The context limits of pmk v0.11.1 (specification 000): a fixed budget, ten turns, head-only caps.

mod cap;
mod prune;
mod recover;
mod settings;

use pmk_policy_sdk::{Description, Policy, export};

/// The policy.
pub struct Strict;

impl Policy for Strict {
    fn describe(description: &Description) {
        description.name("strict");
        description.version(env!("CARGO_PKG_VERSION"));
        description.about("keeps the seed pair and the 10 newest turns above a fixed budget; caps keep the head");
        settings::declare(description);
    }
}

export!(Strict: cap, prune, recover);
