//! `stop`: ends the gateway of a home in an orderly way.

use std::{
    thread,
    time::{Duration, Instant},
};

use clap::Args;
use pmk_system::{
    error::Failure,
    home::{Holder, HomeLock},
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::{
    context::Context,
    output::{print, print_json},
};
/// How often it is looked whether it has ended.
const LOOK_EVERY: Duration = Duration::from_millis(50);

#[derive(Debug, Args)]
pub(super) struct StopCommand {
    /// How many seconds to wait for it; running turns have 30 to finish
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    timeout: u64,
}

impl StopCommand {
    pub(super) fn execute(self, context: &Context) -> Result<(), Failure> {
        let Some(Holder { pid, .. }) = HomeLock::holder_of(&context.home)? else {
            return tell(context, None);
        };
        let process = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let signalled = process.ok_or(rustix::io::Errno::SRCH).and_then(|process| kill_process(process, Signal::TERM));
        match signalled {
            // It has just ended by itself.
            Ok(()) | Err(rustix::io::Errno::SRCH) => {}
            Err(error) => {
                return Err(Failure::new(format!("process {pid} cannot be told to end: {error}"))
                    .hint("call as the account that runs it"));
            }
        }
        let deadline = Instant::now() + Duration::from_secs(self.timeout);
        while HomeLock::holder_of(&context.home)?.is_some_and(|holder| holder.pid == pid) {
            if Instant::now() >= deadline {
                return Err(Failure::new(format!(
                    "process {pid} was told to end and still runs after {} s",
                    self.timeout
                ))
                .hint("wait, or look at its log for what it is busy with"));
            }
            thread::sleep(LOOK_EVERY);
        }
        tell(context, Some(pid))
    }
}

fn tell(context: &Context, stopped: Option<u32>) -> Result<(), Failure> {
    if context.json {
        return print_json(&json!({"stopped": stopped.is_some(), "pid": stopped}));
    }
    print(if stopped.is_some() { "stopped\n" } else { "not running\n" })
}
