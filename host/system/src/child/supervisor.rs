//! Who sees to it that children do not outlive the gateway, whatever ends it.
//!
//! A child is started by this program once more, which waits for two ends: the child's, and the gateway's. When the gateway
//! is gone, also by SIGKILL, it kills everything that came of the child. The kernel's own parent-death signal would not do:
//! it follows the thread that started a child, and misses what the child has started. As the reaper of all of these, the
//! supervisor finds those, too, that have left the group.

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

/// This program, also where its file was replaced in the meantime.
const THIS_PROGRAM: &str = "/proc/self/exe";

/// How often is looked whether the gateway is there, where the kernel cannot tell.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// As often as descendants are looked for, and how long each time: one may just be starting another, and one that was
/// killed takes a moment to be gone.
const MOST_SWEEPS: u32 = 1_000;
const BETWEEN_SWEEPS: Duration = Duration::from_millis(5);

static ON: OnceLock<()> = OnceLock::new();

/// Set before anything is killed because the gateway is gone.
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// From now on this process starts children by a supervisor. Only for a program whose `main` asks [`main`] first.
pub fn enable() {
    // Elsewhere there is no /proc, and a child that is left over is left over.
    if cfg!(target_os = "linux") {
        ON.get_or_init(|| ());
    }
}

/// The command that starts a program, by a supervisor where there are such.
pub fn command(program: &OsStr) -> Command {
    if ON.get().is_none() {
        return Command::new(program);
    }
    let mut command = Command::new(THIS_PROGRAM);
    command.arg0("pmk-host").arg(COMMAND).arg(getpid().as_raw_nonzero().to_string()).arg(program);
    command
}

/// Does the work of a supervisor if these are the arguments of one: [`COMMAND`], the number of the gateway's process, and a
/// command line. To be called in `main` before there are other threads.
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
    // Without it, what leaves the group is not found; everything else holds.
    _ = set_child_subreaper(Some(getpid()));
    thread::Builder::new().name("gateway-watch".into()).spawn(move || {
        wait_for_end(gateway);
        IS_ENDING.store(true, Ordering::SeqCst);
        end_descendants();
        _ = kill_process_group(getpid(), Signal::KILL);
    })?;
    let status = command.spawn()?.wait()?;
    // The gateway would do so, but it may be gone this very moment.
    end_descendants();
    if IS_ENDING.load(Ordering::SeqCst) {
        // The group is killed, and this process with it.
        loop {
            thread::park();
        }
    }
    Ok(end_as(status))
}

/// Waits until the gateway is gone.
fn wait_for_end(gateway: Pid) {
    if let Ok(process) = pidfd_open(gateway, PidfdFlags::empty())
        // Else the number may be somebody else's by now.
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

/// Kills everything that came of the child.
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

/// The living processes that descend from this one.
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

/// A process and its parent, of an entry of /proc that is a living one's.
fn parent(entry: io::Result<fs::DirEntry>) -> Option<(Pid, Pid)> {
    let entry = entry.ok()?;
    let process = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
    let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
    // The name of the program stands in brackets, and may hold any of them.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    let parent = Pid::from_raw(fields.next()?.parse().ok()?)?;
    (state != "Z").then_some((process, parent))
}

/// Ends as the child did.
fn end_as(status: ExitStatus) -> ExitCode {
    if let Some(signal) = status.signal().and_then(Signal::from_named_raw) {
        _ = kill_process(getpid(), signal);
        // It is one that is not taken at once; nobody waits for another end.
        thread::sleep(LOOK_EVERY);
    }
    ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}
