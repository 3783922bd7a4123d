//! Measures work independent of what else the machine is doing.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// Returns the processor time that this thread spends on `work`.
pub fn of<T>(work: impl FnOnce() -> T) -> Duration {
    let now = || Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("every thread has a clock"));
    let before = now();
    work();
    now() - before
}
