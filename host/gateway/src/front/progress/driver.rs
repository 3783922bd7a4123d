//! Drives the state machine with the real clock.

use std::{future::Future, time::Duration};

use tokio::{
    sync::mpsc,
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::Throttle;

/// The shortest time between two updates of one message, by default (specification 003 §6).
pub const MIN_GAP: Duration = Duration::from_secs(3);

/// The limits of progress.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The shortest time between two updates of one message.
    pub min_gap: Duration,
    /// How long an answer waits for an update in progress.
    pub max_settle: Duration,
}

impl Default for Settings {
    /// Returns [`MIN_GAP`] and 2 s.
    fn default() -> Self {
        Settings { min_gap: MIN_GAP, max_settle: Duration::from_secs(2) }
    }
}

/// The least pause after a rate limit.
const LEAST_HOLD: Duration = Duration::from_millis(250);

/// The result of one update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    Shown,
    /// The server accepts no updates for this long.
    RateLimited {
        retry_after: Duration,
    },
    /// It was not shown, which does not matter.
    Failed,
}

impl Settings {
    /// Starts showing progress on one message; `show` makes one update of it.
    pub fn begin<F, S>(self, show: S) -> Progress
    where
        S: FnMut(String) -> F + Send + 'static,
        F: Future<Output = Sent> + Send + 'static,
    {
        let (lines, received) = mpsc::unbounded_channel();
        let done = CancellationToken::new();
        let driver =
            Driver { epoch: Instant::now(), throttle: Throttle::new(self.min_gap), held_until: Duration::ZERO };
        let task = tokio::spawn(driver.drive(received, show, done.clone()));
        Progress { lines, done, task: Some(task), max_settle: self.max_settle }
    }
}

/// The progress on one message.
struct Driver {
    epoch: Instant,
    throttle: Throttle,
    /// Until when the server accepts no updates.
    held_until: Duration,
}

impl Driver {
    async fn drive<F, S>(mut self, mut lines: mpsc::UnboundedReceiver<String>, mut show: S, done: CancellationToken)
    where
        S: FnMut(String) -> F + Send,
        F: Future<Output = Sent> + Send + 'static,
    {
        // The first line says what is being done. It is shown before any result, however quick, and even if the
        // work is already finished.
        let opening = tokio::select! {
            biased;
            line = lines.recv() => line,
            () = done.cancelled() => None,
        };
        let Some(opening) = opening else { return };
        self.throttle.offer(opening);
        loop {
            let due = self.show_due(&mut show).await;
            let wait = due.map_or(Duration::MAX, |due| due.saturating_sub(self.epoch.elapsed()));
            tokio::select! {
                biased;
                () = done.cancelled() => return,
                line = lines.recv() => match line {
                    Some(line) => self.throttle.offer(line),
                    None => return,
                },
                () = sleep(wait), if due.is_some() => {}
            }
            // Only the newest of the received lines counts.
            while let Ok(line) = lines.try_recv() {
                self.throttle.offer(line);
            }
        }
    }

    /// Shows the waiting line if that is allowed now; returns when to look again if one waits.
    async fn show_due<F, S>(&mut self, show: &mut S) -> Option<Duration>
    where
        S: FnMut(String) -> F + Send,
        F: Future<Output = Sent> + Send + 'static,
    {
        let due = self.throttle.due()?.max(self.held_until);
        let now = self.epoch.elapsed();
        if due > now {
            return Some(due);
        }
        if let Some(line) = self.throttle.take(now)
            && let Sent::RateLimited { retry_after } = show(line.clone()).await
        {
            self.held_until = self.epoch.elapsed() + retry_after.max(LEAST_HOLD);
            self.throttle.put_back(line);
        }
        self.throttle.due().map(|due| due.max(self.held_until))
    }
}

/// The progress on one message. Dropping it ends it at once, even during an update.
#[derive(Debug)]
pub struct Progress {
    lines: mpsc::UnboundedSender<String>,
    done: CancellationToken,
    task: Option<JoinHandle<()>>,
    max_settle: Duration,
}

impl Progress {
    /// Shows a line: the first at once, a later one possibly later or never.
    pub fn line(&self, line: impl Into<String>) {
        // Nothing receives it once the progress is finished.
        let _ = self.lines.send(line.into());
    }

    /// Ends the progress; to be called before the answer is delivered. Afterwards no update starts, and an
    /// update in progress (always including the first line's) has completed, so that it cannot overwrite the
    /// answer. An update is aborted after [`Settings::max_settle`].
    pub async fn finish(mut self) {
        self.done.cancel();
        if let Some(mut task) = self.task.take()
            && timeout(self.max_settle, &mut task).await.is_err()
        {
            task.abort();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    //! In virtual time: the clock stands still while any task is busy, and then jumps to the next timer.

    use std::sync::{Arc, Mutex};

    use super::*;

    const GAP: Duration = Duration::from_secs(3);

    fn settings() -> Settings {
        Settings { min_gap: GAP, ..Settings::default() }
    }

    type Shown = Arc<Mutex<Vec<(Duration, String)>>>;

    /// Returns progress whose updates take this long, and what was shown when, relative to now.
    fn progress(settings: Settings, takes: Duration) -> (Progress, Shown) {
        let shown = Shown::default();
        let seen = Arc::clone(&shown);
        let start = Instant::now();
        let progress = settings.begin(move |line| {
            let seen = Arc::clone(&seen);
            let begun = start.elapsed();
            async move {
                sleep(takes).await;
                seen.lock().expect("not poisoned").push((begun, line));
                Sent::Shown
            }
        });
        (progress, shown)
    }

    fn lines(shown: &Shown) -> Vec<String> {
        shown.lock().expect("not poisoned").iter().map(|(_, line)| line.clone()).collect()
    }

    /// Lets everything that is due within this time happen.
    async fn pass(time: Duration) {
        sleep(time).await;
    }

    #[tokio::test(start_paused = true)]
    async fn the_opening_line_is_shown_before_what_follows_at_once() {
        let (progress, shown) = progress(settings(), Duration::ZERO);
        progress.line("Looking into erp…");
        progress.line("in app/models/sales.rb");
        pass(GAP / 2).await;
        assert_eq!(lines(&shown), ["Looking into erp…"]);
        pass(GAP).await;
        assert_eq!(lines(&shown), ["Looking into erp…", "in app/models/sales.rb"]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_opening_line_is_shown_even_if_all_is_over_at_once() {
        let (progress, shown) = progress(settings(), Duration::from_millis(200));
        progress.line("Looking into erp…");
        progress.line("in app/models/sales.rb");
        progress.finish().await;
        assert_eq!(lines(&shown), ["Looking into erp…"]);
        pass(GAP * 2).await;
        assert_eq!(lines(&shown).len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_line_there_is_nothing_to_wait_for() {
        let (progress, shown) = progress(settings(), Duration::ZERO);
        let before = Instant::now();
        progress.finish().await;
        assert_eq!((before.elapsed(), lines(&shown).len()), (Duration::ZERO, 0));
    }

    /// Specification 003 §6: three seconds by default.
    #[tokio::test(start_paused = true)]
    async fn the_last_of_many_lines_is_shown_after_three_seconds() {
        let (progress, shown) = progress(Settings::default(), Duration::ZERO);
        progress.line("first");
        pass(Duration::from_millis(10)).await;
        for count in 0..1000 {
            progress.line(format!("line {count}"));
        }
        pass(Duration::from_secs(60)).await;
        progress.finish().await;
        let second = (Duration::from_secs(3), "line 999".to_owned());
        assert_eq!(*shown.lock().expect("not poisoned"), [(Duration::ZERO, "first".to_owned()), second]);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_shown_once_it_is_finished() {
        let (progress, shown) = progress(settings(), Duration::ZERO);
        progress.line("first");
        pass(GAP / 2).await;
        progress.line("late");
        progress.finish().await;
        pass(GAP * 2).await;
        assert_eq!(lines(&shown), ["first"]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_update_on_its_way_arrives_before_the_answer() {
        let (progress, shown) = progress(settings(), Duration::from_millis(200));
        progress.line("slow");
        pass(Duration::from_millis(50)).await;
        progress.finish().await;
        assert_eq!(lines(&shown), ["slow"]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_update_that_stalls_does_not_hold_the_answer() {
        let (progress, shown) = progress(settings(), Duration::from_secs(600));
        progress.line("stalls");
        pass(Duration::from_millis(50)).await;
        let before = Instant::now();
        progress.finish().await;
        assert_eq!(before.elapsed(), settings().max_settle);
        pass(Duration::from_secs(1_000)).await;
        assert_eq!(lines(&shown), [] as [&str; 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn after_too_many_requests_the_newest_line_waits() {
        let refused = Duration::from_secs(7);
        let shown = Shown::default();
        let (seen, start) = (Arc::clone(&shown), Instant::now());
        let progress = settings().begin(move |line| {
            let seen = Arc::clone(&seen);
            async move {
                if start.elapsed() < refused {
                    return Sent::RateLimited { retry_after: refused - start.elapsed() };
                }
                seen.lock().expect("not poisoned").push((start.elapsed(), line));
                Sent::Shown
            }
        });
        progress.line("first");
        pass(GAP).await;
        assert!(lines(&shown).is_empty());
        progress.line("second");
        pass(refused).await;
        progress.finish().await;
        assert_eq!(*shown.lock().expect("not poisoned"), [(refused, "second".to_owned())]);
    }
}
