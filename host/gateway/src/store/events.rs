//! Ledger events in the store: written in the transaction of what they report, and kept until they are in the
//! ledger's files.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use pmk_system::clock::Clock;

use super::{
    Store, StoreError,
    error::Fault,
    sql::{Connection, OptionalExtension, ToSql, params},
    writer::Prefetch,
};
use crate::{
    ids::TurnId,
    ledger::{
        LedgerQueue, Line, Series, TaggedEvent,
        export::{Exported, QueuedLine},
    },
};

pub(super) const ADD: &str = "INSERT INTO event (at, turn_id, file, line) VALUES (?1, ?2, ?3, ?4)";
pub(super) const WAITING: &str = "SELECT id, file, line FROM event WHERE id > ?1 ORDER BY id LIMIT ?2";
pub(super) const COUNT: &str = "SELECT count(*) FROM event WHERE id > ?1";
pub(super) const FORGET: &str = "DELETE FROM event WHERE id <= ?1";
pub(super) const EXPORTED: &str = "SELECT file, length FROM exported WHERE id = 1";
pub(super) const SETTLE: &str = "INSERT INTO exported (id, file, length) VALUES (1, ?1, ?2)
     ON CONFLICT (id) DO UPDATE SET file = excluded.file, length = excluded.length";

// The same where several homes share a database: each has its own lines, and the home is the last parameter.
const ADD_OF_HOME: &str = "INSERT INTO event (at, turn_id, file, line, home) VALUES (?1, ?2, ?3, ?4, ?5)";
/// A commit of which no answer came may have been done all the same. Scans the lines that wait in this home.
const IS_THERE_OF_HOME: &str = "SELECT 1 FROM event WHERE home = ?4 AND at = ?1 AND file = ?2 AND line = ?3";
const WAITING_OF_HOME: &str = "SELECT id, file, line FROM event WHERE id > ?1 AND home = ?3 ORDER BY id LIMIT ?2";
const COUNT_OF_HOME: &str = "SELECT count(*) FROM event WHERE id > ?1 AND home = ?2";
const FORGET_OF_HOME: &str = "DELETE FROM event WHERE id <= ?1 AND home = ?2";
const EXPORTED_OF_HOME: &str = "SELECT file, length FROM exported WHERE home = ?1";
const SETTLE_OF_HOME: &str = "INSERT INTO exported (home, file, length) VALUES (?3, ?1, ?2)
     ON CONFLICT (home) DO UPDATE SET file = excluded.file, length = excluded.length";

/// What a store needs for recording events.
pub(super) struct Noting {
    pub(super) clock: Clock,
    series: OnceLock<Series>,
    /// Called when there may be new lines.
    wake: Mutex<Option<Arc<dyn Fn() + Send + Sync>>>,
    /// Lines of [`LedgerQueue::note`] that could not be stored.
    pub(super) unstored: Arc<Mutex<Vec<Line>>>,
}

impl Noting {
    pub fn new(clock: Clock) -> Noting {
        Noting { clock, series: OnceLock::default(), wake: Mutex::default(), unstored: Arc::default() }
    }

    fn wake(&self) {
        let wake = lock(&self.wake).clone();
        if let Some(wake) = wake {
            wake();
        }
    }
}

/// Renders the events of one transaction, all with the time of the transaction.
#[derive(Clone, Copy)]
pub(super) struct EventWriter {
    series: Series,
    now_ms: i64,
}

impl EventWriter {
    /// Returns the lines of these events.
    pub fn lines(self, events: &[TaggedEvent]) -> Vec<Line> {
        events.iter().map(|noted| Line::new(self.series, noted, self.now_ms)).collect()
    }

    /// Stores an event that is only known inside the transaction.
    pub fn write(self, conn: &Connection, turn: Option<TurnId>, noted: impl Into<TaggedEvent>) -> Result<(), Fault> {
        add(conn, turn, &self.lines(&[noted.into()]))
    }
}

impl Store {
    /// Marks all events from now on as those of a dry run, whose ledger is not counted.
    pub fn is_of_a_dry_run(&self) {
        // Only the first call has an effect.
        let _ = self.shared.noting.series.set(Series::DryRun);
    }

    /// Returns a writer for events at this time.
    pub(super) fn pen(&self, now_ms: i64) -> EventWriter {
        EventWriter { series: self.shared.noting.series.get().copied().unwrap_or_default(), now_ms }
    }

    /// As [`write`](Store::write), for work that stores events: they are exported at once.
    pub(super) async fn write_with_events<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        self.write_prefetched_with_events(Prefetch::None, work).await
    }

    /// As [`write_with_events`](Store::write_with_events), for work some of whose reads are known in advance.
    pub(super) async fn write_prefetched_with_events<T, F>(&self, prefetch: Prefetch, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        let written = self.write_prefetched(prefetch, work).await;
        self.shared.noting.wake();
        written
    }
}

/// Stores lines, in this order.
pub(super) fn add(conn: &Connection, turn: Option<TurnId>, lines: &[Line]) -> Result<(), Fault> {
    let mut statement = conn.prepare_cached(conn.either(ADD, ADD_OF_HOME))?;
    for Line { at_ms, file, text } in lines {
        statement.run(&*of_home(conn, params![at_ms, turn.map(|turn| turn.0), file, text]))?;
    }
    Ok(())
}

/// Stores lines of which it is not known whether they are stored, in this order.
fn add_missing(conn: &Connection, lines: &[Line]) -> Result<(), Fault> {
    if let Connection::Sqlite(_) = conn {
        return add(conn, None, lines);
    }
    let mut missing = Vec::with_capacity(lines.len());
    for line in lines {
        let Line { at_ms, file, text } = line;
        if !conn.prepare_cached(IS_THERE_OF_HOME)?.exists(&*of_home(conn, params![at_ms, file, text]))? {
            missing.push(line.clone());
        }
    }
    add(conn, None, &missing)
}

/// Returns these parameters, followed by the home where a statement needs it.
pub(super) fn of_home<'a>(conn: &'a Connection, values: &[&'a dyn ToSql]) -> Vec<&'a dyn ToSql> {
    let home = match conn {
        Connection::Sqlite(_) => None,
        Connection::Postgres(conn) => Some(conn.link().home() as &dyn ToSql),
    };
    values.iter().copied().chain(home).collect()
}

impl LedgerQueue for Store {
    fn note(&self, noted: TaggedEvent) {
        let line = self.pen(self.shared.noting.clock.now_ms()).lines(&[noted]);
        let (unstored, kept) = (Arc::clone(&self.shared.noting.unstored), line.clone());
        let wake = lock(&self.shared.noting.wake).clone();
        let answer = move |stored: Result<(), StoreError>| {
            if let Err(error) = stored {
                tracing::warn!(%error, "cannot store an event of the ledger now; keeping it for later");
                lock(&unstored).extend(kept);
            }
            if let Some(wake) = wake {
                wake();
            }
        };
        // The writer exists as long as the store.
        let _ = self.shared.writer.queue(Prefetch::Narrow, move |conn| add(conn, None, &line), answer);
    }

    fn note_again(&self) -> Result<(), String> {
        let lines = std::mem::take(&mut *lock(&self.shared.noting.unstored));
        let again = lines.clone();
        let stored = self.shared.writer.write_waiting(move |conn| add_missing(conn, &again));
        stored.map_err(|error| {
            // Events recorded meanwhile come after them.
            lock(&self.shared.noting.unstored).splice(0..0, lines);
            error.to_string()
        })
    }

    fn has_unstored(&self) -> bool {
        !lock(&self.shared.noting.unstored).is_empty()
    }

    fn take_unstored(&self) -> Vec<Line> {
        std::mem::take(&mut *lock(&self.shared.noting.unstored))
    }

    fn waiting(&self, after: i64, most: usize) -> Result<Vec<QueuedLine>, String> {
        let lines = self.read_waiting(move |conn| {
            let mut statement = conn.prepare_cached(conn.either(WAITING, WAITING_OF_HOME))?;
            let most = i64::try_from(most).unwrap_or(i64::MAX);
            let rows = statement.query_map(&*of_home(conn, params![after, most]), |row| {
                Ok(QueuedLine { id: row.get(0)?, file: row.get(1)?, text: row.get(2)? })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        });
        lines.map_err(|error| error.to_string())
    }

    fn count(&self, after: i64) -> Result<u64, String> {
        let stored = self.read_waiting(move |conn| {
            let count: i64 = conn
                .prepare_cached(conn.either(COUNT, COUNT_OF_HOME))?
                .query_row(&*of_home(conn, params![after]), |row| row.get(0))?;
            Ok(u64::try_from(count).unwrap_or(0))
        });
        let unstored = lock(&self.shared.noting.unstored).len() as u64;
        stored.map(|stored| stored + unstored).map_err(|error| error.to_string())
    }

    fn exported(&self) -> Result<Option<Exported>, String> {
        let exported = self.read_waiting(|conn| {
            let mut statement = conn.prepare_cached(conn.either(EXPORTED, EXPORTED_OF_HOME))?;
            let exported = statement.query_row(&*of_home(conn, &[]), |row| {
                Ok(Exported { file: row.get(0)?, length: u64::try_from(row.get::<_, i64>(1)?).unwrap_or(0) })
            });
            Ok(exported.optional()?)
        });
        exported.map_err(|error| error.to_string())
    }

    fn settle(&self, last: i64, exported: Exported) -> Result<(), String> {
        let settled = self.shared.writer.write_waiting(move |conn| {
            let length = i64::try_from(exported.length).unwrap_or(i64::MAX);
            conn.prepare_cached(conn.either(FORGET, FORGET_OF_HOME))?.run(&*of_home(conn, params![last]))?;
            let settled = of_home(conn, params![exported.file, length]);
            conn.prepare_cached(conn.either(SETTLE, SETTLE_OF_HOME))?.run(&*settled)?;
            Ok(())
        });
        settled.map_err(|error| error.to_string())
    }

    fn on_lines(&self, wake: Box<dyn Fn() + Send + Sync>) {
        *lock(&self.shared.noting.wake) = Some(wake.into());
    }
}

/// The content is consistent whenever the lock is free.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
