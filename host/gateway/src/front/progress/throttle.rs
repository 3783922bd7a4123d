//! The throttle of one message: the latest line wins, and no update comes sooner than the gap
//! allows.

use std::time::Duration;

/// The line that waits to be shown on one message.
///
/// The first line may be shown at once. A line that arrives before the gap is over waits for it, unless
/// a later one replaces it. A line equal to the one shown is not shown again.
#[derive(Clone, Debug)]
pub struct Throttle {
    gap: Duration,
    shown: Option<(Duration, String)>,
    waiting: Option<String>,
}

impl Throttle {
    pub fn new(gap: Duration) -> Self {
        Throttle { gap, shown: None, waiting: None }
    }

    /// Takes a line in.
    pub fn offer(&mut self, line: impl Into<String>) {
        let line = line.into();
        let is_shown = self.shown.as_ref().is_some_and(|(_, shown)| *shown == line);
        self.waiting = (!is_shown).then_some(line);
    }

    /// Returns when the waiting line may be shown; `None` if none waits.
    pub fn due(&self) -> Option<Duration> {
        self.waiting.as_ref()?;
        Some(self.shown.as_ref().map_or(Duration::ZERO, |(at, _)| at.saturating_add(self.gap)))
    }

    /// Returns the line to show now, which counts as shown from then on; `None` if none is due.
    pub fn take(&mut self, now: Duration) -> Option<String> {
        if self.due()? > now {
            return None;
        }
        let line = self.waiting.take()?;
        self.shown = Some((now, line.clone()));
        Some(line)
    }

    /// Puts back a line that was taken but not shown: it waits again, unless a later one does.
    pub fn put_back(&mut self, line: String) {
        self.shown = None;
        self.waiting.get_or_insert(line);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GAP: Duration = Duration::from_secs(3);

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_last_line_wins() {
        let mut throttle = Throttle::new(GAP);
        assert_eq!(throttle.due(), None);
        throttle.offer("a");
        assert_eq!(throttle.take(at(10)).as_deref(), Some("a"));
        throttle.offer("b");
        throttle.offer("c");
        assert_eq!(throttle.due(), Some(at(13)));
        assert_eq!(throttle.take(at(12)), None);
        assert_eq!(throttle.take(at(13)).as_deref(), Some("c"));
        assert_eq!(throttle.take(at(99)), None);
    }

    #[test]
    fn what_is_shown_already_is_not_shown_again() {
        let mut throttle = Throttle::new(GAP);
        throttle.offer("a");
        throttle.take(at(0));
        throttle.offer("b");
        throttle.offer("a");
        assert_eq!(throttle.due(), None);
    }

    proptest! {
        #[test]
        fn never_faster_than_the_gap_and_always_the_newest(
            steps in prop::collection::vec((0u64..5_000, prop::option::of("[a-c]")), 0..60),
        ) {
            let mut throttle = Throttle::new(GAP);
            let (mut now, mut last, mut newest) = (Duration::ZERO, None, None);
            for (wait_ms, line) in steps {
                now += Duration::from_millis(wait_ms);
                if let Some(line) = line {
                    throttle.offer(line.clone());
                    newest = Some(line);
                }
                if let Some(shown) = throttle.take(now) {
                    prop_assert!(last.is_none_or(|last| now - last >= GAP));
                    prop_assert_eq!(Some(&shown), newest.as_ref());
                    last = Some(now);
                } else {
                    prop_assert!(throttle.due().is_none_or(|due| due > now));
                }
            }
        }
    }
}
