//! Output to the terminal beside the data: to standard error, or through whatever owns the terminal, such as a
//! full-screen page. Also shows a spinner on standard error, if that is a terminal, while something takes long. Texts
//! are given in English and translated to the user's language.

use std::{
    io::{self, Write},
    sync::{
        Mutex, OnceLock, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
        mpsc::{self, RecvTimeoutError, Sender},
    },
    thread,
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pmk_core::Language;

use crate::messages::terminal;

/// The duration after which a spinner is shown.
const LONG: Duration = Duration::from_secs(2);
const TICK: Duration = Duration::from_millis(200);

/// The spinner that is shown, with its number, so that other output to standard error can be written above it. There is
/// at most one at a time.
static SHOWN: Mutex<Option<(u64, ProgressBar)>> = Mutex::new(None);

/// Numbers the spinners.
static NEXT: AtomicU64 = AtomicU64::new(0);

type Shows = Box<dyn Fn(&str) + Send + Sync>;

/// Shows messages while the terminal is taken.
static TAKEN: RwLock<Option<Shows>> = RwLock::new(None);

/// The language of the terminal of this process.
static READ: OnceLock<Language> = OnceLock::new();

/// Sets the language of the terminal. Called once, before anything is shown.
pub fn read_in(language: Language) {
    READ.get_or_init(|| language);
}

/// A taken terminal, until this is dropped.
#[must_use]
#[derive(Debug)]
pub struct Taken(());

/// Takes the terminal: messages are passed to `shows`, because a line written directly would corrupt what is displayed.
pub fn take(shows: impl Fn(&str) + Send + Sync + 'static) -> Taken {
    *TAKEN.write().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(shows));
    Taken(())
}

impl Drop for Taken {
    fn drop(&mut self) {
        *TAKEN.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Writes lines that are not data, with their line ends. If standard error is closed, they are dropped.
pub fn say(lines: &str) {
    match &*TAKEN.read().unwrap_or_else(PoisonError::into_inner) {
        Some(shows) => shows(lines),
        None => {
            let _ = beside(|| io::stderr().write_all(lines.as_bytes()));
        }
    }
}

/// Shows that something is in progress and for how long, until it is dropped.
#[derive(Debug)]
pub struct Spinner {
    number: u64,
    bar: ProgressBar,
    /// Set if the spinner is shown only after a delay: dropping it ends the thread that waits for the delay.
    ends: Option<Sender<()>>,
}

impl Spinner {
    /// Shows a spinner at once.
    pub fn now(doing: &str) -> Spinner {
        let waiting = Spinner::hidden(doing);
        show(waiting.number, &waiting.bar);
        waiting
    }

    /// Shows a spinner once the work has taken long.
    pub fn when_long(doing: &str) -> Spinner {
        let mut waiting = Spinner::hidden(doing);
        let (number, bar) = (waiting.number, waiting.bar.downgrade());
        let (ends, ended) = mpsc::channel();
        thread::spawn(move || {
            if ended.recv_timeout(LONG) == Err(RecvTimeoutError::Timeout)
                && let Some(bar) = bar.upgrade().filter(|bar| !bar.is_finished())
            {
                show(number, &bar);
            }
        });
        waiting.ends = Some(ends);
        waiting
    }

    /// Changes the text of the spinner.
    pub fn tell(&self, doing: &str) {
        self.bar.set_message(translated(doing));
    }

    fn hidden(doing: &str) -> Spinner {
        let template = reader().pick("{spinner} {msg}, {elapsed}", "{spinner} {msg}，{elapsed}");
        let style = ProgressStyle::with_template(template);
        let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        let bar = bar.with_style(style).with_message(translated(doing));
        Spinner { number: NEXT.fetch_add(1, Ordering::Relaxed), bar, ends: None }
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        let mut shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if shown.as_ref().is_some_and(|(number, _)| *number == self.number) {
            *shown = None;
        }
        self.bar.finish_and_clear();
    }
}

fn reader() -> Language {
    READ.get().copied().unwrap_or_default()
}

fn translated(text: &str) -> String {
    terminal::translated(text, reader()).into_owned()
}

/// Shows the spinner, unless another one is shown or the terminal is taken.
fn show(number: u64, bar: &ProgressBar) {
    let is_taken = TAKEN.read().unwrap_or_else(PoisonError::into_inner).is_some();
    let mut shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if shown.is_some() || is_taken || bar.is_finished() {
        return;
    }
    bar.set_draw_target(ProgressDrawTarget::stderr());
    bar.enable_steady_tick(TICK);
    *shown = Some((number, bar.clone()));
}

/// Runs code that writes to standard error, with the spinner hidden meanwhile.
pub fn beside<T>(write: impl FnOnce() -> T) -> T {
    let shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match shown {
        Some((_, bar)) => bar.suspend(write),
        None => write(),
    }
}
