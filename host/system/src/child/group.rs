//! The process group of a child, killed as a whole.

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;

/// Kills the group when it is dropped, on whatever way that happens.
///
/// The child leads the group, so the group's number cannot belong to anybody else while the child is not
/// reaped or anything of the group is alive. Right after the child was reaped the number could be taken
/// only by a process that comes up and opens a group of its own in that very moment.
#[derive(Debug)]
pub(super) struct Group(Option<Pid>);

impl Group {
    /// The group that the child was put into at its start.
    pub fn of(child: &Child) -> Self {
        Group(child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // An error means that nothing is left to kill.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}
