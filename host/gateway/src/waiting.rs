//! Something to look at while something takes its time: a line on standard error, where that is a terminal.

use std::{
    sync::{Mutex, PoisonError},
    thread,
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// What takes longer than this wants something to look at.
const LONG: Duration = Duration::from_secs(2);
const TICK: Duration = Duration::from_millis(200);

/// The line that is shown, so that whatever is written to standard error meanwhile stands above it.
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Shows that something is under way, and for how long already, until it is dropped.
#[derive(Debug)]
pub struct Waiting(ProgressBar);

impl Waiting {
    /// Begins at once.
    pub fn now(doing: &str) -> Waiting {
        let waiting = Waiting::hidden(doing);
        show(&waiting.0);
        waiting
    }

    /// Begins once it has taken long.
    pub fn when_long(doing: &str) -> Waiting {
        let waiting = Waiting::hidden(doing);
        let bar = waiting.0.downgrade();
        thread::spawn(move || {
            thread::sleep(LONG);
            if let Some(bar) = bar.upgrade().filter(|bar| !bar.is_finished()) {
                show(&bar);
            }
        });
        waiting
    }

    /// From now on something else is done, or it has come further.
    pub fn says(&self, doing: impl Into<String>) {
        self.0.set_message(doing.into());
    }

    fn hidden(doing: &str) -> Waiting {
        let style = ProgressStyle::with_template("{spinner} {msg}, {elapsed}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        Waiting(bar.with_style(style).with_message(doing.to_owned()))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.0.finish_and_clear();
    }
}

fn show(bar: &ProgressBar) {
    bar.set_draw_target(ProgressDrawTarget::stderr());
    bar.enable_steady_tick(TICK);
    *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar.clone());
}

/// Does what writes to standard error, with the line out of its way.
pub fn beside<T>(write: impl FnOnce() -> T) -> T {
    let shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match shown {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
}
