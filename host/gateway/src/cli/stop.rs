//! `stop`: stops the gateway of a home gracefully.

use std::{
    fs,
    os::fd::OwnedFd,
    path::Path,
    time::{Duration, Instant},
};

use clap::Args;
use pmk_system::{
    error::Failure,
    home::{HomeError, HomeLock},
    service,
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};
use serde_json::json;

use super::{
    arguments::between,
    context::{Context, block_on},
    output::{print, print_json},
};
use crate::{control, presence::state::State, stderr::Spinner};

/// The longest wait, in seconds: a day. The time of the end must be one that a clock can show.
const MOST_SECONDS: u64 = 86_400;

#[derive(Debug, Args)]
pub(super) struct StopCommand {
    /// How many seconds to wait; running turns have 30 to finish
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = between::<u64>(0, MOST_SECONDS))]
    timeout: u64,
}

impl StopCommand {
    pub(super) fn execute(self, context: &Context) -> Result<(), Failure> {
        let Some(holder) = HomeLock::holder_of(&context.home)? else { return tell(context, None) };
        let pid = holder.pid;
        if !holder.is_gateway() {
            return Err(HomeError::InUse { home: context.home.clone(), holder: Some(holder) }.into());
        }
        let process = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH);
        // Held open by a descriptor: by the time it is signalled, its process id may belong to another process.
        let found = process.and_then(|process| pidfd_open(process, PidfdFlags::empty()));
        let signalled = match found {
            Ok(process) if is_its_gateway(&context.home, pid)? => {
                pidfd_send_signal(&process, Signal::TERM).map(|()| process)
            }
            Ok(_) => Err(Errno::SRCH),
            Err(error) => Err(error),
        };
        let process = match signalled {
            Ok(process) => process,
            Err(Errno::SRCH) if HomeLock::is_held(&context.home)? => {
                return Err(Failure::new(format!(
                    "the gateway (pid {pid}) runs in another container, on another machine or under another account"
                ))
                .hint("stop it there, as the account that runs it"));
            }
            // It has just ended by itself.
            Err(Errno::SRCH) => return tell(context, Some(pid)),
            Err(error) => {
                return Err(Failure::new(format!("cannot stop process {pid}: {error}"))
                    .hint("run this as the account that runs the gateway"));
            }
        };
        let waiting = Spinner::when_long("waiting for it to finish its answers");
        let ends = ends_within(&process, Duration::from_secs(self.timeout));
        drop(waiting);
        if !ends {
            return Err(Failure::new(format!(
                "process {pid} was told to stop but is still running after {} s",
                self.timeout
            ))
            .hint(what_to_do(pid, unit_of(&context.home, pid).as_deref())));
        }
        tell(context, Some(pid))
    }
}

/// Whether the process of this number is the gateway of this home: the number may be counted by another container or
/// machine, and be that of somebody else here. Either it has the lock file open, where this account may see that, or it
/// listens at the control socket.
pub(super) fn is_its_gateway(home: &Path, pid: u32) -> Result<bool, Failure> {
    Ok(HomeLock::is_open_in(home, pid) || block_on(async { Ok(control::listener(home).await) })? == Some(pid))
}

/// Whether the gateway of this home, which is this process, is started again by a service manager.
pub(super) fn is_supervised(home: &Path, pid: u32) -> bool {
    // Only a terminal's or a service's variables tell; a job of cron, for example, is in a unit as well.
    State::read(home).is_some_and(|state| state.pid == pid && state.supervised)
}

/// The unit of the system's manager that runs the gateway of this home, which is this process.
fn unit_of(home: &Path, pid: u32) -> Option<String> {
    is_supervised(home, pid).then(|| service::unit_of(pid)).flatten()
}

/// What to do about a process that has not ended in time, and about the unit that would start it again.
fn what_to_do(pid: u32, unit: Option<&str>) -> String {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The state follows the name, which may contain anything.
    let state = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start());
    if state.is_some_and(|state| state.starts_with(['T', 't'])) {
        return format!("it is suspended: `kill -CONT {pid}` lets it go on, and then it ends");
    }
    let command = match unit {
        // Killed by other means, it would be started again.
        Some(unit) => format!("`systemctl stop {unit}`"),
        None => format!("`kill -9 {pid}`"),
    };
    format!(
        "wait, or see in its log what it is doing; {command} ends it at once, and what it has accepted is answered after the next start"
    )
}

/// Waits for the end of a process, and so for the release of its lock.
fn ends_within(process: &OwnedFd, time: Duration) -> bool {
    let deadline = Instant::now() + time;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 });
        match poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&left)) {
            Err(Errno::INTR) => {}
            woken => return woken.is_ok_and(|ended| ended > 0),
        }
    }
}

fn tell(context: &Context, stopped: Option<u32>) -> Result<(), Failure> {
    if context.json {
        return print_json(&json!({"stopped": stopped.is_some(), "pid": stopped}));
    }
    let told = context.translated(if stopped.is_some() { "stopped" } else { "not running" });
    print(&format!("{told}\n"))
}

#[cfg(test)]
mod tests {
    use super::what_to_do;

    /// Regression: killed by its number, a service was back five seconds later; and told to end at once, it was, too.
    #[test]
    fn a_service_that_was_ended_at_once_was_started_again() {
        let pid = std::process::id();
        assert!(what_to_do(pid, None).contains(&format!("`kill -9 {pid}` ends it")));
        assert!(what_to_do(pid, Some("pmk-host")).contains("`systemctl stop pmk-host` ends it"));
        // With this code, a second signal ends it.
        let unit = include_str!("../../../../packaging/pmk-host.service");
        assert!(unit.lines().any(|line| line == "SuccessExitStatus=130"), "{unit}");
    }
}
