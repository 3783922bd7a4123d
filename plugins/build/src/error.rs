//! What can go wrong, and what to do about it.

use std::{io, path::PathBuf};

use thiserror::Error;

/// Why a component could not be built.
#[derive(Debug, Error)]
pub enum Error {
    /// Neither the target nor the means to build it.
    #[error(
        "no Rust toolchain here can build for {target}\n\
         hint: `rustup target add {target}`; or, where only package registries can be reached, the standard library's \
         source: `apt-get install rustc-web cargo-web rust-web-src{libc}`",
        libc = if target.ends_with("wasip1") { " wasi-libc" } else { "" }
    )]
    NoToolchain { target: &'static str },
    /// The standard library could be built but not linked.
    #[error(
        "no linker for wasm: neither `rust-lld` nor `wasm-ld`\n\
         hint: `rustup toolchain install stable`, or `apt-get install lld`"
    )]
    NoLinker,
    /// `--cargo-component` without cargo-component.
    #[error(
        "cargo-component is not installed\n\
         hint: `cargo install cargo-component --locked`, or leave out `--cargo-component`"
    )]
    NoCargoComponent,
    /// cargo-component wants to see this folder, even when it is empty.
    #[error("cargo-component looks for `{}`\nhint: `mkdir -p {}`", .0.display(), .0.display())]
    NoTargetFolder(PathBuf),
    /// A policy that is not there.
    #[error("there is no policy `{name}` under `plugins/`\nhint: there is {known}")]
    NoSuchPolicy { name: String, known: String },
    /// A command that could not be started.
    #[error("`{command}` does not start: {source}")]
    Start { command: String, source: io::Error },
    /// A command that failed; it has said why.
    #[error("`{command}` failed")]
    Failed { command: String },
    /// `cargo metadata` said something unexpected.
    #[error("`cargo metadata` did not print what was expected: {0}")]
    Metadata(String),
    /// A file that could not be read or written.
    #[error("`{}`: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    /// Bytes that are no component of this contract.
    #[error("{name}: {what}")]
    Component { name: String, what: String },
}
