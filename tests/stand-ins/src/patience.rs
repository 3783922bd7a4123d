//! Waiting for an event until it is observed, rather than for a fixed time that may be too short for a slow machine.

use std::{
    thread,
    time::{Duration, Instant},
};

/// Nothing that works takes this long, however slow or busy the machine is.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// The polling interval.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Polls until `look` returns something.
///
/// # Panics
/// If it never does; `what` is named in the message.
#[track_caller]
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(begun.elapsed() < PATIENCE, "never happened: {what}");
        thread::sleep(LOOK_EVERY);
    }
}

/// As [`until`], for async code: the runtime's other tasks continue in the meantime.
///
/// # Panics
/// If it never does; `what` is named in the message.
pub async fn until_async<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(begun.elapsed() < PATIENCE, "never happened: {what}");
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Advances the time of this runtime, which must have one thread, at once. Anything that is not sleeping in it, such as
/// other processes, is not affected.
pub async fn let_pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}
