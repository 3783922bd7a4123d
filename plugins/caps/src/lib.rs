//! Caps and nothing else: how much of a large message is stored, by its kind, its name, and its format.
//!
//! Which messages the model sees, and what is carried over, is left to the layers around it.

mod cap;
mod cut;
mod look;
mod names;
mod settings;

use pmk_policy_sdk::{Description, Policy, export};

/// The policy.
pub struct Caps;

impl Policy for Caps {
    fn describe(description: &Description) {
        description.name("caps");
        description.version(env!("CARGO_PKG_VERSION"));
        description.about("stores large messages in part: tables and logs by head and tail, JSON by its keys");
        settings::declare(description);
    }
}

export!(Caps: cap);
