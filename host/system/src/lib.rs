//! What the program needs of the machine it runs on, independent of its purpose.
//!
//! The gateway's files are in a [`home`], which one process uses at a time. Files of others are read through [`files`]
//! and [`lines`], each with limits, and a [`stamp`] tells whether a file has changed; files for others are written as
//! an [`atomic_file`]. Programs are started as a [`child`], which does not outlive us; a [`service`] manager may have
//! started us. [`clock`] is the only place that reads the time, [`panics`] catches panics, and [`threads`] determines
//! what runs blocking work. Errors are reported to the operator as an [`error::Failure`], and errors in [`json`] are
//! worded the same everywhere.

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
