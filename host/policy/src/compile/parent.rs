//! The parent's side of a compiling child.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::unix::process::{CommandExt, ExitStatusExt},
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use super::{
    CompileError, Exceeded, Resource, Taken,
    abandon::{CancelFlag, LOOK_EVERY},
    child::{COMMAND, Said},
    confine::Allowed,
};
use crate::{failure::foreign_line, limits::CompileLimits};

/// More threads need more memory, and few of a component's functions take long.
const MOST_THREADS: usize = 4;

/// Threads of the compiler: half of the processors, so that answers need not wait for one even at the lowest priority.
fn threads() -> usize {
    (thread::available_parallelism().map_or(1, usize::from) / 2).clamp(1, MOST_THREADS)
}

/// How many bytes of a child's report are read.
const MOST_SAID: u64 = 64 << 10;

/// Makes a child compile a component into this file.
pub(super) fn compile(
    bytes: &[u8],
    into: File,
    limits: &CompileLimits,
    abandon: &CancelFlag,
) -> Result<Taken, CompileError> {
    let allowed = Allowed::under(limits);
    let mut child = spawn(into, &allowed).map_err(CompileError::Io)?;
    let wall = wall(limits);
    let (said, ended) = speak(&mut child, bytes, wall, abandon);
    let status = child.wait().map_err(CompileError::Io)?;
    match ended {
        Ended::ByItself => {}
        Ended::Abandoned => return Err(CompileError::Abandoned),
        Ended::Late => {
            let late = Exceeded { resource: Resource::Wall, limit: wall.as_secs(), by_system: false };
            return Err(CompileError::Exceeded(late));
        }
    }
    if status.success() {
        return match serde_json::from_str(&said) {
            Ok(Said::Compiled(taken)) => Ok(taken),
            Ok(Said::Invalid(reason)) => Err(CompileError::Invalid { reason }),
            Ok(Said::TooLarge) => Err(CompileError::Exceeded(allowed.artifact)),
            Err(_) => Err(CompileError::Died { how: first_words(&said) }),
        };
    }
    Err(died(status, &said, &allowed))
}

fn spawn(into: File, allowed: &Allowed) -> io::Result<Child> {
    let program = this_program()?;
    let child = Command::new(&program)
        .arg0("pmk-host")
        .arg(COMMAND)
        .args(allowed.bounds().map(|bound| bound.to_string()))
        // The environment contains tokens.
        .env_clear()
        // Sets the size of the compiler's thread pool.
        .env("RAYON_NUM_THREADS", threads().to_string())
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(into)
        .stderr(Stdio::piped())
        // Signals of the terminal are for us, not for the child; it ends when its parent does.
        .process_group(0)
        .spawn();
    child.map_err(|error| io::Error::new(error.kind(), format!("`{}`: {error}", program.display())))
}

/// The running program itself, even if another version has replaced its file.
fn this_program() -> io::Result<PathBuf> {
    if cfg!(target_os = "linux") { Ok(PathBuf::from("/proc/self/exe")) } else { std::env::current_exe() }
}

/// How a child ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    ByItself,
    /// It exceeded its time.
    Late,
    /// It was cancelled.
    Abandoned,
}

/// Sends the component and reads the report. Kills the child if that takes too long or is cancelled.
fn speak(child: &mut Child, bytes: &[u8], wall: Duration, abandon: &CancelFlag) -> (String, Ended) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let (stdin, stderr) = (child.stdin.take(), child.stderr.take());
    let (done, watched) = mpsc::channel::<()>();
    thread::scope(|scope| {
        // The child has not been waited for yet, so its process id cannot have been reused.
        let watchdog = scope.spawn(move || {
            let ended = watch(&watched, wall, abandon);
            if ended != Ended::ByItself {
                let _ = pid.map(|pid| kill_process(pid, Signal::KILL));
            }
            ended
        });
        // A child that has died already is reported below.
        let _ = stdin.map(|mut stdin| stdin.write_all(bytes));
        let mut said = Vec::new();
        let _ = stderr.map(|stderr| stderr.take(MOST_SAID).read_to_end(&mut said));
        drop(done);
        (String::from_utf8_lossy(&said).into_owned(), watchdog.join().unwrap_or(Ended::ByItself))
    })
}

/// Waits until the child is done, its time is over, or it is cancelled.
fn watch(done: &mpsc::Receiver<()>, wall: Duration, abandon: &CancelFlag) -> Ended {
    let begun = Instant::now();
    while done.recv_timeout(LOOK_EVERY) == Err(mpsc::RecvTimeoutError::Timeout) {
        if abandon.is_set() {
            return Ended::Abandoned;
        }
        if begun.elapsed() >= wall {
            return Ended::Late;
        }
    }
    Ended::ByItself
}

/// The wall-clock limit of a child: several times its processor time, for a machine that is busy.
fn wall(limits: &CompileLimits) -> Duration {
    limits.cpu.saturating_mul(5) + Duration::from_secs(5)
}

/// Why a child ended without having finished.
fn died(status: ExitStatus, said: &str, allowed: &Allowed) -> CompileError {
    let signal = status.signal().and_then(Signal::from_named_raw);
    CompileError::Exceeded(match signal {
        Some(Signal::XCPU) => allowed.cpu,
        Some(Signal::XFSZ) => allowed.artifact,
        // What Rust's standard library prints before it aborts.
        Some(Signal::ABORT) if said.contains("memory allocation of ") => allowed.memory,
        Some(Signal::KILL) => {
            let how = "it was killed, probably because the system ran out of memory".to_owned();
            return CompileError::Died { how };
        }
        _ => return CompileError::Died { how: format!("{status}: {}", first_words(said)) },
    })
}

fn first_words(said: &str) -> String {
    foreign_line(said.lines().find(|line| !line.trim().is_empty()).unwrap_or("it printed nothing"))
}
