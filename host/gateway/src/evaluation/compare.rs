//! Which policy is better? Recorded conversations are replayed turn by turn through each, and what came of it
//! is compared, conversation by conversation.
//!
//! [`histories`] finds the conversations of a folder and [`recording`] is one of them; [`questions`] asks what
//! could still be answered. [`replay`] does with a policy what a turn does, by the same rules and with the
//! same guard; [`runner`] does it for all conversations at once, and keeps of each only its [`metrics`]. [`standing`] is
//! what the last request held. [`prices`] says what that costs, [`pmk_statistics`] which differences are shown, and
//! [`report`] is what people and machines read.

mod given;
pub mod histories;
mod kept;
pub mod metrics;
pub mod prices;
pub mod questions;
pub mod recording;
pub mod replay;
pub mod report;
pub mod runner;
pub mod standing;
