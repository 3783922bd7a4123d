//! What the program wants of the machine it runs on, and nothing of what it is for.
//!
//! Where things are kept is a [`home`], which one process holds at a time; what is read of others' files goes through [`files`]
//! and [`lines`], each within a bound, and a [`stamp`] tells whether one is another than before; what is written for others is [`atomic_file`] until it is whole. Programs that are started
//! are a [`child`], and do not outlive us; what has started us is a [`service`] manager. [`clock`] is the one place that reads the time, [`panics`] the one that catches
//! what should not have happened, and [`threads`] says who does what blocks. What went wrong is said to an operator as an [`error::Failure`], and what is wrong with
//! somebody's [`json`] in the same words everywhere.

#![deny(missing_docs)]

pub mod atomic_file;
pub mod child;
pub mod clock;
pub mod error;
pub mod files;
pub mod home;
pub mod json;
pub mod lines;
pub mod ownership;
pub mod panics;
pub mod service;
pub mod stamp;
pub mod threads;
