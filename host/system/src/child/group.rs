//! The process group of a child, which is killed as a whole.

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;

/// Kills the group when dropped.
///
/// The child leads the group, so the group's id cannot be reused while the child is not reaped or any process of the
/// group is alive. After the child was reaped, only a process that starts and creates its own group at that very moment
/// could get the id.
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
            // An error means that there is nothing left to kill.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}
