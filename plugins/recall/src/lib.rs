//! Keeps the newest turns, and shows those older messages again that are relevant to the new message: found by the
//! host's archive search and quoted just before it. What is dropped is not lost. The messages before the block stay the
//! same from turn to turn, until the newest turns have grown by half; then the older of them are removed in one sweep.
//!
//! Caps, local summaries and recovery are left to the layers below.

mod matches;
mod prune;
mod question;
mod quotes;
mod settings;
mod window;

use pmk_policy_sdk::{Description, Policy, export};

/// The policy.
pub struct Recall;

impl Policy for Recall {
    fn describe(description: &Description) {
        description.name("recall");
        description.version(env!("CARGO_PKG_VERSION"));
        description.about("keeps the newest turns and quotes older ones that matter for the new message before it");
        settings::declare(description);
    }
}

export!(Recall: prune);
