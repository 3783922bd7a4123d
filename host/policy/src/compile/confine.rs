//! Limits a compiling child: little time, little memory, and access to nothing but its three streams.

use std::io;

use rustix::process::{Resource, Rlimit, Signal, getrlimit, nice, set_parent_process_death_signal, setrlimit};

use super::{
    Confinement,
    error::{Exceeded, Resource as Used},
};
use crate::limits::CompileLimits;

/// The limits of a compiling child.
#[derive(Debug)]
pub(super) struct Bounds {
    /// Processor time, all threads together.
    pub cpu_seconds: u64,
    /// Memory that it writes to.
    pub memory_bytes: u64,
    /// The maximum size of a file that it writes.
    pub artifact_bytes: u64,
}

/// The header of an artifact is shorter than this.
const SEAL_BYTES: u64 = 4_096;

/// The limits of children: those of gateway.json, or less where the system does not allow as much.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowed {
    pub cpu: Exceeded,
    pub memory: Exceeded,
    pub artifact: Exceeded,
}

impl Allowed {
    /// Combines these limits with those of this process, which its children cannot raise.
    pub fn under(limits: &CompileLimits) -> Allowed {
        let lower = |resource, limit: u64, of: Resource, less: u64| {
            let allowed = getrlimit(of).maximum.map_or(u64::MAX, |maximum| maximum.saturating_sub(less));
            Exceeded { resource, limit: limit.min(allowed), by_system: allowed < limit }
        };
        Allowed {
            // The soft limit is below the hard one, because it reports why it ends a process.
            cpu: lower(Used::Cpu, limits.cpu.as_secs(), Resource::Cpu, 1),
            memory: lower(Used::Memory, limits.memory_bytes, Resource::Data, 0),
            artifact: lower(Used::Artifact, limits.artifact_bytes, Resource::Fsize, SEAL_BYTES),
        }
    }

    /// The limits as passed to the child.
    pub fn bounds(&self) -> [u64; 3] {
        [self.cpu.limit, self.memory.limit, self.artifact.limit]
    }
}

/// The lowest priority: the child runs only when nothing else needs the processor.
const NICE: i32 = 19;

/// Applies the limits to this process, irrevocably. Must be called before it has other threads.
///
/// # Errors
/// If the kernel rejects a limit. That the kernel cannot isolate the process is not an error; the result says so.
pub(super) fn this_process(bounds: &Bounds) -> io::Result<Confinement> {
    // Ends the child when its parent ends.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let limit = |resource, current: u64, maximum: u64| {
        setrlimit(resource, Rlimit { current: Some(current), maximum: Some(maximum) })
    };
    // At the first limit the kernel sends SIGXCPU, which reports why, at the second SIGKILL.
    limit(Resource::Cpu, bounds.cpu_seconds, bounds.cpu_seconds.saturating_add(1))?;
    // Heap and all private writable memory; unlike the address space, it does not include reserved ranges.
    limit(Resource::Data, bounds.memory_bytes, bounds.memory_bytes)?;
    let file_bytes = bounds.artifact_bytes.saturating_add(SEAL_BYTES);
    limit(Resource::Fsize, file_bytes, file_bytes)?;
    limit(Resource::Core, 0, 0)?;
    nice(NICE)?;
    // If memory runs out, the kernel kills this process rather than the gateway.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    Ok(confined())
}

/// Makes the kernel deny files, network, signals and tracing from here on.
#[cfg(target_os = "linux")]
fn confined() -> Confinement {
    use landlock::{
        ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, RestrictionStatus, Ruleset, RulesetAttr,
        RulesetError, RulesetStatus, Scope,
    };
    let known = ABI::V6;
    let deny_all = || -> Result<RestrictionStatus, RulesetError> {
        Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(known))?
            .handle_access(AccessNet::from_all(known))?
            .scope(Scope::from_all(known))?
            .create()?
            .restrict_self()
    };
    match deny_all().map(|status| status.ruleset) {
        Ok(RulesetStatus::FullyEnforced) => Confinement::Fully,
        Ok(RulesetStatus::PartiallyEnforced) => Confinement::Partly,
        Ok(RulesetStatus::NotEnforced) | Err(_) => Confinement::No,
    }
}

/// Only Linux offers this without privileges.
#[cfg(not(target_os = "linux"))]
fn confined() -> Confinement {
    Confinement::No
}
