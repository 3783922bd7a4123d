//! What is said at the terminal beside the data: on standard error, or by whoever has the terminal to itself. And something to look
//! at while something takes its time: a line on standard error, where that is a terminal. What it says is given in English, and read
//! in the language of whoever sits there.

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

/// What takes longer than this wants something to look at.
const LONG: Duration = Duration::from_secs(2);
const TICK: Duration = Duration::from_millis(200);

/// The line that is shown, so that whatever is written to standard error meanwhile stands above it; and whose it is. There is
/// one at a time.
static SHOWN: Mutex<Option<(u64, ProgressBar)>> = Mutex::new(None);

/// Tells lines apart.
static NEXT: AtomicU64 = AtomicU64::new(0);

type Shows = Box<dyn Fn(&str) + Send + Sync>;

/// What shows what is said, while somebody has the terminal.
static TAKEN: RwLock<Option<Shows>> = RwLock::new(None);

/// What is read at the terminal of this process.
static READ: OnceLock<Language> = OnceLock::new();

/// From now on whoever sits at the terminal reads this language; said once, before anything is shown.
pub fn read_in(language: Language) {
    READ.get_or_init(|| language);
}

/// A terminal that somebody has, until this is dropped.
#[must_use]
#[derive(Debug)]
pub struct Taken(());

/// From now on the terminal is somebody's who shows there himself what is said: a line that came between would tear what stands
/// there.
pub fn take(shows: impl Fn(&str) + Send + Sync + 'static) -> Taken {
    *TAKEN.write().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(shows));
    Taken(())
}

impl Drop for Taken {
    fn drop(&mut self) {
        *TAKEN.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Says something that is no data, lines with their ends. Where standard error is gone there is nobody left to tell.
pub fn say(lines: &str) {
    match &*TAKEN.read().unwrap_or_else(PoisonError::into_inner) {
        Some(shows) => shows(lines),
        None => {
            let _ = beside(|| io::stderr().write_all(lines.as_bytes()));
        }
    }
}

/// Shows that something is under way, and for how long already, until it is dropped.
#[derive(Debug)]
pub struct Spinner {
    number: u64,
    bar: ProgressBar,
    /// Where it begins only once it has taken long: what waits for that ends with this.
    ends: Option<Sender<()>>,
}

impl Spinner {
    /// Begins at once.
    pub fn now(doing: &str) -> Spinner {
        let waiting = Spinner::hidden(doing);
        show(waiting.number, &waiting.bar);
        waiting
    }

    /// Begins once it has taken long.
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

    /// From now on something else is done, or it has come further.
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

/// Shows it, unless there is another one, or somebody else has the terminal.
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

/// Does what writes to standard error, with the line out of its way.
pub fn beside<T>(write: impl FnOnce() -> T) -> T {
    let shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match shown {
        Some((_, bar)) => bar.suspend(write),
        None => write(),
    }
}
