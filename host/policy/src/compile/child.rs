//! The child's side: reads a component from standard input, writes the artifact to standard output, and a report to
//! standard error.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Read},
    os::fd::AsFd,
    process::ExitCode,
};

use serde::{Deserialize, Serialize};

use super::{
    CompileError, Confinement, Taken, compile,
    confine::{self, Bounds},
    write_artifact,
};

/// The first argument of a compiling child.
pub const COMMAND: &str = "compile-component";

/// The report of a child that has finished.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Said {
    /// The artifact is written.
    Compiled(Taken),
    /// The component is not valid.
    Invalid(String),
    /// The artifact would exceed its size limit.
    TooLarge,
}

/// Compiles a component if these are the arguments of a compiling child: [`COMMAND`] and the limits in seconds, bytes
/// and bytes. Must be the first call in `main`, before there are other threads.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1);
    if arguments.next().as_deref() != Some(OsStr::new(COMMAND)) {
        return None;
    }
    let numbers: Vec<u64> = arguments.filter_map(|text| text.to_str()?.parse().ok()).collect();
    let [cpu_seconds, memory_bytes, artifact_bytes] = numbers[..] else {
        eprintln!("error: `{COMMAND}` is how this program calls itself");
        return Some(ExitCode::from(2));
    };
    Some(match work(&Bounds { cpu_seconds, memory_bytes, artifact_bytes }) {
        Ok(said) => report(&said),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    })
}

fn report(said: &Said) -> ExitCode {
    match serde_json::to_writer(io::stderr(), said) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn work(bounds: &Bounds) -> io::Result<Said> {
    // Opened while the process can still open files.
    let status = File::open("/proc/self/status").ok();
    let confined = confine::this_process(bounds)?;
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes)?;
    let artifact = match compile(&bytes) {
        Ok(artifact) => artifact,
        Err(CompileError::Invalid { reason }) => return Ok(Said::Invalid(reason)),
        Err(error) => return Err(io::Error::other(error)),
    };
    if artifact.len() as u64 > bounds.artifact_bytes {
        return Ok(Said::TooLarge);
    }
    // Without line buffering.
    write_artifact(&bytes, &artifact, File::from(io::stdout().as_fd().try_clone_to_owned()?))?;
    Ok(Said::Compiled(taken(status, confined)))
}

/// The resources used, as counted by the kernel.
fn taken(status: Option<File>, confined: Confinement) -> Taken {
    let mut text = String::new();
    _ = status.map(|mut status| status.read_to_string(&mut text));
    let kib = text.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
    let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let milliseconds = cpu.tv_sec.saturating_mul(1_000).saturating_add(cpu.tv_nsec / 1_000_000);
    Taken {
        cpu_ms: u64::try_from(milliseconds).unwrap_or_default(),
        peak_bytes: kib.unwrap_or(0_u64).saturating_mul(1_024),
        confined,
    }
}
