//! One thread writes. What arrives while it commits shares the next commit.
//!
//! A commit waits for the disk (about 0.3 ms); what is in it hardly matters. So the writer takes
//! everything that is waiting into one transaction, and answers nobody before it is committed. Each
//! operation has a savepoint of its own: one that fails is undone alone.

use std::{
    path::{Path, PathBuf},
    sync::mpsc::{self, Receiver, Sender},
    thread::{self, JoinHandle},
};

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::error::{Fault, StoreError};

/// How many operations one commit takes at most, so that the first does not wait for ever.
const MAX_GROUP: usize = 256;

/// The writer thread. Dropping it lets what is queued finish.
pub(super) struct Writer {
    queue: Option<Sender<Box<dyn Operation>>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(super) fn start(conn: Connection, path: PathBuf) -> std::io::Result<Self> {
        let (queue, operations) = mpsc::channel();
        let thread = thread::Builder::new().name("store-writer".into()).spawn(move || {
            while let Ok(first) = operations.recv() {
                commit_group(&conn, &path, first, &operations);
            }
        })?;
        Ok(Writer { queue: Some(queue), thread: Some(thread) })
    }

    /// Runs `work` in a transaction, and returns once that is committed. When the returned future is
    /// dropped the work is done all the same.
    pub(super) async fn write<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        let (caller, answer) = oneshot::channel();
        let operation = Box::new(Pending { work: Some(work), result: None, caller });
        let queue = self.queue.as_ref().ok_or(StoreError::Closed)?;
        queue.send(operation).map_err(|_| StoreError::Closed)?;
        answer.await.map_err(|_| StoreError::Closed)?
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.queue.take());
        if let Some(thread) = self.thread.take() {
            // It only fails when the thread panicked, which has been printed.
            let _ = thread.join();
        }
    }
}

/// One caller's part of a group.
trait Operation: Send {
    /// Does the work, inside the group's transaction.
    ///
    /// # Errors
    /// It failed, and left nothing behind.
    fn run(&mut self, conn: &Connection, path: &Path) -> Result<(), StoreError>;

    /// Tells the caller, now that the fate of the transaction is known.
    fn answer(self: Box<Self>, committed: Result<(), StoreError>);
}

struct Pending<T, F> {
    work: Option<F>,
    result: Option<Result<T, StoreError>>,
    caller: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> Operation for Pending<T, F>
where
    T: Send,
    F: FnOnce(&Connection) -> Result<T, Fault> + Send,
{
    fn run(&mut self, conn: &Connection, path: &Path) -> Result<(), StoreError> {
        let Some(work) = self.work.take() else { return Ok(()) };
        let result = in_savepoint(conn, work).map_err(|fault| fault.at(path));
        let outcome = result.as_ref().map(|_| ()).map_err(Clone::clone);
        self.result = Some(result);
        outcome
    }

    fn answer(self: Box<Self>, committed: Result<(), StoreError>) {
        let answer = match (self.result, committed) {
            (Some(Ok(_)) | None, Err(lost)) => Err(lost),
            (Some(result), _) => result,
            (None, Ok(())) => Err(StoreError::Closed),
        };
        // A caller that has gone away does not need to know.
        let _ = self.caller.send(answer);
    }
}

fn commit_group(conn: &Connection, path: &Path, first: Box<dyn Operation>, queue: &Receiver<Box<dyn Operation>>) {
    let mut group: Vec<Box<dyn Operation>> = Vec::new();
    let run_all = || -> Result<(), StoreError> {
        let mut next = Some(first);
        let begun = execute(conn, "BEGIN IMMEDIATE").map_err(|fault| fault.at(path));
        while let Some(mut operation) = next {
            let ran = begun.clone().and_then(|()| operation.run(conn, path));
            group.push(operation);
            // The transaction never began, or a full disk made SQLite give it up: all of the group is lost.
            if conn.is_autocommit() {
                return Err(ran.err().unwrap_or(StoreError::Closed));
            }
            next = if group.len() < MAX_GROUP { queue.try_recv().ok() } else { None };
        }
        execute(conn, "COMMIT").map_err(|fault| fault.at(path))
    };
    let committed = run_all();
    if !conn.is_autocommit() {
        // The commit failed and the transaction is still open. If this fails too, the next group's BEGIN says so.
        let _ = execute(conn, "ROLLBACK");
    }
    for operation in group {
        operation.answer(committed.clone());
    }
}

fn in_savepoint<T>(conn: &Connection, work: impl FnOnce(&Connection) -> Result<T, Fault>) -> Result<T, Fault> {
    execute(conn, "SAVEPOINT operation")?;
    match work(conn) {
        Ok(value) => {
            execute(conn, "RELEASE operation")?;
            Ok(value)
        }
        Err(fault) => {
            if !conn.is_autocommit() {
                let undone = execute(conn, "ROLLBACK TO operation").and_then(|()| execute(conn, "RELEASE operation"));
                if undone.is_err() {
                    // Half an operation must never be committed with its neighbours.
                    execute(conn, "ROLLBACK")?;
                }
            }
            Err(fault)
        }
    }
}

fn execute(conn: &Connection, sql: &str) -> Result<(), Fault> {
    conn.prepare_cached(sql)?.execute([])?;
    Ok(())
}
