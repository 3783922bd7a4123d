//! The ledger: one JSON line per event, in one file per month, `events-YYYY-MM.log` (UTC), in pmk's format
//! (specifications 000 §3 and 003 §12). People read and edit the files; they never hold the text of a message.
//!
//! An event is stored in the same transaction as the change it reports, or by itself where it belongs to no change.
//! From the store its line is [exported](export) to the file: the store is the record of what has happened, the
//! files are for readers. A ledger that cannot be written stops no conversation and loses nothing.

mod event;
pub mod export;
mod file;
mod line;
mod month;
pub mod report;
mod tags;

#[cfg(test)]
mod tests;

use std::{
    fmt,
    num::NonZeroU32,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{SyncSender, sync_channel},
    },
    thread::JoinHandle,
};

use pmk_system::{
    clock::Clock,
    threads::{Pace, Threads},
};
use tokio::runtime::Handle;

use export::Exporter;
use month::Retention;

pub use event::Event;
pub use export::{LedgerBacklog, LedgerQueue};
pub use line::{Line, Series, TaggedEvent};
pub use month::Month;
pub use tags::{InExperiment, LoadedArm, PolicyAsked, Tags};

/// Records events, and exports all events to the files. Clones write the same ledger; dropping the last one waits
/// until everything that can be exported is.
#[derive(Clone, Debug)]
pub struct Ledger(Arc<Exporting>);

struct Exporting {
    waiting: Arc<dyn LedgerQueue>,
    trouble: Arc<Mutex<Option<LedgerBacklog>>>,
    exporter: Exports,
}

/// What runs the exporter.
enum Exports {
    Thread { ending: Arc<AtomicBool>, wake: SyncSender<()>, thread: Option<JoinHandle<()>> },
    Task(Arc<Task>),
}

impl fmt::Debug for Exporting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exporting").field("trouble", &self.trouble).finish_non_exhaustive()
    }
}

impl Ledger {
    /// Opens the ledger in this folder; `waiting` is the store's queue of lines.
    pub fn open(waiting: Arc<dyn LedgerQueue>, folder: impl Into<PathBuf>) -> Self {
        Ledger::open_with(waiting, folder, Threads::Own)
    }

    /// As [`open`](Ledger::open), with other threads.
    pub fn open_with(waiting: Arc<dyn LedgerQueue>, folder: impl Into<PathBuf>, threads: Threads) -> Self {
        Ledger::start(waiting, folder.into(), None, threads)
    }

    /// As [`open`](Ledger::open), keeping the files of so many months, the current one included: older ones are
    /// deleted.
    pub fn open_keeping(waiting: Arc<dyn LedgerQueue>, folder: impl Into<PathBuf>, months: NonZeroU32) -> Self {
        let keeping = Retention::new(months, Clock::system());
        Ledger::start(waiting, folder.into(), Some(keeping), Threads::Own)
    }

    fn start(waiting: Arc<dyn LedgerQueue>, folder: PathBuf, keeping: Option<Retention>, threads: Threads) -> Self {
        let trouble = Arc::default();
        let exporter = Exporter::new(Arc::clone(&waiting), folder, keeping, Arc::clone(&trouble));
        let exporter = match threads {
            Threads::Own => Exports::by_thread(&*waiting, exporter),
            Threads::None(pace) => Exports::by_task(&*waiting, exporter, pace),
        };
        Ledger(Arc::new(Exporting { waiting, trouble, exporter }))
    }

    /// Returns why lines cannot be written now, if they cannot.
    pub fn trouble(&self) -> Option<LedgerBacklog> {
        self.0.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Records an event that belongs to no turn and to no other write, at once.
    pub fn note(&self, event: Event) {
        self.0.waiting.note(event.into());
    }

    /// Records such an event about a turn that these decisions were made for, at once.
    pub fn note_of(&self, event: Event, tags: Tags) {
        self.0.waiting.note(TaggedEvent { event, tags });
    }
}

impl Drop for Exporting {
    fn drop(&mut self) {
        match &mut self.exporter {
            Exports::Thread { ending, wake, thread } => {
                ending.store(true, Ordering::Release);
                // If the channel is full, the thread is woken anyway.
                let _ = wake.try_send(());
                if let Some(thread) = thread.take() {
                    let _ = thread.join();
                }
            }
            Exports::Task(task) => task.exporter().end(),
        }
    }
}

impl Exports {
    fn by_thread(waiting: &dyn LedgerQueue, exporter: Exporter) -> Exports {
        let ending = Arc::new(AtomicBool::new(false));
        // One wake-up that is pending is enough.
        let (wake, woken) = sync_channel(1);
        let waker = wake.clone();
        waiting.on_lines(Box::new(move || {
            let _ = waker.try_send(());
        }));
        let ends = Arc::clone(&ending);
        let thread = std::thread::Builder::new()
            .name("ledger".into())
            .spawn(move || exporter.work(&woken, &ends))
            .inspect_err(|error| tracing::warn!(%error, "cannot export the ledger: no thread; it stays in the store"))
            .ok();
        Exports::Thread { ending, wake, thread }
    }

    fn by_task(waiting: &dyn LedgerQueue, exporter: Exporter, pace: Pace) -> Exports {
        let task = Arc::new(Task { exporter: Mutex::new(exporter), is_woken: AtomicBool::new(false), pace });
        let woken = Arc::downgrade(&task);
        waiting.on_lines(Box::new(move || {
            if let Some(task) = woken.upgrade() {
                task.wake();
            }
        }));
        Exports::Task(task)
    }
}

/// Runs the exporter as tasks of a runtime.
struct Task {
    exporter: Mutex<Exporter>,
    is_woken: AtomicBool,
    pace: Pace,
}

impl Task {
    /// Exports soon. What fails is retried with the next lines, and at the end.
    fn wake(self: &Arc<Self>) {
        let Ok(runtime) = Handle::try_current() else { return };
        if !self.is_woken.swap(true, Ordering::AcqRel) {
            let task = Arc::clone(self);
            runtime.spawn(async move {
                tokio::time::sleep((task.pace)()).await;
                task.is_woken.store(false, Ordering::Release);
                task.exporter().step();
            });
        }
    }

    fn exporter(&self) -> MutexGuard<'_, Exporter> {
        self.exporter.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
