//! A few threads read, each over a connection of its own: a long read holds up neither the writer nor
//! the async runtime. What is short is read over the same connections by whoever wants to know it, for the way to another
//! thread and back costs more; and everything where there are to be no threads.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, TryLockError,
        mpsc::{self, Receiver, Sender},
    },
    thread::{self, JoinHandle},
};

use pmk_system::threads::Threads;
use tokio::sync::oneshot;

use super::{
    error::{Fault, StoreError, guarded},
    sql::Connection,
};

/// How many reads can go on at once.
const THREADS: usize = 2;

type Read = Box<dyn FnOnce(&Connection) + Send>;

/// One for each thread.
type Connections = Arc<[Mutex<Connection>]>;

/// What reads. Dropping it lets what is queued finish.
pub(super) struct Readers {
    path: PathBuf,
    way: Way,
}

/// Who reads.
enum Way {
    Threads { queue: Option<Sender<Read>>, threads: Vec<JoinHandle<()>>, connections: Connections },
    Caller(Mutex<Connection>),
}

impl Readers {
    /// Starts them on connections that `open` opens.
    pub(super) fn start(
        path: &Path,
        open: impl Fn() -> Result<Connection, StoreError>,
        who: &Threads,
    ) -> Result<Self, StoreError> {
        if let Threads::None(_) = who {
            return Ok(Readers { path: path.to_owned(), way: Way::Caller(Mutex::new(open()?)) });
        }
        let connections: Connections = (0..THREADS).map(|_| open().map(Mutex::new)).collect::<Result<_, _>>()?;
        let (queue, reads) = mpsc::channel();
        let reads = Arc::new(Mutex::new(reads));
        let start = |number: usize| {
            let (reads, connections) = (Arc::clone(&reads), Arc::clone(&connections));
            let thread = thread::Builder::new().name("store-reader".into()).spawn(move || {
                while let Some(read) = next(&reads) {
                    read(&lock(&connections[number]));
                }
            });
            thread.map_err(|error| StoreError::Io { path: path.to_owned(), message: error.to_string() })
        };
        let threads = (0..connections.len()).map(start).collect::<Result<_, _>>()?;
        Ok(Readers { path: path.to_owned(), way: Way::Threads { queue: Some(queue), threads, connections } })
    }

    /// Runs `work` on a connection that sees everything committed before this call.
    pub(super) async fn read<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        self.queue(work)?.await.map_err(|_| StoreError::Closed)?
    }

    /// Runs `work`, which takes no longer than a moment, here and now. `None` where it has found that it would, or where all
    /// connections are in use: then it is for [`read`](Self::read).
    pub(super) fn read_here<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<Option<T>, Fault>,
    ) -> Result<Option<T>, StoreError> {
        let conn = match &self.way {
            Way::Threads { connections, .. } => connections.iter().find_map(idle),
            Way::Caller(conn) => Some(lock(conn)),
        };
        // One that is at the other end of a network takes longer than a moment, and is waited for on threads that may.
        let Some(conn) = conn.filter(|conn| matches!(**conn, Connection::Sqlite(_))) else { return Ok(None) };
        guarded(|| work(&conn)).map_err(|fault| fault.at(&self.path))
    }

    /// Looks at what was read already.
    pub(super) fn look<T>(&self, work: impl FnOnce() -> Result<T, Fault>) -> Result<T, StoreError> {
        guarded(work).map_err(|fault| fault.at(&self.path))
    }

    /// The same as [`read`](Self::read) for a thread that may wait; in the async runtime it panics.
    pub(super) fn read_waiting<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        let mut answer = self.queue(work)?;
        match &self.way {
            Way::Threads { .. } => answer.blocking_recv().map_err(|_| StoreError::Closed)?,
            Way::Caller(_) => answer.try_recv().map_err(|_| StoreError::Closed)?,
        }
    }

    fn queue<T, F>(&self, work: F) -> Result<oneshot::Receiver<Result<T, StoreError>>, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        let (caller, answer) = oneshot::channel();
        let path = self.path.clone();
        let read: Read = Box::new(move |conn| {
            // A caller that has gone away does not need to know.
            let _ = caller.send(guarded(|| work(conn)).map_err(|fault| fault.at(&path)));
        });
        match &self.way {
            Way::Threads { queue, .. } => {
                queue.as_ref().ok_or(StoreError::Closed)?.send(read).map_err(|_| StoreError::Closed)?;
            }
            Way::Caller(conn) => read(&lock(conn)),
        }
        Ok(answer)
    }
}

/// What a read that has panicked leaves behind is a connection as good as before.
fn lock(conn: &Mutex<Connection>) -> MutexGuard<'_, Connection> {
    conn.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A connection that nobody reads over at the moment.
fn idle(conn: &Mutex<Connection>) -> Option<MutexGuard<'_, Connection>> {
    match conn.try_lock() {
        Ok(conn) => Some(conn),
        Err(TryLockError::Poisoned(conn)) => Some(conn.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Whoever is idle waits here for the next read, one at a time.
fn next(reads: &Mutex<Receiver<Read>>) -> Option<Read> {
    reads.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

impl Drop for Readers {
    fn drop(&mut self) {
        let Way::Threads { queue, threads, .. } = &mut self.way else { return };
        drop(queue.take());
        for thread in threads.drain(..) {
            // It only fails when the thread panicked, which has been printed.
            let _ = thread.join();
        }
    }
}
