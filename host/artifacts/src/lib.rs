//! Compiled components: the folder they are stored in, and the one call that turns an artifact into executable code.
//!
//! An artifact is executed as it is, with all rights of this process. Therefore only artifacts in a [`Folder`] that
//! this user alone can write to (see `ownership.rs`) are used, complete and as this program sealed them there ([`seal`]).
//! Anybody else who can put something there is this user already, or the administrator.

#![deny(missing_docs)]

mod folder;
mod native;

pub use folder::{Folder, FolderError, Kept, Staged, seal};
