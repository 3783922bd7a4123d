//! Our side of a compiling child.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::unix::process::{CommandExt, ExitStatusExt},
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

use super::{
    CompileError, Exceeded, Taken,
    child::{COMMAND, Said},
};
use crate::{failure::foreign_line, limits::CompileLimits};

/// More threads need more memory, and a component has few functions that take long.
const MOST_THREADS: usize = 4;

/// Of what a child says, so much is read.
const MOST_SAID: u64 = 64 << 10;

/// Has a child compile a component into this file.
pub(super) fn compile(bytes: &[u8], into: File, limits: &CompileLimits) -> Result<Taken, CompileError> {
    let mut child = spawn(into, limits).map_err(CompileError::Io)?;
    let wall = wall(limits);
    let (said, timed_out) = speak(&mut child, bytes, wall);
    let status = child.wait().map_err(CompileError::Io)?;
    if timed_out {
        return Err(CompileError::Exceeded(Exceeded::Wall { seconds: wall.as_secs() }));
    }
    if status.success() {
        return match serde_json::from_str(&said) {
            Ok(Said::Compiled(taken)) => Ok(taken),
            Ok(Said::Invalid(reason)) => Err(CompileError::Invalid { reason }),
            Ok(Said::TooLarge) => Err(CompileError::Exceeded(artifact(limits))),
            Err(_) => Err(CompileError::Died { how: first_words(&said) }),
        };
    }
    Err(died(status, &said, limits))
}

fn spawn(into: File, limits: &CompileLimits) -> io::Result<Child> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
    let bounds = [limits.cpu.as_secs(), limits.memory_bytes, limits.artifact_bytes].map(|bound| bound.to_string());
    Command::new(this_program()?)
        .arg0("pmk-host")
        .arg(COMMAND)
        .args(bounds)
        // Tokens are in the environment.
        .env_clear()
        // How the compiler's thread pool is told.
        .env("RAYON_NUM_THREADS", threads.to_string())
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(into)
        .stderr(Stdio::piped())
        // What the terminal sends is meant for us; a child that is left alone ends.
        .process_group(0)
        .spawn()
}

/// The very program that runs, also where another version was put in its place meanwhile.
fn this_program() -> io::Result<PathBuf> {
    if cfg!(target_os = "linux") { Ok(PathBuf::from("/proc/self/exe")) } else { std::env::current_exe() }
}

/// Hands the component over and hears the child out. Kills it if that takes too long, and says so.
fn speak(child: &mut Child, bytes: &[u8], wall: Duration) -> (String, bool) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let (stdin, stderr) = (child.stdin.take(), child.stderr.take());
    let (done, watched) = mpsc::channel::<()>();
    thread::scope(|scope| {
        // The child has not been waited for yet, so its number is still its own.
        let watchdog = scope.spawn(move || {
            let timed_out = watched.recv_timeout(wall) == Err(mpsc::RecvTimeoutError::Timeout);
            timed_out && pid.is_some_and(|pid| kill_process(pid, Signal::KILL).is_ok())
        });
        // One that has died already says why below.
        let _ = stdin.map(|mut stdin| stdin.write_all(bytes));
        let mut said = Vec::new();
        let _ = stderr.map(|stderr| stderr.take(MOST_SAID).read_to_end(&mut said));
        drop(done);
        (String::from_utf8_lossy(&said).into_owned(), watchdog.join().unwrap_or_default())
    })
}

/// How long a child may take on the clock: on a machine that has other things to do, several times its processor time.
fn wall(limits: &CompileLimits) -> Duration {
    limits.cpu.saturating_mul(5) + Duration::from_secs(5)
}

/// Why a child ended without having done its work.
fn died(status: ExitStatus, said: &str, limits: &CompileLimits) -> CompileError {
    let signal = status.signal().and_then(Signal::from_named_raw);
    CompileError::Exceeded(match signal {
        Some(Signal::XCPU) => Exceeded::Cpu { seconds: limits.cpu.as_secs() },
        Some(Signal::XFSZ) => artifact(limits),
        // What Rust's standard library says before it aborts.
        Some(Signal::ABORT) if said.contains("memory allocation of ") => {
            Exceeded::Memory { mib: limits.memory_bytes >> 20 }
        }
        Some(Signal::KILL) => {
            let how = "it was killed, as the system does when memory runs out".to_owned();
            return CompileError::Died { how };
        }
        _ => return CompileError::Died { how: format!("{status}: {}", first_words(said)) },
    })
}

fn artifact(limits: &CompileLimits) -> Exceeded {
    Exceeded::Artifact { mib: limits.artifact_bytes >> 20 }
}

fn first_words(said: &str) -> String {
    foreign_line(said.lines().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing"))
}
