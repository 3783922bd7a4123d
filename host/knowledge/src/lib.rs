//! What the team knows: the seed that opens a session, and the answers that people gave.
//!
//! An [`atom`] is one such answer, a Markdown file that people may edit. The [`Library`] finds the ones
//! a message is about, [`block`] shows them to the model. [`extract`] turns a reply into a new atom,
//! [`moderation`] and [`reaction`] decide whether it stays. [`seed`] packs the documents of the
//! workspace ([`workspace`] says which) into the first message of a session. A [`mirror`] is the folder of atoms as one of several
//! that are kept the same.

#![deny(missing_docs)]

pub mod atom;
pub mod block;
pub mod extract;
pub mod files;
mod library;
pub mod mirror;
pub mod moderation;
mod naming;
pub mod reaction;
pub mod seed;
pub mod suspicion;
pub mod workspace;

mod catalogue;
mod watch;

#[cfg(test)]
mod library_tests;
#[cfg(test)]
mod testing;

pub use atom::{Atom, Notice, Status};
pub use library::{Library, LibraryError, MAX_RETRIEVED};
pub use seed::{Ingest, Seeder, UnknownIngest};
pub use workspace::{Problem, Workspace, find as find_workspace};
