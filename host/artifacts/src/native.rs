//! The call that turns an artifact into code.

use wasmtime::{Engine, component::Component};

/// Creates a component from an artifact.
///
/// # Errors
/// If it was made for another engine, another version of it or another processor, or requires more than this engine
/// has.
///
/// Within this crate, called only with what [`Folder::load`](crate::Folder::load) has read.
#[allow(unsafe_code, reason = "the engine takes an artifact at its word; see the comment in it")]
pub(crate) fn component(engine: &Engine, artifact: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: the engine requires unmodified output of `Engine::precompile_component`.
    // - Only this user can have put the bytes there: folder and file belong to this user and nobody else can write to
    //   them, which was checked on the open descriptors (`ownership`). This program stores only its compiler's output
    //   there.
    // - They are unmodified: the SHA-256 that was written before them matches them and their component.
    // - They are a copy in memory: later changes to the file have no effect.
    // - They come from the compiler of this version of the engine. A compiler that was taken over by what it compiled
    //   could write anything here; the only protection against that is that it is written in safe Rust.
    // - Version, target and settings are compared by the engine itself, which rejects others with an error.
    unsafe { Component::deserialize(engine, artifact) }
}
