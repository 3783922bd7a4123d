//! The only place that reads the clock.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use jiff::{SignedDuration, Timestamp};
use rustix::time::{ClockId, clock_gettime};

/// The current time: this machine's, or that of a test or a replay.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> i64 + Send + Sync>);

impl Clock {
    /// The machine's clock.
    pub fn system() -> Clock {
        Clock(Arc::new(now_ms))
    }

    /// A clock that returns the result of `now_ms`, in milliseconds since the epoch.
    pub fn of(now_ms: impl Fn() -> i64 + Send + Sync + 'static) -> Clock {
        Clock(Arc::new(now_ms))
    }

    /// Milliseconds since the epoch.
    pub fn now_ms(&self) -> i64 {
        (self.0)()
    }
}

impl Default for Clock {
    fn default() -> Self {
        Clock::system()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clock").field(&self.now_ms()).finish()
    }
}

/// Milliseconds since the epoch.
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// How far this machine's clock is ahead of the sender of this `Date` header, to the second.
pub fn ahead_of(date: &str) -> Option<SignedDuration> {
    let theirs = jiff::fmt::rfc2822::parse(date).ok()?.timestamp();
    Some(SignedDuration::from_millis(now_ms()) - SignedDuration::from_secs(theirs.as_second()))
}

/// Formats a time for people, in UTC.
pub fn time(at_ms: i64) -> String {
    Timestamp::from_millisecond(at_ms).map_or_else(|_| "?".into(), |at| at.strftime("%Y-%m-%d %H:%M:%SZ").to_string())
}

/// How long the machine has been up, including the time that it slept. Unlike the clock, it cannot be set.
pub fn since_boot() -> Duration {
    #[cfg(target_os = "linux")]
    const UP: ClockId = ClockId::Boottime;
    // On other systems, this clock continues while the machine sleeps, or none does.
    #[cfg(not(target_os = "linux"))]
    const UP: ClockId = ClockId::Monotonic;
    read(UP)
}

/// How long processors have worked for the current thread. What it waits for on a busy machine is not counted.
pub fn of_thread() -> Duration {
    read(ClockId::ThreadCPUTime)
}

fn read(clock: ClockId) -> Duration {
    let now = clock_gettime(clock);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}
