//! `stop`: stops the gateway of a home gracefully.

use std::{
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use clap::Args;
use pmk_system::{
    error::Failure,
    home::{Holder, HomeLock},
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};
use serde_json::json;

use super::{
    arguments::number,
    context::Context,
    output::{print, print_json},
};
use crate::stderr::Spinner;

#[derive(Debug, Args)]
pub(super) struct StopCommand {
    /// How many seconds to wait; running turns have 30 to finish
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = number::<u64>)]
    timeout: u64,
}

impl StopCommand {
    pub(super) fn execute(self, context: &Context) -> Result<(), Failure> {
        let Some(Holder { pid, .. }) = HomeLock::holder_of(&context.home)? else {
            return tell(context, None);
        };
        let process = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH);
        // Held open by a descriptor: by the time it is signalled, its process id may belong to another process.
        let signalled = process.and_then(|process| pidfd_open(process, PidfdFlags::empty())).and_then(|process| {
            pidfd_send_signal(&process, Signal::TERM)?;
            Ok(process)
        });
        let process = match signalled {
            Ok(process) => process,
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
            .hint("wait, or check its log to see what it is doing"));
        }
        tell(context, Some(pid))
    }
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
