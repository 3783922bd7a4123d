//! Subprocesses that cannot harm the gateway.
//!
//! A child is started without a shell, with an explicit environment, and in its own process group. When it ends, takes
//! too long, is cancelled or is no longer waited for, the whole group is killed, so that nothing it started outlives
//! it; a [`supervisor`] kills it when the gateway itself is killed. Its output is always read to the end, but only a
//! bounded part is kept.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    pin::pin,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use thiserror::Error;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    process::ChildStdin,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

mod capture;
mod group;
mod lines;
pub mod supervisor;

pub use capture::Captured;
use capture::{Capture, Keep};
use group::Group;
use lines::Lines;

/// The maximum length of a line that is passed on, in bytes; the rest of a longer line is dropped.
const DEFAULT_MAX_LINE_BYTES: usize = 64 << 10;
/// How many bytes of standard output are kept, from its start.
const DEFAULT_MAX_STDOUT_BYTES: usize = 1 << 20;
/// How many bytes of standard error are kept, from its end, which is where programs report errors.
const DEFAULT_MAX_STDERR_BYTES: usize = 16 << 10;

/// How long remaining output is read from the pipes after the child has ended. A process that left the group may keep
/// them open forever.
const DRAIN_TIME: Duration = Duration::from_millis(500);
/// How long to wait for a killed child to end; after that the runtime reaps it.
const REAP_TIME: Duration = Duration::from_secs(5);
/// The number of bytes per read from a pipe.
const READ_BYTES: usize = 16 << 10;

/// What to run.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The program: a path, or a name that is looked up in the `PATH` of `environment`.
    pub program: OsString,
    /// The arguments as the program receives them; no shell interprets them.
    pub arguments: Vec<OsString>,
    /// The complete environment of the child.
    pub environment: Vec<(OsString, OsString)>,
    /// The working directory; with `None`, the gateway's.
    pub directory: Option<PathBuf>,
    /// The child's standard input.
    pub input: Vec<u8>,
    /// How long it may take, and how much of its output is kept.
    pub limits: Limits,
}

impl Spec {
    /// A command line (program first) with an empty environment, no input and the default limits.
    pub fn new(program: impl Into<OsString>, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Spec {
            program: program.into(),
            arguments: arguments.into_iter().map(Into::into).collect(),
            environment: Vec::new(),
            directory: None,
            input: Vec::new(),
            limits: Limits::default(),
        }
    }
}

/// The limits of a child.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The time from start to end.
    pub wall_clock: Duration,
    /// Bytes of a line that is passed on.
    pub max_line_bytes: usize,
    /// Bytes of standard output, kept from its start.
    pub max_stdout_bytes: usize,
    /// Bytes of standard error, kept from its end.
    pub max_stderr_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            wall_clock: Duration::from_secs(300),
            max_line_bytes: DEFAULT_MAX_LINE_BYTES,
            max_stdout_bytes: DEFAULT_MAX_STDOUT_BYTES,
            max_stderr_bytes: DEFAULT_MAX_STDERR_BYTES,
        }
    }
}

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself, with this exit code.
    Exited(i32),
    /// By this signal, which was not sent by this module.
    Signalled(i32),
    /// It was killed because it took longer than [`Limits::wall_clock`].
    TimedOut,
    /// It was killed because the caller cancelled.
    Cancelled,
}

/// A child that has ended.
#[derive(Clone, Debug)]
pub struct Finished {
    /// How it ended; whether that is a success is for the caller to decide.
    pub end: End,
    /// The start of its standard output.
    pub stdout: Captured,
    /// The end of its standard error.
    pub stderr: Captured,
}

/// Why a child could not be started.
#[derive(Debug, Error)]
pub enum SpawnError {
    /// The path does not exist, or the name is not in `PATH`.
    #[error("`{program}` was not found")]
    NotFound {
        /// As [`Spec::program`] names it.
        program: String,
    },
    /// It is not an executable file for this user.
    #[error("this user is not allowed to run `{program}`")]
    NotPermitted {
        /// As [`Spec::program`] names it.
        program: String,
    },
    /// The working directory does not exist.
    #[error("the working directory `{}` does not exist", directory.display())]
    NoDirectory {
        /// As in [`Spec::directory`].
        directory: PathBuf,
    },
    /// The system refuses for another reason.
    #[error("`{program}` could not be started: {source}")]
    Other {
        /// As [`Spec::program`] names it.
        program: String,
        /// The system's error.
        source: io::Error,
    },
}

/// The variables of this process with these names, for [`Spec::environment`]. Names that are not set are left out.
pub fn inherit<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<(OsString, OsString)> {
    names.into_iter().filter_map(|name| Some((name.into(), std::env::var_os(name)?))).collect()
}

/// Whether a program can be found: as a path, or as a name in the `PATH` of this environment.
pub fn is_installed(program: &OsStr, environment: &[(OsString, OsString)]) -> bool {
    if is_path(program) {
        return Path::new(program).is_file();
    }
    let path = environment.iter().find(|(name, _)| name == "PATH");
    path.is_some_and(|(_, folders)| std::env::split_paths(folders).any(|folder| folder.join(program).is_file()))
}

/// Whether this is a path rather than a name.
fn is_path(program: &OsStr) -> bool {
    Path::new(program).components().count() > 1
}

/// Runs a child to its end. `on_line` is called with every complete line of standard output, without its line end and
/// with replacement characters where it is not UTF-8.
///
/// Dropping the future kills the child's whole group.
///
/// # Errors
/// [`SpawnError`] when the child could not be started; however it ended, that is not an error here.
pub async fn run(
    spec: &Spec,
    cancel: &CancellationToken,
    mut on_line: impl FnMut(&str) + Send,
) -> Result<Finished, SpawnError> {
    let mut child = spawn(spec)?;
    let group = Group::of(&child);
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());

    let limits = &spec.limits;
    let mut out = Capture::new(Keep::Start, limits.max_stdout_bytes);
    let mut err = Capture::new(Keep::End, limits.max_stderr_bytes);
    let mut lines = Lines::new(limits.max_line_bytes);
    let end = {
        let feed = feed(stdin, &spec.input);
        let read_out = read(stdout, |bytes| {
            out.push(bytes);
            lines.push(bytes, &mut on_line);
        });
        let read_err = read(stderr, |bytes| err.push(bytes));
        let mut pipes = pin!(async { tokio::join!(feed, read_out, read_err) });
        let mut deadline = pin!(sleep(limits.wall_clock));
        let mut drained = false;
        let end = loop {
            tokio::select! {
                biased;
                () = cancel.cancelled() => break End::Cancelled,
                status = child.wait() => break ended(status),
                () = &mut deadline => break End::TimedOut,
                _ = &mut pipes, if !drained => drained = true,
            }
        };
        // Nothing that the child started may outlive it or keep its pipes open.
        drop(group);
        if matches!(end, End::TimedOut | End::Cancelled) {
            let _ = timeout(REAP_TIME, child.wait()).await;
        }
        if !drained {
            let _ = timeout(DRAIN_TIME, pipes).await;
        }
        end
    };
    lines.finish(&mut on_line);
    Ok(Finished { end, stdout: out.finish(), stderr: err.finish() })
}

fn spawn(spec: &Spec) -> Result<tokio::process::Child, SpawnError> {
    // Only the supervisor's own start is reported.
    check(spec)?;
    let mut command = tokio::process::Command::from(supervisor::command(&spec.program));
    command
        .args(&spec.arguments)
        .env_clear()
        .envs(spec.environment.iter().map(|(name, value)| (name, value)))
        .stdin(if spec.input.is_empty() { Stdio::null() } else { Stdio::piped() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    if let Some(directory) = &spec.directory {
        command.current_dir(directory);
    }
    command.spawn().map_err(|source| {
        let program = spec.program.to_string_lossy().into_owned();
        match (source.kind(), &spec.directory) {
            (io::ErrorKind::NotFound, Some(directory)) if !directory.is_dir() => {
                SpawnError::NoDirectory { directory: directory.clone() }
            }
            (io::ErrorKind::NotFound, _) => SpawnError::NotFound { program },
            (io::ErrorKind::PermissionDenied, _) => SpawnError::NotPermitted { program },
            _ => SpawnError::Other { program, source },
        }
    })
}

/// Checks what would prevent a program from starting now.
///
/// # Errors
/// The program or its working directory is missing, or this user may not run it.
pub fn check(spec: &Spec) -> Result<(), SpawnError> {
    if let Some(directory) = spec.directory.as_ref().filter(|directory| !directory.is_dir()) {
        return Err(SpawnError::NoDirectory { directory: directory.clone() });
    }
    let program = || spec.program.to_string_lossy().into_owned();
    if !is_path(&spec.program) {
        let has_path = spec.environment.iter().any(|(name, _)| name == "PATH");
        return match !has_path || is_installed(&spec.program, &spec.environment) {
            true => Ok(()),
            false => Err(SpawnError::NotFound { program: program() }),
        };
    }
    // Relative to the child's working directory.
    let path = spec.directory.as_deref().unwrap_or(Path::new("")).join(&spec.program);
    match path.metadata() {
        Ok(found) if found.is_file() && found.permissions().mode() & 0o111 != 0 => Ok(()),
        Ok(_) => Err(SpawnError::NotPermitted { program: program() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(SpawnError::NotFound { program: program() }),
        // Starting it will report the error.
        Err(_) => Ok(()),
    }
}

/// Writes the input and closes the pipe. It is not an error if the child does not read it.
async fn feed(stdin: Option<ChildStdin>, input: &[u8]) {
    if let Some(mut stdin) = stdin {
        let _ = stdin.write_all(input).await;
        let _ = stdin.shutdown().await;
    }
}

/// Reads a pipe to its end. A pipe that cannot be read any more has ended.
async fn read(pipe: Option<impl AsyncRead + Unpin>, mut take: impl FnMut(&[u8])) {
    let Some(mut pipe) = pipe else { return };
    let mut buffer = vec![0; READ_BYTES];
    while let Ok(read @ 1..) = pipe.read(&mut buffer).await {
        take(&buffer[..read]);
    }
}

fn ended(status: io::Result<ExitStatus>) -> End {
    use std::os::unix::process::ExitStatusExt;
    match status {
        Ok(status) => status.code().map_or_else(|| End::Signalled(status.signal().unwrap_or_default()), End::Exited),
        // Nobody else waits for our children; if the status is lost nevertheless, it counts as a failure.
        Err(_) => End::Exited(-1),
    }
}

#[cfg(test)]
mod tests;
