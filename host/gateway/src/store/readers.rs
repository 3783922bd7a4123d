//! The readers: a few threads, each with a connection of its own, so that a long read blocks neither the writer nor
//! the async runtime. Short reads run on the calling thread over the same connections, because handing them to
//! another thread and back costs more; and so does everything where there are to be no threads.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, TryLockError,
        mpsc::{self, Receiver, Sender},
    },
    thread::{self, JoinHandle},
};

use pmk_system::threads::Threads;
use tokio::{sync::oneshot, task};

use super::{
    error::{Fault, StoreError, guarded},
    sql::Connection,
    work::{self, Answered, Once, Work},
};

/// How many reads can run at once.
const THREADS: usize = 2;

/// Work for a thread, and who waits for it.
struct Read {
    work: Box<dyn Work>,
    caller: oneshot::Sender<Answered>,
}

impl Read {
    fn run(mut self, conn: &Connection, path: &Path) {
        let read = work::run(&mut *self.work, conn, path);
        // A caller that has gone away does not need to know.
        let _ = self.caller.send((read, self.work));
    }
}

/// One connection for each thread.
type Connections = Arc<[Mutex<Connection>]>;

/// The readers. Dropping them lets queued reads finish.
pub(super) struct Readers {
    path: PathBuf,
    way: Way,
}

/// How reads are run.
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
            let (reads, connections, of) = (Arc::clone(&reads), Arc::clone(&connections), path.to_owned());
            let thread = thread::Builder::new().name("store-reader".into()).spawn(move || {
                while let Some(read) = next(&reads) {
                    read.run(&lock(&connections[number]), &of);
                }
            });
            thread.map_err(|error| StoreError::Io { path: path.to_owned(), message: error.to_string() })
        };
        let threads = (0..connections.len()).map(start).collect::<Result<_, _>>()?;
        Ok(Readers { path: path.to_owned(), way: Way::Threads { queue: Some(queue), threads, connections } })
    }

    /// Runs `work` on a connection that sees everything committed before this call.
    pub(super) fn read<T, F>(&self, work: F) -> impl Future<Output = Result<T, StoreError>> + Send + use<T, F>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        let queued = self.queue(Once::new(work));
        async move { Once::<T, F>::done(work::ended(queued?.await)?) }
    }

    /// Runs `work`, which must be short, on the calling thread. `None` where it has found that it would not be
    /// short, or where all connections are in use: then use [`read`](Self::read).
    pub(super) fn read_here<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<Option<T>, Fault>,
    ) -> Result<Option<T>, StoreError> {
        let conn = match &self.way {
            Way::Threads { connections, .. } => connections.iter().find_map(idle),
            Way::Caller(conn) => Some(lock(conn)),
        };
        // A connection over a network is not short; it is waited for on threads that may block.
        let Some(conn) = conn.filter(|conn| matches!(**conn, Connection::Sqlite(_))) else { return Ok(None) };
        guarded(|| work(&conn)).map_err(|fault| fault.at(&self.path))
    }

    /// Decodes rows that were already read.
    pub(super) fn look<T>(&self, work: impl FnOnce() -> Result<T, Fault>) -> Result<T, StoreError> {
        guarded(work).map_err(|fault| fault.at(&self.path))
    }

    /// As [`read`](Self::read), for a thread that may block. On a worker of the async runtime, the worker's other
    /// tasks go on elsewhere meanwhile.
    pub(super) fn read_waiting<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        let mut answer = self.queue(Once::new(work))?;
        let work = match &self.way {
            Way::Threads { .. } => work::ended(task::block_in_place(|| answer.blocking_recv())),
            Way::Caller(_) => work::ended(answer.try_recv()),
        };
        Once::<T, F>::done(work?)
    }

    fn queue(&self, work: Box<dyn Work>) -> Result<oneshot::Receiver<Answered>, StoreError> {
        let (caller, answer) = oneshot::channel();
        let read = Read { work, caller };
        match &self.way {
            Way::Threads { queue, .. } => {
                queue.as_ref().ok_or(StoreError::Closed)?.send(read).map_err(|_| StoreError::Closed)?;
            }
            Way::Caller(conn) => read.run(&lock(conn), &self.path),
        }
        Ok(answer)
    }
}

/// A read that has panicked leaves its connection usable.
fn lock(conn: &Mutex<Connection>) -> MutexGuard<'_, Connection> {
    conn.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks a connection if it is idle.
fn idle(conn: &Mutex<Connection>) -> Option<MutexGuard<'_, Connection>> {
    match conn.try_lock() {
        Ok(conn) => Some(conn),
        Err(TryLockError::Poisoned(conn)) => Some(conn.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// An idle thread waits here for the next read, one at a time.
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
