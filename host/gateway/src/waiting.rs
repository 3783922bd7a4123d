//! Something to look at while something takes its time: a line on standard error, where that is a terminal. What it says is
//! given in English, and read in the language of whoever sits there.

use std::{
    sync::{Mutex, OnceLock, PoisonError},
    thread,
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pmk_core::Language;

use crate::messages::terminal;

/// What takes longer than this wants something to look at.
const LONG: Duration = Duration::from_secs(2);
const TICK: Duration = Duration::from_millis(200);

/// The line that is shown, so that whatever is written to standard error meanwhile stands above it.
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// What is read at the terminal of this process.
static READ: OnceLock<Language> = OnceLock::new();

/// From now on whoever sits at the terminal reads this language; said once, before anything is shown.
pub fn read_in(language: Language) {
    READ.get_or_init(|| language);
}

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
    pub fn tell(&self, doing: &str) {
        self.0.set_message(translated(doing));
    }

    fn hidden(doing: &str) -> Waiting {
        let template = reader().pick("{spinner} {msg}, {elapsed}", "{spinner} {msg}，{elapsed}");
        let style = ProgressStyle::with_template(template);
        let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        Waiting(bar.with_style(style).with_message(translated(doing)))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.0.finish_and_clear();
    }
}

fn reader() -> Language {
    READ.get().copied().unwrap_or_default()
}

fn translated(text: &str) -> String {
    terminal::translated(text, reader()).into_owned()
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
