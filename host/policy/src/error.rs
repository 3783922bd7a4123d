//! Why a policy could not be loaded.

use std::io;

use pmk_artifacts::FolderError;
use pmk_system::ownership::NotOurs;
use thiserror::Error;

use crate::{
    compile::{CompileError, Exceeded, TooMuch},
    contract,
    failure::{Failure, foreign_name},
};

/// Why a policy could not be loaded. Every variant about a file names it; [`LoadError::hint`] says what to do about it.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The engine could not be set up.
    #[error("cannot set up the WebAssembly engine: {reason}")]
    Engine {
        /// The engine's error.
        reason: String,
    },
    /// The file does not exist.
    #[error("policy `{file}` does not exist")]
    Missing {
        /// The file as it was named.
        file: String,
    },
    /// It is a folder.
    #[error("policy `{file}` is a directory, not a file")]
    Directory {
        /// The file as it was named.
        file: String,
    },
    /// It is a pipe, a device or a socket.
    #[error("policy `{file}` is not a regular file but {what}")]
    Special {
        /// The file as it was named.
        file: String,
        /// What it is.
        what: &'static str,
    },
    /// It could not be read.
    #[error("cannot read policy `{file}`: {source}")]
    Unreadable {
        /// The file as it was named.
        file: String,
        /// The operating system's error.
        source: io::Error,
    },
    /// It has no content.
    #[error("policy `{file}` is empty")]
    Empty {
        /// The file as it was named.
        file: String,
    },
    /// It is larger than the maximum size of a component.
    #[error("policy `{file}` has {bytes} bytes, more than the {limit} that are allowed")]
    TooLarge {
        /// The file as it was named.
        file: String,
        /// Its size.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// It does not start like a WebAssembly file.
    #[error("policy `{file}` is not WebAssembly")]
    NotWasm {
        /// The file as it was named.
        file: String,
    },
    /// It is a core module.
    #[error("policy `{file}` is a core WebAssembly module, not a component")]
    CoreModule {
        /// The file as it was named.
        file: String,
        /// Whether it cannot be wrapped as it is, because it was built for WASI 0.1.
        needs_adapter: bool,
    },
    /// It starts as a component but is not a valid one.
    #[error("policy `{file}` is not a valid component: {reason}")]
    Invalid {
        /// The file as it was named.
        file: String,
        /// The engine's error.
        reason: String,
    },
    /// It has more of something than is allowed; the compiler might not cope with it.
    #[error("policy `{file}` {what}")]
    TooMuch {
        /// The file as it was named.
        file: String,
        /// What it has too much of.
        what: TooMuch,
    },
    /// Compiling it would use more than is allowed.
    #[error("compiling policy `{file}` takes {exceeded}")]
    Exceeded {
        /// The file as it was named.
        file: String,
        /// The limit.
        exceeded: Exceeded,
    },
    /// It could not be compiled, for a reason that is not the component's.
    #[error("cannot compile policy `{file}`: {reason}")]
    Uncompiled {
        /// The file as it was named.
        file: String,
        /// Why not.
        reason: CompileError,
    },
    /// Others can write to the folder from which this program loads code.
    #[error("the compile cache is not used: {0}")]
    Cache(NotOurs),
    /// It was built for another version of the contract.
    #[error("policy `{file}` requires `{wants}`, this host offers {}", contract::VERSION)]
    OtherVersion {
        /// The file as it was named.
        file: String,
        /// The interface it imports or exports.
        wants: String,
    },
    /// It uses something from a later minor version of the contract.
    #[error("policy `{file}` requires `{wants}`, this host offers {}{}", contract::VERSION, without(.lacking))]
    LaterVersion {
        /// The file as it was named.
        file: String,
        /// The interface it imports.
        wants: String,
        /// What this host lacks of it.
        lacking: Option<String>,
    },
    /// It imports something that policies are not given.
    #[error("policy `{file}` imports `{import}`, which this host does not offer to policies")]
    ForeignImport {
        /// The file as it was named.
        file: String,
        /// What it imports.
        import: String,
    },
    /// It imports WASI, which the operator does not allow.
    #[error("policy `{file}` imports `{import}`, but with `--no-wasi` only the contract may be imported")]
    NoWasi {
        /// The file as it was named.
        file: String,
        /// What it imports.
        import: String,
    },
    /// The operator has not allowed it.
    #[error("policy `{file}` is not allowed: its sha256 {sha256} is not in `policy.allow`")]
    NotAllowed {
        /// The file as it was named.
        file: String,
        /// Its digest.
        sha256: String,
    },
    /// It exports no interface of the contract.
    #[error("policy `{file}` exports nothing of `{}`: {}", contract::PACKAGE, found(.exports))]
    NothingExported {
        /// The file as it was named.
        file: String,
        /// What it exports instead.
        exports: Vec<String>,
    },
    /// It lacks the one export every policy must have.
    #[error("policy `{file}` does not export `{}`", contract::interface("describe"))]
    NoDescribe {
        /// The file as it was named.
        file: String,
    },
    /// An export has another type than the contract gives it.
    #[error("policy `{file}` exports `{export}` with another type than the contract: {reason}")]
    WrongExport {
        /// The file as it was named.
        file: String,
        /// The interface.
        export: String,
        /// What differs.
        reason: String,
    },
    /// An import has another type than in the contract.
    #[error("policy `{file}` does not fit this host: {reason}")]
    Unlinkable {
        /// The file as it was named.
        file: String,
        /// The engine's error.
        reason: String,
    },
    /// The system could not provide the memory for its initial memory images.
    #[error("cannot allocate memory for policy `{file}`: {reason}")]
    NoMemory {
        /// The file as it was named.
        file: String,
        /// The system's error.
        reason: String,
    },
    /// It failed to describe itself.
    #[error("policy `{file}` could not describe itself: it {failure}")]
    Describe {
        /// The file as it was named.
        file: String,
        /// How it failed.
        failure: Failure,
    },
    /// It described itself, but not as the contract requires.
    #[error("policy `{file}` has an invalid description: {reason}")]
    BadDescription {
        /// The file as it was named.
        file: String,
        /// The first problem.
        reason: String,
    },
}

/// What modules import that are built for WASI 0.1. Only with an adapter can such a module be made into a component.
const WASI_0_1: &[u8] = b"wasi_snapshot_preview1";

impl LoadError {
    /// The error for a core module.
    pub fn core_module(file: &str, module: &[u8]) -> LoadError {
        let needs_adapter = module.windows(WASI_0_1.len()).any(|name| name == WASI_0_1);
        LoadError::CoreModule { file: file.to_owned(), needs_adapter }
    }

    /// The error for a component that was not compiled.
    pub(crate) fn uncompiled(file: &str, error: CompileError) -> LoadError {
        let file = file.to_owned();
        match error {
            CompileError::Invalid { reason } => LoadError::Invalid { file, reason },
            CompileError::TooMuch(what) => LoadError::TooMuch { file, what },
            CompileError::Exceeded(exceeded) => LoadError::Exceeded { file, exceeded },
            reason => LoadError::Uncompiled { file, reason },
        }
    }

    /// What the user can do about it, if anything.
    pub fn hint(&self) -> Option<String> {
        let version = contract::VERSION;
        Some(match self {
            LoadError::Missing { .. } => "check the path".into(),
            LoadError::Directory { file } => format!("specify the component in it, for example `{file}/NAME.wasm`"),
            LoadError::Special { .. } => "copy the component into a regular file and use that".into(),
            LoadError::Empty { .. } => "the build or copy that wrote it did not finish; build the policy again".into(),
            LoadError::TooLarge { .. } => "build the policy in release mode and strip it".into(),
            LoadError::NotWasm { .. } => {
                "a policy is a compiled component, `target/wasm32-wasip1/release/NAME.wasm` after `cargo component build --release`"
                    .into()
            }
            LoadError::CoreModule { needs_adapter: true, .. } => {
                "it imports `wasi_snapshot_preview1`, which no component does: build it with `cargo component build --release`, or with cargo alone for wasm32-wasip2 or wasm32-unknown-unknown"
                    .into()
            }
            LoadError::CoreModule { file, .. } => format!(
                "build it with `cargo component build --release`, or wrap it with `wasm-tools component new {file} -o policy.wasm`"
            ),
            LoadError::TooMuch { what, .. } if what.setting.is_empty() => {
                "link the policy into one core module with one memory and one table".into()
            }
            LoadError::TooMuch { what, .. } => {
                format!("if you trust it, raise `{}` in gateway.json; components of ordinary toolchains have less", what.setting)
            }
            LoadError::Exceeded { exceeded, .. } => exceeded.hint(),
            LoadError::Uncompiled { reason: CompileError::Folder(FolderError::NotOurs(problem)), .. }
            | LoadError::Cache(problem) => problem.hint(),
            LoadError::Uncompiled { .. } => {
                "the compiler runs as a separate process of this program; it needs /proc, memory, and free space in the cache of the home"
                    .into()
            }
            LoadError::Invalid { reason, .. } => invalid_hint(reason).into(),
            LoadError::OtherVersion { .. } | LoadError::LaterVersion { .. } => {
                format!("build the policy against `{}@{version}`, or use a pmk-host that offers the other version", contract::PACKAGE)
            }
            LoadError::ForeignImport { import, .. } if import.starts_with("wasi:") => {
                "from WASI 0.2, a policy may only import cli, clocks, filesystem, io, random and sockets; build it for wasm32-wasip1 or wasm32-wasip2, without network features"
                    .into()
            }
            LoadError::NoWasi { .. } => {
                "build the policy for wasm32-unknown-unknown, or omit `--no-wasi` and `policy.noWasi` in gateway.json: WASI is then linked, but denies everything"
                    .into()
            }
            LoadError::NotAllowed { sha256, .. } => {
                format!("if you trust this build, add \"{sha256}\" to `policy.allow` in gateway.json")
            }
            LoadError::ForeignImport { .. } | LoadError::NothingExported { .. } | LoadError::NoDescribe { .. } => {
                format!("a policy implements a world of `{}@{version}` (wit/policy.wit)", contract::PACKAGE)
            }
            LoadError::WrongExport { .. } | LoadError::Unlinkable { .. } => {
                "build the policy against this host's wit/policy.wit".into()
            }
            LoadError::Describe { failure: Failure::OutOfMemory { .. } | Failure::OutOfTable { .. }, .. } => {
                "raise `policy.limits.memoryMiB` or `tableElements` in gateway.json, or build a smaller policy".into()
            }
            LoadError::Describe { .. } => "`describe` should only call the methods of `description`".into(),
            LoadError::NoMemory { .. } => {
                "the policy itself is fine; check that memory and address space are not exhausted".into()
            }
            LoadError::Unreadable { .. } => "check that it is a file that you can read".into(),
            LoadError::BadDescription { .. } => "correct `describe` in the policy's source and build it again".into(),
            LoadError::Engine { .. } => return None,
        })
    }
}

/// How many exports a message shows.
const EXPORTS_SHOWN: usize = 5;

/// The likely cause of an engine's rejection of a component, judging by the engine's error.
fn invalid_hint(reason: &str) -> &'static str {
    if reason.contains("instance size does not fit") {
        "the policy has more functions, imports and globals than an instance has room for; build a smaller one"
    } else if reason.contains("pooling allocator") {
        "link the policy into one core module with one memory and one table"
    } else if ["enabled", "disabled", "require"].iter().any(|word| reason.contains(word)) {
        "build the policy without threads, garbage collection, relaxed SIMD and async functions"
    } else {
        "the file may be truncated; build or copy it again"
    }
}

fn found(exports: &[String]) -> String {
    let shown: Vec<String> =
        exports.iter().take(EXPORTS_SHOWN).map(|name| format!("`{}`", foreign_name(name))).collect();
    match exports.len() {
        0 => "it has no exports".to_owned(),
        count if count > EXPORTS_SHOWN => format!("found {} and {} more", shown.join(", "), count - EXPORTS_SHOWN),
        _ => format!("found {}", shown.join(", ")),
    }
}

fn without(lacking: &Option<String>) -> String {
    lacking.as_ref().map(|item| format!(", which has no such `{item}`")).unwrap_or_default()
}

impl From<LoadError> for pmk_system::error::Failure {
    fn from(error: LoadError) -> Self {
        let failure = pmk_system::error::Failure::new(&error);
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}
