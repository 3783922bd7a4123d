//! Handles the limit on the size of files (`ulimit -f`, `LimitFSIZE=`).

use std::io;

use rustix::process::Signal;
use tokio::{
    runtime,
    signal::unix::{SignalKind, signal},
};

/// Turns exceeding the limit into an error of the write, like a full disk. Otherwise the kernel would end the process
/// by SIGXFSZ, in the middle of whatever it does. The signal gets a handler rather than being ignored: children would
/// inherit that.
///
/// # Errors
/// The handler cannot be installed.
pub(super) fn outlive() -> io::Result<()> {
    let runtime = runtime::Builder::new_current_thread().enable_io().build()?;
    let _in_it = runtime.enter();
    // The handler stays for the life of the process; nobody needs to be notified of the signal.
    drop(signal(SignalKind::from_raw(Signal::XFSZ.as_raw()))?);
    Ok(())
}
