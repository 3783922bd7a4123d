//! What happens when a file meets the limit on its size (`ulimit -f`, `LimitFSIZE=`).

use std::io;

use rustix::process::Signal;
use tokio::{
    runtime,
    signal::unix::{SignalKind, signal},
};

/// Makes it an error of the write, as a full disk is. Without this the kernel ends the process by SIGXFSZ, in the
/// middle of whatever it does. It has a handler and is not ignored: children would inherit that.
///
/// # Errors
/// The handler cannot be installed.
pub(super) fn outlive() -> io::Result<()> {
    let runtime = runtime::Builder::new_current_thread().enable_io().build()?;
    let _in_it = runtime.enter();
    // The handler stays for as long as the process does; nobody needs to be told of the signal.
    drop(signal(SignalKind::from_raw(Signal::XFSZ.as_raw()))?);
    Ok(())
}
