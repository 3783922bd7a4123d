//! Measures work independent of what else the machine is doing.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// How often work is measured that seems to take too long: a virtual machine counts the time in which it stood still.
const TRIES: usize = 5;

/// Returns the processor time that this thread spends on `work`.
pub fn of<T>(work: impl FnOnce() -> T) -> Duration {
    let now = || Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("every thread has a clock"));
    let before = now();
    work();
    now() - before
}

/// Asserts that work on four times as many of these pieces takes four times as long, and nowhere near sixteen times.
#[track_caller]
pub fn assert_in_proportion<T>(piece: &str, bytes: usize, work: impl Fn(&str) -> T) {
    let texts = [bytes, 4 * bytes].map(|bytes| piece.repeat(bytes / piece.len()));
    let mut took = [Duration::MAX; 2];
    for _ in 0..TRIES {
        for (took, text) in took.iter_mut().zip(&texts) {
            *took = of(|| work(text)).min(*took);
        }
        if took[1] < 8 * took[0] {
            return;
        }
    }
    panic!("{piece:?}: {took:?}");
}
