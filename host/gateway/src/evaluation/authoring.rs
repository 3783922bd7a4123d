//! The tools for the author of a policy: a project to start from, and recorded conversations to try the policy on
//! before it decides anything live.
//!
//! [`scaffold`] writes the project, [`dev`] shows what each saved change affects, [`check`] tests a component against
//! every rule, [`cases`] against its earlier answers, and [`bench`](mod@bench) measures it. [`recorded`] reads
//! conversations, [`histories`] generates some, and [`stage`] asks one policy alone, with given settings.

pub mod bench;
pub mod cases;
pub mod check;
pub mod dev;
pub mod histories;
mod ranges;
pub mod recorded;
pub mod scaffold;
pub mod stage;
