//! Exports lines from the store, where they are queued, to the files of their months: in the order in which they
//! were written, none lost and none twice.
//!
//! A line is appended to its file at once. A while later, or after many lines, the file is synced and the store
//! told so: it deletes the lines, and stores the file's length. So the lines that a restart after a crash finds in
//! the store may be in the file already, after that length, and are [looked for](file::find) there before anything
//! is written. The same is done after a failure: lines that cannot be written, for example on a full disk, wait in
//! the store until they can.
//!
//! One process exports at a time: the one that holds the lock.

use std::{
    collections::BTreeSet,
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::Receiver,
    },
    thread,
    time::Duration,
};

use jiff::Timestamp;
use pmk_system::home;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::{Event, Line, Month, Series, TaggedEvent, file, month::Retention};

/// How often the exporter looks for events that other processes have recorded.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How long it waits for more lines once there is one, so that under load many lines are written at once.
const GATHER: Duration = Duration::from_millis(100);

/// How long, and how many, lines that are in their file stay in the store.
const SETTLE_EVERY: Duration = Duration::from_secs(5);
const SETTLE_AT: usize = 1_000;

/// How many lines are read at once.
const PAGE: usize = 500;

/// The lock file's name, beside the files.
const LOCK_FILE: &str = "events.lock";

/// How often, and at what interval, the lock is tried at the end.
const LAST_LOOKS: u32 = 10;
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// How long a gateway that can write takes at most to write what waits, and how often that is looked at.
const WRITTEN_WITHIN: Duration = Duration::from_secs(3);
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Returns which of the files that a gateway would write to now could not be written, and why. Nothing is changed.
pub fn unwritable(folder: &Path, now: Timestamp) -> Vec<(PathBuf, io::Error)> {
    // What is wrong with the folder is no fault of its files.
    if !folder.is_dir() {
        return vec![];
    }
    let month = Month::of(now).file(Series::Events);
    let tried = [LOCK_FILE, &month].map(|name| folder.join(name)).map(|path| {
        let opened = file::is_there(&path).and_then(|is_there| match is_there {
            true => File::options().read(true).append(true).open(&path).map(drop),
            false => Ok(()),
        });
        (path, opened)
    });
    tried.into_iter().filter_map(|(path, opened)| Some((path, opened.err()?))).collect()
}

/// Returns how many lines wait in the queue and are in no file, apart from those of dry runs, which are never counted.
/// If a gateway is running, it gets the time to write them.
///
/// # Errors
/// The queue cannot be read.
pub fn unwritten(folder: &Path, queue: &dyn LedgerQueue, is_running: bool) -> Result<u64, String> {
    // Where a file cannot be read, it cannot be counted from it either.
    let written = || compare(folder, queue).map_or(0, |agreed| agreed.last);
    let first = |last| queue.waiting(last, 1).map(|lines| lines.first().map(|line| line.id));
    let last = written();
    let waits = first(last)?;
    let count = events_after(last, queue)?;
    if count == 0 || !is_running {
        return Ok(count);
    }
    let deadline = Instant::now() + WRITTEN_WITHIN;
    while Instant::now() < deadline {
        thread::sleep(LOOK_AGAIN);
        if first(written())? != waits {
            return Ok(0);
        }
    }
    Ok(count)
}

/// Counts the lines after this one that are of no dry run.
fn events_after(mut last: i64, queue: &dyn LedgerQueue) -> Result<u64, String> {
    let mut count = 0;
    loop {
        let lines = queue.waiting(last, PAGE)?;
        count += lines.iter().filter(|line| Month::of_file(Series::Events, &line.file).is_some()).count() as u64;
        match lines.last() {
            Some(line) if lines.len() == PAGE => last = line.id,
            _ => return Ok(count),
        }
    }
}

/// The queue of lines that are not in their files yet: the store.
pub trait LedgerQueue: Send + Sync {
    /// Stores an event that belongs to no other write, soon. What cannot be stored is kept in memory.
    fn note(&self, noted: TaggedEvent);

    /// Stores what could not be stored before, and waits until everything recorded is stored.
    ///
    /// # Errors
    /// It still cannot be stored; it is kept.
    fn note_again(&self) -> Result<(), String>;

    /// Whether events are kept in memory because they could not be stored.
    fn has_unstored(&self) -> bool;

    /// Returns the lines that could not be stored, and no longer keeps them.
    fn take_unstored(&self) -> Vec<Line>;

    /// Returns the first lines after this one, oldest first.
    ///
    /// # Errors
    /// They cannot be read.
    fn waiting(&self, after: i64, most: usize) -> Result<Vec<QueuedLine>, String>;

    /// Returns how many lines there are after this one, including those that could not be stored.
    ///
    /// # Errors
    /// They cannot be counted.
    fn count(&self, after: i64) -> Result<u64, String>;

    /// Returns how far lines were exported and synced; `None` where none was.
    ///
    /// # Errors
    /// It cannot be read.
    fn exported(&self) -> Result<Option<Exported>, String>;

    /// Deletes the lines up to this one, which are in their files and synced.
    ///
    /// # Errors
    /// They stay queued.
    fn settle(&self, last: i64, exported: Exported) -> Result<(), String>;

    /// Sets the function that is called whenever there may be new lines.
    fn on_lines(&self, wake: Box<dyn Fn() + Send + Sync>);
}

/// A queued line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedLine {
    /// Its number among all lines.
    pub id: i64,
    pub file: String,
    pub text: String,
}

/// The file that was written to last, and its length then, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    pub file: String,
    pub length: u64,
}

/// Lines that cannot be written now. They are kept, and written once they can be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerBacklog {
    /// How many lines wait.
    pub waiting: u64,
    pub error: String,
    /// Since when they have waited.
    pub since: String,
}

/// How far files and store agree.
#[derive(Debug)]
struct Agreed {
    /// Every line up to this one is in its file.
    last: i64,
    /// The file and length after the last line.
    exported: Exported,
    /// Lines that are in their files and still in the store.
    unsettled: usize,
    since: Instant,
    /// Files that may not be synced yet.
    unsynced: BTreeSet<String>,
}

/// Writes the files of a folder.
pub(super) struct Exporter {
    pub waiting: Arc<dyn LedgerQueue>,
    pub folder: PathBuf,
    /// Which months are kept, where not all are.
    keeping: Option<Retention>,
    pub trouble: Arc<Mutex<Option<LedgerBacklog>>>,
    lock: Option<File>,
    /// `None` until files and store were compared.
    agreed: Option<Agreed>,
    /// The last line that was seen in its file, whatever has happened to the file since.
    written: i64,
}

impl Exporter {
    pub fn new(
        waiting: Arc<dyn LedgerQueue>,
        folder: PathBuf,
        keeping: Option<Retention>,
        trouble: Arc<Mutex<Option<LedgerBacklog>>>,
    ) -> Self {
        Exporter { waiting, folder, keeping, trouble, lock: None, agreed: None, written: 0 }
    }

    /// Exports all queued lines whenever it is woken, until it is told to end.
    pub fn work(mut self, woken: &Receiver<()>, ending: &AtomicBool) {
        loop {
            if ending.load(Ordering::Acquire) {
                return self.end();
            }
            self.step();
            // If the sender is dropped, the end follows.
            if woken.recv_timeout(LOOK_EVERY).is_ok() && !ending.load(Ordering::Acquire) {
                thread::sleep(GATHER);
            }
        }
    }

    /// Exports all queued lines.
    pub fn step(&mut self) {
        let outcome = self.export(false);
        self.tell(outcome);
    }

    /// Exports for the last time.
    pub fn end(&mut self) {
        let outcome = self.export(true);
        self.tell(outcome);
        self.write_unstored();
    }

    fn export(&mut self, ends: bool) -> Result<(), String> {
        if ends || self.waiting.has_unstored() {
            self.waiting.note_again()?;
        }
        if !self.is_ours(ends)? {
            return Ok(());
        }
        let mut agreed = match self.agreed.take() {
            Some(agreed) => agreed,
            None => compare(&self.folder, &*self.waiting)?,
        };
        self.written = agreed.last;
        loop {
            let lines = self.waiting.waiting(agreed.last, PAGE)?;
            for lines in lines.chunk_by(|one, next| one.file == next.file) {
                self.append(&mut agreed, lines)?;
                self.written = agreed.last;
            }
            if lines.len() < PAGE {
                break;
            }
        }
        // Before files are deleted, the store deletes their lines: otherwise they would be written into new files.
        let files_go = !ends && self.keeping.as_ref().is_some_and(Retention::is_due);
        let is_time = ends || files_go || agreed.since.elapsed() >= SETTLE_EVERY;
        if agreed.unsettled >= SETTLE_AT || agreed.unsettled > 0 && is_time {
            self.settle(&mut agreed)?;
        }
        self.agreed = Some(agreed);
        if files_go {
            self.forget_months();
        }
        Ok(())
    }

    /// Deletes the files of months that are no longer kept.
    fn forget_months(&mut self) {
        let Some(keeping) = &mut self.keeping else { return };
        let files = keeping.look(&self.folder);
        if !files.is_empty() {
            let names = files.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            tracing::info!("the ledger is kept for {} months; deleted: {names}", keeping.months);
            self.waiting.note(Event::LedgerForgotten { files, keep_months: keeping.months.get() }.into());
        }
    }

    /// Takes the lock, unless another process has it. At the end it tries several times: a child process that is
    /// just being started briefly inherits our open files, and with them a lock that was already released.
    fn is_ours(&mut self, ends: bool) -> Result<bool, String> {
        if self.lock.is_none() {
            let path = self.folder.join(LOCK_FILE);
            let file = home::append_private_file(&path).map_err(|error| cannot(&path, &error))?;
            let mut more_looks = if ends { LAST_LOOKS } else { 0 };
            while file.try_lock().is_err() {
                if more_looks == 0 {
                    return Ok(false);
                }
                more_looks -= 1;
                thread::sleep(BETWEEN_LOOKS);
            }
            self.lock = Some(file);
        }
        Ok(true)
    }

    fn append(&self, agreed: &mut Agreed, lines: &[QueuedLine]) -> Result<(), String> {
        let [.., last] = lines else { return Ok(()) };
        let path = self.folder.join(&last.file);
        let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
        let length = file::append(&path, &texts).map_err(|error| cannot(&path, &error))?;
        agreed.note(last.id, &last.file, lines.len(), length);
        Ok(())
    }

    fn settle(&self, agreed: &mut Agreed) -> Result<(), String> {
        for name in &agreed.unsynced {
            let path = self.folder.join(name);
            file::sync(&path).map_err(|error| cannot(&path, &error))?;
        }
        self.waiting.settle(agreed.last, agreed.exported.clone())?;
        agreed.unsynced.clear();
        agreed.unsettled = 0;
        Ok(())
    }

    /// Updates the backlog: what cannot be written, or that writing works again.
    fn tell(&self, outcome: Result<(), String>) {
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        let Err(error) = outcome else {
            *trouble = None;
            return;
        };
        if trouble.is_none() {
            tracing::warn!(error, "cannot write the ledger; its lines stay in the store until it can be written");
        }
        let waiting = self.waiting.count(self.written).unwrap_or(0);
        let since = trouble.take().map_or_else(|| format!("{:.3}", Timestamp::now()), |trouble| trouble.since);
        *trouble = Some(LedgerBacklog { waiting, error, since });
    }

    /// At the end: writes the lines that a lost store does not accept any more to the files directly.
    fn write_unstored(&self) {
        for Line { file: name, text, .. } in self.waiting.take_unstored() {
            let path = self.folder.join(name);
            if let Err(error) = file::append(&path, &[&text]) {
                tracing::error!(path = %path.display(), %error, line = text.trim_end(), "a line of the ledger was lost");
            }
        }
    }
}

impl Agreed {
    fn note(&mut self, last: i64, name: &str, lines: usize, length: u64) {
        if self.unsettled == 0 {
            self.since = Instant::now();
        }
        self.last = last;
        self.unsettled += lines;
        self.exported = Exported { file: name.to_owned(), length };
        if !self.unsynced.contains(name) {
            self.unsynced.insert(name.to_owned());
        }
    }
}

/// Finds out which of the queued lines are in their files already.
fn compare(folder: &Path, queue: &dyn LedgerQueue) -> Result<Agreed, String> {
    let exported = queue.exported()?.unwrap_or_default();
    let mut agreed = Agreed { last: 0, exported, unsettled: 0, since: Instant::now(), unsynced: BTreeSet::default() };
    loop {
        let lines = queue.waiting(agreed.last, PAGE)?;
        for lines in lines.chunk_by(|one, next| one.file == next.file) {
            let name = &lines[0].file;
            let path = folder.join(name);
            let from = if agreed.exported.file == *name { agreed.exported.length } else { 0 };
            let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
            let (found, end) = file::find(&path, from, &texts).map_err(|error| cannot(&path, &error))?;
            if let Some(last) = found.checked_sub(1) {
                agreed.note(lines[last].id, name, found, end);
            }
            if found < lines.len() {
                return Ok(agreed);
            }
        }
        if lines.len() < PAGE {
            return Ok(agreed);
        }
    }
}

fn cannot(path: &Path, error: &io::Error) -> String {
    format!("cannot write `{}`: {error}", path.display())
}
