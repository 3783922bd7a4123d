//! The team's knowledge: the seed that opens a session, and the answers that people gave.
//!
//! An [`atom`] is one such answer, a Markdown file that people may edit. The [`Library`] finds the atoms relevant to a
//! message, [`block`] shows them to the model. [`extract`] turns a reply into a new atom, [`moderation`] and
//! [`reaction`] decide whether it is kept. [`seed`] packs the documents of the workspace ([`workspace`] determines
//! which) into the first message of a session. A [`mirror`] keeps the folder of atoms in sync with those of other
//! hosts.

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
