//! Counts what could not be stored. If the database or disk is unavailable, everything fails in the same way; so only
//! the first failure is logged and, once something can be stored again, their number. If that takes so long that Slack
//! may have given up sending what was refused, messages may be missing. A heartbeat proves less than that: it may be
//! stored where a message cannot.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use pmk_system::error::Failure;
use tokio::time::Instant;

/// The failures since something was last stored.
#[derive(Debug)]
pub(super) struct Unstored {
    /// How long after its first attempt Slack may have given up.
    given_up: Duration,
    failures: Mutex<Option<Failures>>,
}

#[derive(Debug)]
struct Failures {
    count: u64,
    /// When the first message and the last one were refused.
    messages: Option<(Instant, Instant)>,
}

impl Unstored {
    pub(super) fn new(given_up: Duration) -> Unstored {
        Unstored { given_up, failures: Mutex::default() }
    }

    /// Notes a failure; `tell` logs it if it is the first.
    pub(super) fn failed(&self, error: &Failure, tell: impl FnOnce(&str)) {
        let mut failures = self.failures();
        match &mut *failures {
            None => {
                *failures = Some(Failures { count: 1, messages: None });
                tell(error.message());
            }
            Some(failures) => {
                failures.count += 1;
                tracing::debug!(error = error.message(), "this could not be stored either");
            }
        }
    }

    /// Notes that what failed was a message.
    pub(super) fn message_failed(&self) {
        if let Some(Failures { messages, .. }) = &mut *self.failures() {
            let now = Instant::now();
            *messages = Some((messages.map_or(now, |(first, _)| first), now));
        }
    }

    /// Notes that a message was stored; what stores nothing may succeed meanwhile. Returns how long ago the first message
    /// was refused, if messages may be missing: only if they were refused for as long as Slack sends them again.
    pub(super) fn stored(&self) -> Option<Duration> {
        // Nearly always, there were none.
        let Failures { count, messages } = self.failures().take()?;
        if count > 1 {
            tracing::warn!("{count} deliveries from Slack could not be stored; new ones can be stored again");
        }
        let (first, last) = messages?;
        (last.duration_since(first) >= self.given_up).then(|| first.elapsed())
    }

    fn failures(&self) -> MutexGuard<'_, Option<Failures>> {
        // Each of its methods leaves it consistent.
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: what Slack had given up sending by then was only counted.
    #[tokio::test(start_paused = true)]
    async fn what_was_refused_for_long_was_only_counted() {
        let unstored = Unstored::new(Duration::from_secs(240));
        let fails = || {
            unstored.failed(&Failure::new("the disk is full"), |_| {});
            unstored.message_failed();
        };
        assert_eq!(unstored.stored(), None, "nothing had failed");
        for (lasts_s, missing) in [(239, None), (240, Some(Duration::from_secs(240)))] {
            fails();
            tokio::time::advance(Duration::from_secs(lasts_s)).await;
            fails();
            assert_eq!((unstored.stored(), unstored.stored()), (missing, None), "once, since the first one");
        }
    }

    /// Slack sends a message again for minutes, and what else was refused is no message.
    #[tokio::test(start_paused = true)]
    async fn what_was_refused_for_a_moment_is_not_missing_hours_later() {
        let unstored = Unstored::new(Duration::from_secs(240));
        for is_message in [false, true] {
            unstored.failed(&Failure::new("the database is away"), |_| {});
            if is_message {
                unstored.message_failed();
            }
            tokio::time::advance(Duration::from_secs(36_000)).await;
            assert_eq!(unstored.stored(), None, "{is_message}");
        }
    }
}
