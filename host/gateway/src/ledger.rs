//! The ledger: one JSON line an event, in a file a month, `events-YYYY-MM.log` (UTC), as pmk writes
//! them (specifications 000 §3 and 003 §12). People read and edit it; it never holds the text of a message.
//!
//! An event is stored together with what it tells of, in one transaction, or by itself where it belongs to nothing else.
//! From the store its line is [exported](export) to the file: the store says what has happened, the files are for readers.
//! A ledger that cannot be written stops no conversation, and loses nothing.

mod event;
pub mod export;
mod file;
mod line;
mod tags;

#[cfg(test)]
mod tests;

use std::{
    fmt,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{SyncSender, sync_channel},
    },
    thread::JoinHandle,
};

pub use event::Event;
pub use export::{Trouble, Waiting};
pub use line::{Line, Noted, Series};
pub use tags::{InExperiment, LoadedArm, PolicyAsked, Tags};

use export::Exporter;

/// Notes events, and exports those of all. Clones write the same ledger; the last one to go waits until everything is
/// exported that can be.
#[derive(Clone, Debug)]
pub struct Ledger(Arc<Exporting>);

struct Exporting {
    waiting: Arc<dyn Waiting>,
    trouble: Arc<Mutex<Option<Trouble>>>,
    ending: Arc<AtomicBool>,
    wake: SyncSender<()>,
    exporter: Option<JoinHandle<()>>,
}

impl fmt::Debug for Exporting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exporting").field("trouble", &self.trouble).finish_non_exhaustive()
    }
}

impl Ledger {
    /// The ledger in this folder, of what is stored there.
    pub fn open(waiting: Arc<dyn Waiting>, folder: impl Into<PathBuf>) -> Self {
        let (trouble, ending) = (Arc::default(), Arc::new(AtomicBool::new(false)));
        // One that is woken already need not be woken twice.
        let (wake, woken) = sync_channel(1);
        let waker = wake.clone();
        waiting.on_lines(Box::new(move || {
            let _ = waker.try_send(());
        }));
        let exporter = Exporter::new(Arc::clone(&waiting), folder.into(), Arc::clone(&trouble));
        let ends = Arc::clone(&ending);
        let spawned = std::thread::Builder::new().name("ledger".into()).spawn(move || exporter.work(&woken, &ends));
        let exporter = spawned
            .inspect_err(|error| tracing::warn!(%error, "the ledger is not exported: no thread; the store keeps it"))
            .ok();
        Ledger(Arc::new(Exporting { waiting, trouble, ending, wake, exporter }))
    }

    /// What keeps lines from being written now, if anything does.
    pub fn trouble(&self) -> Option<Trouble> {
        self.0.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes an event that belongs to no turn and to no other write, now.
    pub fn note(&self, event: Event) {
        self.0.waiting.note(event.into());
    }

    /// Notes such an event about a turn that went by these decisions, now.
    pub fn note_of(&self, event: Event, tags: Tags) {
        self.0.waiting.note(Noted { event, tags });
    }
}

impl Drop for Exporting {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Release);
        // Where that is full it is woken anyway.
        let _ = self.wake.try_send(());
        if let Some(exporter) = self.exporter.take() {
            let _ = exporter.join();
        }
    }
}
