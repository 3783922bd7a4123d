//! Drives the state machines with the real clock.

use std::{
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::mpsc,
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{Bucket, Throttle};

/// The shortest time between two updates of one message, unless the operator wants another (specification 003 §6).
pub const MIN_GAP: Duration = Duration::from_secs(3);

/// The limits of progress.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The shortest time between two updates of one message.
    pub min_gap: Duration,
    /// The most updates in any [`window`](Self::window), answers included.
    pub max_updates: usize,
    pub window: Duration,
    /// How long an answer waits for an update that is on its way.
    pub max_settle: Duration,
}

impl Default for Settings {
    /// [`MIN_GAP`], 40 a minute (below the 50 of Slack's tier 3), 2 s.
    fn default() -> Self {
        Settings {
            min_gap: MIN_GAP,
            max_updates: 40,
            window: Duration::from_secs(60),
            max_settle: Duration::from_secs(2),
        }
    }
}

/// What became of one update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    Shown,
    /// The server wants no updates for so long.
    RateLimited {
        retry_after: Duration,
    },
    /// It was not shown, and that does not matter.
    Failed,
}

/// The updates of all messages; one for the whole process, shared by cloning.
#[derive(Clone, Debug)]
pub struct Updates {
    settings: Settings,
    epoch: Instant,
    bucket: Arc<Mutex<Bucket>>,
}

impl Updates {
    pub fn new(settings: Settings) -> Self {
        let bucket = Bucket::new(settings.max_updates, settings.window);
        Updates { settings, epoch: Instant::now(), bucket: Arc::new(Mutex::new(bucket)) }
    }

    /// An answer was delivered by an update, which leaves one less for progress.
    pub fn answered(&self) {
        self.lock().answered(self.now());
    }

    /// The server refused an update, an answer's too.
    pub fn rate_limited(&self, retry_after: Duration) {
        self.lock().hold(self.now(), retry_after);
    }

    /// Starts showing progress on one message; `show` makes one update of it.
    pub fn progress<F, S>(&self, show: S) -> Progress
    where
        S: FnMut(String) -> F + Send + 'static,
        F: Future<Output = Sent> + Send + 'static,
    {
        let (lines, received) = mpsc::unbounded_channel();
        let done = CancellationToken::new();
        let task = tokio::spawn(self.clone().drive(received, show, done.clone()));
        Progress { lines, done, task: Some(task), max_settle: self.settings.max_settle }
    }

    async fn drive<F, S>(self, mut lines: mpsc::UnboundedReceiver<String>, mut show: S, done: CancellationToken)
    where
        S: FnMut(String) -> F + Send,
        F: Future<Output = Sent> + Send + 'static,
    {
        let mut throttle = Throttle::new(self.settings.min_gap);
        // The first line says what is being done. It is shown before anything that came of it, however quickly, and
        // even when it is all over by now.
        let opening = tokio::select! {
            biased;
            line = lines.recv() => line,
            () = done.cancelled() => None,
        };
        let Some(opening) = opening else { return };
        throttle.offer(opening);
        loop {
            let due = self.show_due(&mut throttle, &mut show).await;
            let wait = due.map_or(Duration::MAX, |due| due.saturating_sub(self.now()));
            tokio::select! {
                biased;
                () = done.cancelled() => return,
                line = lines.recv() => match line {
                    Some(line) => throttle.offer(line),
                    None => return,
                },
                () = sleep(wait), if due.is_some() => {}
            }
            // Only the newest of what has come counts, however much it is.
            while let Ok(line) = lines.try_recv() {
                throttle.offer(line);
            }
        }
    }

    /// Shows the line that waits, if it may be shown now; when to look again, while one waits.
    async fn show_due<F, S>(&self, throttle: &mut Throttle, show: &mut S) -> Option<Duration>
    where
        S: FnMut(String) -> F + Send,
        F: Future<Output = Sent> + Send + 'static,
    {
        let due = throttle.due()?;
        if due > self.now() {
            return Some(due);
        }
        if let Err(again) = self.lock().take(self.now()) {
            return Some(again);
        }
        if let Some(line) = throttle.take(self.now())
            && let Sent::RateLimited { retry_after } = show(line).await
        {
            self.rate_limited(retry_after);
        }
        throttle.due()
    }

    fn now(&self) -> Duration {
        self.epoch.elapsed()
    }

    fn lock(&self) -> MutexGuard<'_, Bucket> {
        // A bucket is whole after each of its methods.
        self.bucket.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Progress on one message. Dropping it ends it at once, even within an update.
#[derive(Debug)]
pub struct Progress {
    lines: mpsc::UnboundedSender<String>,
    done: CancellationToken,
    task: Option<JoinHandle<()>>,
    max_settle: Duration,
}

impl Progress {
    /// Shows a line: the first at once, a later one sooner or later or never.
    pub fn line(&self, line: impl Into<String>) {
        // Nobody listens once it is finished.
        let _ = self.lines.send(line.into());
    }

    /// Ends it; call this before the answer is delivered. Afterwards no update begins, and one that was on
    /// its way, as the first line's always is, has arrived, so that it cannot overwrite the answer. It is given
    /// up after [`Settings::max_settle`].
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
    //! In virtual time: it stands still while anything can go on, and then goes on to the next moment that anybody
    //! waits for.

    use super::*;

    const GAP: Duration = Duration::from_secs(3);

    fn settings() -> Settings {
        Settings { min_gap: GAP, max_updates: 3, window: Duration::from_secs(30), ..Settings::default() }
    }

    type Shown = Arc<Mutex<Vec<(Duration, String)>>>;

    /// Progress whose updates take so long, and what was shown when, counted from now.
    fn progress(updates: &Updates, takes: Duration) -> (Progress, Shown) {
        let shown = Shown::default();
        let seen = Arc::clone(&shown);
        let start = Instant::now();
        let progress = updates.progress(move |line| {
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

    /// Everything that is due within this time has happened.
    async fn pass(time: Duration) {
        sleep(time).await;
    }

    #[tokio::test(start_paused = true)]
    async fn the_opening_line_is_shown_before_what_follows_at_once() {
        let (progress, shown) = progress(&Updates::new(settings()), Duration::ZERO);
        progress.line("Looking into erp…");
        progress.line("in app/models/sales.rb");
        pass(GAP / 2).await;
        assert_eq!(lines(&shown), ["Looking into erp…"]);
        pass(GAP).await;
        assert_eq!(lines(&shown), ["Looking into erp…", "in app/models/sales.rb"]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_opening_line_is_shown_even_if_all_is_over_at_once() {
        let (progress, shown) = progress(&Updates::new(settings()), Duration::from_millis(200));
        progress.line("Looking into erp…");
        progress.line("in app/models/sales.rb");
        progress.finish().await;
        assert_eq!(lines(&shown), ["Looking into erp…"]);
        pass(GAP * 2).await;
        assert_eq!(lines(&shown).len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_line_there_is_nothing_to_wait_for() {
        let (progress, shown) = progress(&Updates::new(settings()), Duration::ZERO);
        let before = Instant::now();
        progress.finish().await;
        assert_eq!((before.elapsed(), lines(&shown).len()), (Duration::ZERO, 0));
    }

    /// Specification 003 §6: three seconds, unless the settings say otherwise.
    #[tokio::test(start_paused = true)]
    async fn the_last_of_many_lines_is_shown_after_three_seconds() {
        let (progress, shown) = progress(&Updates::new(Settings::default()), Duration::ZERO);
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
        let (progress, shown) = progress(&Updates::new(settings()), Duration::ZERO);
        progress.line("first");
        pass(GAP / 2).await;
        progress.line("late");
        progress.finish().await;
        pass(GAP * 2).await;
        assert_eq!(lines(&shown), ["first"]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_update_on_its_way_arrives_before_the_answer() {
        let (progress, shown) = progress(&Updates::new(settings()), Duration::from_millis(200));
        progress.line("slow");
        pass(Duration::from_millis(50)).await;
        progress.finish().await;
        assert_eq!(lines(&shown), ["slow"]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_update_that_stalls_does_not_hold_the_answer() {
        let (progress, shown) = progress(&Updates::new(settings()), Duration::from_secs(600));
        progress.line("stalls");
        pass(Duration::from_millis(50)).await;
        let before = Instant::now();
        progress.finish().await;
        assert_eq!(before.elapsed(), settings().max_settle);
        pass(Duration::from_secs(1_000)).await;
        assert_eq!(lines(&shown), [] as [&str; 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn all_messages_and_answers_share_the_limit() {
        let updates = Updates::new(settings());
        updates.answered();
        let many: Vec<_> = (0..5).map(|_| progress(&updates, Duration::ZERO)).collect();
        for (progress, _) in &many {
            progress.line("x");
        }
        let shown = || many.iter().map(|(_, shown)| lines(shown).len()).sum::<usize>();
        pass(settings().window / 2).await;
        assert_eq!(shown(), 2);
        pass(settings().window).await;
        assert_eq!(shown(), 5, "the others once the window is over");
    }

    #[tokio::test(start_paused = true)]
    async fn after_too_many_requests_progress_waits() {
        let updates = Updates::new(settings());
        let refused = Duration::from_millis(400);
        updates.rate_limited(refused);
        let (progress, shown) = progress(&updates, Duration::ZERO);
        progress.line("x");
        pass(GAP).await;
        progress.finish().await;
        assert_eq!(*shown.lock().expect("not poisoned"), [(refused, "x".to_owned())]);
    }
}
