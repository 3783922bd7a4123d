//! What a compiling child may use and reach: little time, little memory, and nothing but its three streams.

use std::io;

use rustix::process::{Resource, Rlimit, Signal, getrlimit, nice, set_parent_process_death_signal, setrlimit};

use super::Confinement;

/// What a compiling child may use.
#[derive(Debug)]
pub(super) struct Bounds {
    /// Processor time, all threads together.
    pub cpu_seconds: u64,
    /// Memory that it writes to.
    pub memory_bytes: u64,
    /// What it may write to a file.
    pub artifact_bytes: u64,
}

/// It has time only where nobody else wants it.
const NICE: i32 = 19;

/// Binds this process, once and for all. To be called before it has other threads.
///
/// # Errors
/// The kernel does not take a limit. Where it cannot confine, that is no error, but said.
pub(super) fn this_process(bounds: &Bounds) -> io::Result<Confinement> {
    // Whoever asked for it is gone then.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let limit = |resource, current: u64, maximum: u64| {
        // Whoever started the gateway may allow less.
        let allowed = getrlimit(resource).maximum.unwrap_or(u64::MAX);
        setrlimit(resource, Rlimit { current: Some(current.min(allowed)), maximum: Some(maximum.min(allowed)) })
    };
    // At the first the kernel sends SIGXCPU, which says why, at the second SIGKILL.
    limit(Resource::Cpu, bounds.cpu_seconds, bounds.cpu_seconds.saturating_add(1))?;
    // Heap and all private memory that can be written to; unlike the address space it has no part that is only reserved.
    limit(Resource::Data, bounds.memory_bytes, bounds.memory_bytes)?;
    // The seal stands before the artifact.
    let file_bytes = bounds.artifact_bytes.saturating_add(4_096);
    limit(Resource::Fsize, file_bytes, file_bytes)?;
    limit(Resource::Core, 0, 0)?;
    nice(NICE)?;
    // Where memory runs out it is this process that goes, and not the gateway.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    Ok(confined())
}

/// Has the kernel deny files, network, signals and tracing from here on.
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

/// Only Linux has a way without a helper of the administrator.
#[cfg(not(target_os = "linux"))]
fn confined() -> Confinement {
    Confinement::No
}
