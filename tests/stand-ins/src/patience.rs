//! Waiting for what must come: until it can be seen, and not for a length of time that some machine is too slow for.

use std::{
    thread,
    time::{Duration, Instant},
};

/// Nothing that works takes this long, however slow the machine and whatever else it does.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// How often to look.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Looks until there is something to see.
///
/// # Panics
/// It never comes; `what` is its name.
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

/// The same in a runtime, whose other tasks go on meanwhile.
///
/// # Panics
/// It never comes; `what` is its name.
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

/// Lets so much time pass at once for everything that waits for it in this runtime, which must be of one thread. What
/// is not asleep, such as other processes, does not notice.
pub async fn let_pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}
