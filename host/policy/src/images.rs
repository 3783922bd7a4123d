//! The initial memory images of a component, created once for all its instances.
//!
//! Otherwise the engine would create them with the first instance, in the middle of a decision, and a refusal by the
//! system would look like a failure of the component.

use std::{
    io::{Error, ErrorKind},
    thread,
    time::{Duration, Instant},
};

use wasmtime::component::Component;

/// How long to wait for the system to release pages.
const PATIENCE: Duration = Duration::from_secs(5);
/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(20);

/// Creates the images. The error is the system's.
///
/// Linux refuses to seal a memfd as busy while the kernel itself holds one of its pages, which it does briefly while it
/// migrates memory (`memfd_wait_for_pins`).
pub(crate) fn lay_out(component: &Component) -> wasmtime::Result<()> {
    patiently(PATIENCE, || component.initialize_copy_on_write_image())
}

fn patiently(patience: Duration, mut step: impl FnMut() -> wasmtime::Result<()>) -> wasmtime::Result<()> {
    let begun = Instant::now();
    loop {
        match step() {
            Err(error) if is_busy(&error) && begun.elapsed() < patience => thread::sleep(PAUSE),
            done => return done,
        }
    }
}

fn is_busy(error: &wasmtime::Error) -> bool {
    error.root_cause().downcast_ref::<Error>().is_some_and(|cause| cause.kind() == ErrorKind::ResourceBusy)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error of the engine's memfd library.
    #[derive(Debug, thiserror::Error)]
    #[error("cannot add seals to the memfd")]
    struct NotSealed(#[source] Error);

    /// The system's error as the engine passes it on.
    fn refusal(errno: i32) -> wasmtime::Error {
        wasmtime::Error::from(NotSealed(Error::from_raw_os_error(errno)))
    }

    const EBUSY: i32 = 16;
    const ENOMEM: i32 = 12;

    #[test]
    fn a_memory_that_the_kernel_still_held_was_taken_for_a_trap_of_the_policy() {
        let mut tries = 0;
        let done = patiently(PATIENCE, || {
            tries += 1;
            if tries < 3 { Err(refusal(EBUSY)) } else { Ok(()) }
        });
        assert!(done.is_ok());
        assert_eq!(tries, 3);
    }

    #[test]
    fn what_does_not_pass_is_told() {
        let mut tries = 0;
        let mut refuse = |errno, patience| {
            tries = 0;
            let refused = patiently(patience, || {
                tries += 1;
                Err(refusal(errno))
            });
            (refused.is_err(), tries)
        };
        assert_eq!(refuse(ENOMEM, PATIENCE), (true, 1));
        assert_eq!(refuse(EBUSY, Duration::ZERO), (true, 1));
    }
}
