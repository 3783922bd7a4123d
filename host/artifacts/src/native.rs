//! The one call.

use wasmtime::{Engine, component::Component};

/// Makes a component of an artifact.
///
/// # Errors
/// It is meant for another engine, another version of it or another processor, or wants more than this engine has.
///
/// Within this crate it is called with what [`Folder::load`](crate::Folder::load) has read and with nothing else.
#[allow(unsafe_code, reason = "the engine takes an artifact at its word; see the comment in it")]
pub(crate) fn component(engine: &Engine, artifact: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: the engine wants bytes that `Engine::precompile_component` gave, unmodified.
    // - Only this user can have put them there: folder and file are this user's and nobody else's to write, which was
    //   asked of the open descriptors (`ownership`). This program puts nothing there but what its compiler gave.
    // - They are unmodified: the SHA-256 that was written before them is theirs, and their component's.
    // - They are a copy in memory: whatever happens to the file from now on does not reach them.
    // - What gave them is the compiler of this version of the engine. One that was taken over by what it compiled could
    //   write what it likes here: against that there is nothing but that it is written in safe Rust.
    // - Version, target and settings are compared by the engine itself, which refuses others with an error.
    unsafe { Component::deserialize(engine, artifact) }
}
