//! Rebuilds every policy under `plugins/` as a component, with whichever toolchain the machine has.
//!
//! [`policies`] finds the crates, [`toolchain`] what can compile them, [`guest`] says how cargo is run for wasm, and
//! [`component`] turns the result into a component and says what is in it.

pub mod component;
pub mod error;
pub mod guest;
pub mod policies;
pub mod toolchain;

pub use component::Component;
pub use error::Error;
pub use policies::Workspace;
pub use toolchain::{Target, Toolchain};
