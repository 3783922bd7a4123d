//! The newest turns stay, and of the older ones those come back that matter for the new message: found by the host's
//! search of the archive and quoted just before it. What is dropped is not lost, and what stands before the block stays
//! the same from turn to turn, until the newest turns have grown by half and the older of them go in one sweep.
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
