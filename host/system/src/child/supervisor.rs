//! Ensures that children do not outlive the gateway, however it ends.
//!
//! A child is started through another process of this program, the supervisor, which waits for the child and for the
//! gateway to end. When the gateway ends, even by SIGKILL, it kills the child and all its descendants. The kernel's
//! parent-death signal would not do: it follows the thread that started a child, and misses what the child has started.
//! As the reaper of all of these, the supervisor also finds those that have left the group.

use std::{
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::process::{CommandExt, ExitStatusExt},
    process::{Command, ExitCode, ExitStatus},
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    process::{
        Pid, PidfdFlags, Signal, getpid, getppid, kill_process, kill_process_group, pidfd_open, set_child_subreaper,
    },
};

/// The first argument of a supervisor.
pub const COMMAND: &str = "supervise-child";

/// This program, even if its file has been replaced in the meantime.
const THIS_PROGRAM: &str = "/proc/self/exe";

/// How often to check whether the gateway is alive, where the kernel cannot report its end.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The maximum number of searches for descendants, and the pause between them: a descendant may just be starting
/// another, and a killed one takes a moment to disappear.
const MOST_SWEEPS: u32 = 1_000;
const BETWEEN_SWEEPS: Duration = Duration::from_millis(5);

static ON: OnceLock<()> = OnceLock::new();

/// Set before killing because the gateway has ended.
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// From now on, this process starts children through a supervisor. Only for a program whose `main` calls [`main`]
/// first.
pub fn enable() {
    // Other systems have no /proc; there, a child that is left over stays.
    if cfg!(target_os = "linux") {
        ON.get_or_init(|| ());
    }
}

/// The command that starts a program, through a supervisor if enabled.
pub fn command(program: &OsStr) -> Command {
    if ON.get().is_none() {
        return Command::new(program);
    }
    let mut command = Command::new(THIS_PROGRAM);
    command.arg0("pmk-host").arg(COMMAND).arg(getpid().as_raw_nonzero().to_string()).arg(program);
    command
}

/// Acts as a supervisor if these are the arguments of one: [`COMMAND`], the gateway's process id, and a command line.
/// Must be called in `main` before there are other threads.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1);
    if arguments.next().as_deref() != Some(OsStr::new(COMMAND)) {
        return None;
    }
    let gateway = arguments.next().and_then(|text| Pid::from_raw(text.to_str()?.parse().ok()?));
    let (Some(gateway), Some(program)) = (gateway, arguments.next()) else {
        eprintln!("error: `{COMMAND}` is how this program calls itself");
        return Some(ExitCode::from(2));
    };
    Some(supervise(gateway, Command::new(&program).args(arguments)).unwrap_or_else(|error| {
        eprintln!("`{}` could not be started: {error}", program.to_string_lossy());
        ExitCode::from(127)
    }))
}

fn supervise(gateway: Pid, command: &mut Command) -> io::Result<ExitCode> {
    // If this fails, descendants that leave the group are not found; everything else still works.
    _ = set_child_subreaper(Some(getpid()));
    thread::Builder::new().name("gateway-watch".into()).spawn(move || {
        wait_for_end(gateway);
        IS_ENDING.store(true, Ordering::SeqCst);
        end_descendants();
        _ = kill_process_group(getpid(), Signal::KILL);
    })?;
    let status = command.spawn()?.wait()?;
    // The gateway would do so, but it may be ending at this very moment.
    end_descendants();
    if IS_ENDING.load(Ordering::SeqCst) {
        // The group is killed, including this process.
        loop {
            thread::park();
        }
    }
    Ok(end_as(status))
}

/// Waits until the gateway has ended.
fn wait_for_end(gateway: Pid) {
    if let Ok(process) = pidfd_open(gateway, PidfdFlags::empty())
        // Otherwise the id may have been reused.
        && getppid() == Some(gateway)
    {
        let mut ends = [PollFd::new(&process, PollFlags::IN)];
        while poll(&mut ends, None) == Err(rustix::io::Errno::INTR) {}
        return;
    }
    while getppid() == Some(gateway) {
        thread::sleep(LOOK_EVERY);
    }
}

/// Kills all descendants of the child.
fn end_descendants() {
    for _ in 0..MOST_SWEEPS {
        let descendants = descendants(getpid());
        if descendants.is_empty() {
            return;
        }
        for process in descendants {
            _ = kill_process(process, Signal::KILL);
        }
        thread::sleep(BETWEEN_SWEEPS);
    }
}

/// The living descendants of a process.
fn descendants(of: Pid) -> Vec<Pid> {
    let parents: Vec<(Pid, Pid)> = fs::read_dir("/proc").into_iter().flatten().filter_map(parent).collect();
    let mut found = vec![of];
    let mut at = 0;
    while at < found.len() {
        let parent = found[at];
        let children = parents.iter().filter(|(_, its)| *its == parent).map(|(process, _)| *process);
        found.extend(children.collect::<Vec<_>>());
        at += 1;
    }
    found.split_off(1)
}

/// The process of a /proc entry and its parent; `None` if it is not a living process.
fn parent(entry: io::Result<fs::DirEntry>) -> Option<(Pid, Pid)> {
    let entry = entry.ok()?;
    let process = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
    let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
    // The program's name is in brackets and may itself contain brackets.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    let parent = Pid::from_raw(fields.next()?.parse().ok()?)?;
    (state != "Z").then_some((process, parent))
}

/// Ends in the same way as the child did.
fn end_as(status: ExitStatus) -> ExitCode {
    if let Some(signal) = status.signal().and_then(Signal::from_named_raw) {
        _ = kill_process(getpid(), signal);
        // The signal may not take effect immediately; nothing else happens in the meantime.
        thread::sleep(LOOK_EVERY);
    }
    ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}
