//! Rebuilds every policy under `plugins/` as a component, with whichever toolchain the machine has.
//!
//! [`policies`] finds the crates, [`toolchain`] a toolchain that can compile them, [`guest`] runs cargo for wasm, and
//! [`component`] converts the result to a component and reads its contents.

pub mod component;
pub mod error;
pub mod guest;
pub mod policies;
pub mod toolchain;

pub use component::Component;
pub use error::Error;
pub use policies::Workspace;
pub use toolchain::{Target, Toolchain};
