//! The policy that is embedded in the gateway: a budget relative to the model's window, a prefix that stays the same
//! for many turns, and a plan wherever there is a legal one.

mod cap;
mod low_water;
mod prune;
mod recover;
mod results;
mod settings;
mod squeeze;
mod summarize;

use pmk_policy_sdk::{Description, Policy, export};

/// The policy.
pub struct Standard;

impl Policy for Standard {
    fn describe(description: &Description) {
        description.name("standard");
        description.version(env!("CARGO_PKG_VERSION"));
        description
            .about("fits the model's window: old results shrink, then the oldest turns go, down to a low-water mark");
        settings::declare(description);
    }
}

export!(Standard: cap, prune, summarize, recover);
