//! Write a policy for the pmk-host gateway: a WebAssembly component that decides how much of a conversation the model
//! sees.
//!
//! Implement [`Policy`] and the traits of the decisions you want to make, and [`export!`] them. This one keeps the
//! newest turns:
//!
//! ```
//! use pmk_policy_sdk::{Budget, Description, IntegerSetting, Plan, Policy, Prune, Transcript, export};
//!
//! const KEEP_TURNS: IntegerSetting = IntegerSetting::new("keep-turns", 20, 1..=1_000, "stored turns that stay, as far as they fit");
//!
//! struct Newest;
//!
//! impl Policy for Newest {
//!     fn describe(description: &Description) {
//!         description.name("newest");
//!         description.version(env!("CARGO_PKG_VERSION"));
//!         description.about("keeps the newest turns");
//!         KEEP_TURNS.declare(description);
//!     }
//! }
//!
//! impl Prune for Newest {
//!     fn prune(transcript: &Transcript, budget: &Budget, plan: &Plan) {
//!         if plan.tokens() <= budget.limit() {
//!             return;
//!         }
//!         let oldest_kept = transcript.newest_within(budget).take(KEEP_TURNS.value() as usize).last();
//!         plan.remove_before(transcript, oldest_kept.map_or(transcript.stored_end(), |segment| segment.start));
//!     }
//! }
//!
//! export!(Newest: prune);
//!
//! // A policy is tested where it is written; no wasm is needed for that.
//! use pmk_policy_sdk::testing::{Conversation, Harness};
//! let conversation = (0..30).fold(Conversation::new(), |so_far, _| so_far.turn("why?", &"because ".repeat(100)));
//! let transcript = conversation.ask("and now?").transcript();
//! let applied = Harness::<Newest>::new().prune(&transcript, 3_000).expect("a plan that the guard accepts");
//! assert_eq!(applied.turns_dropped, 10);
//! Harness::<Newest>::new().assert_sound(100);
//! ```
//!
//! In `Cargo.toml`: `crate-type = ["cdylib", "rlib"]`. On wasm the types are the bindings of the contract,
//! `wit/policy.wit`, which documents the effect of every call; on other targets they are implemented on the host's own
//! types, with the same names and methods.
//!
//! Origins, roles, flags, phases, rungs and levels are codes, with names in [`origin`], [`role`], [`flag`], [`phase`],
//! [`rung`] and [`level`]; `docs/policies.md` of the repository lists them in one table.
//!
//! A decision runs in a fresh instance: nothing is kept between calls. Its fuel is limited, so read [from the newest
//! message back](Transcript::segments) and stop early. A panic is reported in the operator's log, and the next policy
//! decides.
#![deny(missing_docs)]

mod codes;
mod export;
mod fit;
mod policy;
mod segments;
mod setting;

#[cfg(target_family = "wasm")]
mod bindings;
#[cfg(target_family = "wasm")]
use bindings as platform;
#[cfg(target_family = "wasm")]
#[doc(hidden)]
pub mod guest;

#[cfg(not(target_family = "wasm"))]
mod native;
#[cfg(not(target_family = "wasm"))]
use native as platform;
#[cfg(not(target_family = "wasm"))]
pub mod testing;

pub use codes::{flag, level, origin, phase, role, rung};
pub use fit::Older;
pub use platform::{Budget, CapVerdict, Description, Incoming, Overflow, Plan, Recovery, Summary, Transcript, log};
pub use policy::{Cap, Policy, Prune, Recover, Summarize};
pub use segments::{Row, Rows, Segment, Segments, scaled, tokens_of};
pub use setting::{BooleanSetting, CapSettings, IntegerSetting, LANGUAGE, TextSetting};
