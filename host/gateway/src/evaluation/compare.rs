//! Compares policies: recorded conversations are replayed turn by turn through each policy, and the results are
//! compared, conversation by conversation.
//!
//! [`histories`] finds the conversations of a folder and [`recording`] is one of them; [`questions`] tests what could
//! still be answered. [`replay`] does with a policy what a turn does, by the same rules and with the same guard;
//! [`runner`] does that for all conversations concurrently, and keeps only the [`metrics`] of each. [`standing`] is
//! what the last request contained. [`prices`] computes the cost, [`pmk_statistics`] decides which differences are
//! significant, [`faults`] says why a policy did not decide, and [`report`] is the output for people and machines.

pub mod faults;
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
