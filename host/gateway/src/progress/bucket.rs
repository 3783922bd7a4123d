//! All messages together: so many updates in any minute, answers first.

use std::{collections::VecDeque, time::Duration};

/// How many updates were made in the last minute, and whether progress may make one more.
///
/// An answer is never held back here, but it counts: progress gets what answers left over. After the
/// server said "too many", progress waits as long as it asked for.
#[derive(Clone, Debug)]
pub struct Bucket {
    limit: usize,
    window: Duration,
    /// When the newest updates were made, oldest first; never more than `limit`, since older ones cannot
    /// matter.
    made: VecDeque<Duration>,
    held_until: Duration,
}

impl Bucket {
    /// At most `limit` updates in any `window`.
    pub fn new(limit: usize, window: Duration) -> Self {
        Bucket { limit, window, made: VecDeque::with_capacity(limit), held_until: Duration::ZERO }
    }

    /// An answer was delivered by an update.
    pub fn answered(&mut self, now: Duration) {
        self.count(now);
    }

    /// The server refuses updates for so long.
    pub fn hold(&mut self, now: Duration, wait: Duration) {
        self.held_until = self.held_until.max(now.saturating_add(wait));
    }

    /// Takes one update for progress.
    ///
    /// # Errors
    /// None is left; the moment at which it is worth asking again.
    pub fn take(&mut self, now: Duration) -> Result<(), Duration> {
        if now < self.held_until {
            return Err(self.held_until);
        }
        if self.made.len() >= self.limit {
            // With a limit of nothing there is no oldest, and no progress ever.
            let free = self.made.front().map_or(Duration::MAX, |oldest| oldest.saturating_add(self.window));
            if now < free {
                return Err(free);
            }
        }
        self.count(now);
        Ok(())
    }

    fn count(&mut self, now: Duration) {
        if self.made.len() >= self.limit {
            self.made.pop_front();
        }
        if self.limit > 0 {
            self.made.push_back(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn answers_use_up_what_progress_may() {
        let mut bucket = Bucket::new(3, MINUTE);
        assert_eq!(bucket.take(at(0)), Ok(()));
        bucket.answered(at(1));
        bucket.answered(at(2));
        assert_eq!(bucket.take(at(3)), Err(at(60)));
        assert_eq!(bucket.take(at(60)), Ok(()));
        assert_eq!(bucket.take(at(60)), Err(at(61)));
    }

    #[test]
    fn more_answers_than_the_limit_leave_nothing_for_a_minute() {
        let mut bucket = Bucket::new(2, MINUTE);
        for second in 0..5 {
            bucket.answered(at(second));
        }
        assert_eq!(bucket.take(at(10)), Err(at(63)));
    }

    #[test]
    fn a_refusal_of_the_server_is_obeyed() {
        let mut bucket = Bucket::new(2, MINUTE);
        bucket.hold(at(5), at(30));
        bucket.hold(at(6), at(1));
        assert_eq!(bucket.take(at(7)), Err(at(35)));
        assert_eq!(bucket.take(at(35)), Ok(()));
    }

    #[test]
    fn without_a_limit_there_is_no_progress() {
        let mut bucket = Bucket::new(0, MINUTE);
        bucket.answered(at(0));
        assert_eq!(bucket.take(at(1)), Err(Duration::MAX));
    }

    proptest! {
        #[test]
        fn progress_never_gets_more_than_answers_left(
            limit in 0usize..8,
            steps in prop::collection::vec((0u64..20, any::<bool>()), 0..80),
        ) {
            let mut bucket = Bucket::new(limit, MINUTE);
            let (mut now, mut made) = (Duration::ZERO, Vec::new());
            for (wait, is_answer) in steps {
                now += at(wait);
                let recent = made.iter().filter(|&&then| now < then + MINUTE).count();
                if is_answer {
                    bucket.answered(now);
                    made.push(now);
                    continue;
                }
                match bucket.take(now) {
                    Ok(()) => {
                        prop_assert!(recent < limit);
                        made.push(now);
                    }
                    Err(again) => prop_assert!(recent >= limit && again > now),
                }
            }
        }
    }
}
