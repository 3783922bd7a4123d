//! Errors, and what to do about them.

use std::{io, path::PathBuf};

use thiserror::Error;

/// Why a component could not be built.
#[derive(Debug, Error)]
pub enum Error {
    /// No toolchain has the target, or can build its standard library.
    #[error(
        "no Rust toolchain here can build for {target}\n\
         hint: `rustup target add {target}`; or, where only package registries can be reached, the standard library's \
         source: `apt-get install rustc-web cargo-web rust-web-src{libc}`",
        libc = if target.ends_with("wasip1") { " wasi-libc" } else { "" }
    )]
    NoToolchain { target: &'static str },
    /// The standard library could be built, but there is no linker.
    #[error(
        "no linker for wasm: neither `rust-lld` nor `wasm-ld`\n\
         hint: `rustup toolchain install stable`, or `apt-get install lld`"
    )]
    NoLinker,
    /// `--cargo-component` was given, but cargo-component is not installed.
    #[error(
        "cargo-component is not installed\n\
         hint: `cargo install cargo-component --locked`, or leave out `--cargo-component`"
    )]
    NoCargoComponent,
    /// cargo-component requires this folder, even if it is empty.
    #[error("cargo-component looks for `{}`\nhint: `mkdir -p {}`", .0.display(), .0.display())]
    NoTargetFolder(PathBuf),
    /// The policy does not exist.
    #[error("there is no policy `{name}` under `plugins/`\nhint: there is {known}")]
    NoSuchPolicy { name: String, known: String },
    /// The command could not be started.
    #[error("`{command}` does not start: {source}")]
    Start { command: String, source: io::Error },
    /// The command failed; it has printed why.
    #[error("`{command}` failed")]
    Failed { command: String },
    /// `cargo metadata` failed: what it printed, in one line.
    #[error("`cargo metadata` failed: {0}")]
    NoMetadata(String),
    /// `cargo metadata` printed something unexpected.
    #[error("`cargo metadata` did not print what was expected: {0}")]
    Metadata(String),
    /// The file could not be read or written.
    #[error("`{}`: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    /// The bytes are not a component of this contract.
    #[error("{name}: {what}")]
    Component { name: String, what: String },
}
