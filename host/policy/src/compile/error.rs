//! Why a component was not compiled.

use std::io;

use pmk_artifacts::FolderError;
use thiserror::Error;

use super::TooMuch;

/// Why a component was not compiled.
#[derive(Debug, Error)]
pub enum CompileError {
    /// The compiler does not take it.
    #[error("{reason}")]
    Invalid {
        /// The compiler's words.
        reason: String,
    },
    /// It is made of more than is allowed.
    #[error("it {0}")]
    TooMuch(TooMuch),
    /// It would have taken more than is allowed.
    #[error("{0}")]
    Exceeded(Exceeded),
    /// Too many others are being compiled.
    #[error("{at_once} components are being compiled already")]
    Busy {
        /// How many may be.
        at_once: usize,
    },
    /// The compiler ended without a result.
    #[error("the compiler failed: {how}")]
    Died {
        /// How it ended.
        how: String,
    },
    /// There is no place for the result.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The child process cannot be had, or spoken to.
    #[error("cannot run the compiler: {0}")]
    Io(io::Error),
}

/// A limit on compiling, as an operator sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Exceeded {
    /// Processor time.
    #[error("more than {seconds} s of processor time")]
    Cpu {
        /// The limit.
        seconds: u64,
    },
    /// Time on the clock: it waited for a processor for too long.
    #[error("more than {seconds} s on the clock")]
    Wall {
        /// The limit.
        seconds: u64,
    },
    /// Memory.
    #[error("more than {mib} MiB of memory")]
    Memory {
        /// The limit.
        mib: u64,
    },
    /// The size of what comes out.
    #[error("more than {mib} MiB for the compiled code")]
    Artifact {
        /// The limit.
        mib: u64,
    },
}

impl Exceeded {
    /// The key of gateway.json that sets it.
    pub const fn setting(&self) -> &'static str {
        match self {
            Exceeded::Cpu { .. } | Exceeded::Wall { .. } => "policy.limits.compileCpuSeconds",
            Exceeded::Memory { .. } => "policy.limits.compileMemoryMiB",
            Exceeded::Artifact { .. } => "policy.limits.artifactMiB",
        }
    }
}
