//! Why a component was not compiled.

use std::{fmt, io};

use pmk_artifacts::FolderError;
use thiserror::Error;

use super::TooMuch;

/// Why a component was not compiled.
#[derive(Debug, Error)]
pub enum CompileError {
    /// The compiler rejects it.
    #[error("{reason}")]
    Invalid {
        /// The compiler's error.
        reason: String,
    },
    /// It contains more of something than is allowed.
    #[error("it {0}")]
    TooMuch(TooMuch),
    /// Compiling it would use more than is allowed.
    #[error("{0}")]
    Exceeded(Exceeded),
    /// The compilation was cancelled.
    #[error("nothing waits for it any more")]
    Abandoned,
    /// The compiler ended without a result.
    #[error("the compiler failed: {how}")]
    Died {
        /// How the process ended.
        how: String,
    },
    /// The artifact cannot be stored.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The child process cannot be started, or not be communicated with.
    #[error("cannot run the compiler: {0}")]
    Io(io::Error),
}

/// A limit on compiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exceeded {
    /// The resource.
    pub resource: Resource,
    /// How much may be used, in seconds or bytes.
    pub limit: u64,
    /// Whether the system allows less than gateway.json.
    pub by_system: bool,
}

/// What compiling uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Resource {
    /// Processor time, all threads together.
    #[error("s of processor time")]
    Cpu,
    /// Wall-clock time: it waited for a processor for too long.
    #[error("s on the clock")]
    Wall,
    /// Memory.
    #[error("MiB of memory")]
    Memory,
    /// The size of the artifact.
    #[error("MiB for the compiled code")]
    Artifact,
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = match self.resource {
            Resource::Cpu | Resource::Wall => self.limit,
            Resource::Memory | Resource::Artifact => self.limit >> 20,
        };
        let whose = if self.by_system { ", all that the system allows" } else { "" };
        write!(f, "more than {shown} {}{whose}", self.resource)
    }
}

impl Exceeded {
    /// What the user can do about it.
    pub(crate) fn hint(&self) -> String {
        let (setting, ulimit) = match self.resource {
            Resource::Cpu => ("compileCpuSeconds", "t"),
            Resource::Wall => ("compileCpuSeconds", ""),
            Resource::Memory => ("compileMemoryMiB", "d"),
            Resource::Artifact => ("artifactMiB", "f"),
        };
        match self.by_system {
            true => format!(
                "`ulimit -{ulimit}` in the environment of pmk-host is lower than `policy.limits.{setting}`; raise it"
            ),
            false => format!(
                "if you trust it, raise `policy.limits.{setting}` in gateway.json; even a policy with a Python or JavaScript interpreter takes less"
            ),
        }
    }
}
