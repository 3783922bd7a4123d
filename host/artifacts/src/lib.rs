//! Compiled components: the folder they are kept in, and the one call that makes code of what lies there.
//!
//! What stands in an artifact runs as it is, with all that this process may do. So nothing becomes code but what lies
//! in a [`Folder`] that this user alone can write ([`ownership`]), whole, as this program sealed it there ([`seal`]).
//! Who else can put something there is this user already, or the administrator.

#![deny(missing_docs)]

mod folder;
mod native;

pub use folder::{Folder, FolderError, Kept, Staged, seal};
