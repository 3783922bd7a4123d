//! The writer: one thread writes, and operations that arrive while it commits share the next commit.
//!
//! A commit waits for the disk (about 0.3 ms), almost regardless of how much it contains. So the writer takes all
//! waiting operations into one transaction, and answers no caller before that is committed.
//!
//! An operation that fails is undone alone. Almost none fails after it has written something, and a savepoint for
//! each costs more than what most of them write: SQLite keeps a copy of every page, and writes out its full-text
//! index at each savepoint. So all operations run without savepoints; if a failed one leaves something behind, the
//! transaction is rolled back, and its operations run again with savepoints. An operation may therefore run twice,
//! and must do nothing but read and write the database.
//!
//! For the same reason no statement of an ordinary turn may be one that SQLite would have to undo by itself: one
//! that writes several rows, or returns what it has written (`RETURNING`), and may fail in the middle. The
//! full-text index is written out before each such statement, although it does not change it. So a turn checks
//! first, and writes row by row.
//!
//! A PostgreSQL database costs a round trip for each query. What the operations of a group will query is queried
//! for all of them at once, as far as it is [known in advance](Prefetch).
//!
//! The writer answers only for the file that the next start will find: see [`OpenFiles`].
//!
//! In a single-threaded runtime that has to run everything in one order, a task does the same.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    iter,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use pmk_system::threads::{Pace, Threads};
use tokio::{
    runtime::Handle,
    sync::{oneshot, watch},
};

use super::{
    error::{Fault, StoreError, guarded},
    files::OpenFiles,
    hosts,
    sql::{self, Connection, Postgres, Prefetched},
    trouble::Trouble,
    work::{self, Answered, Repeated, Work},
};

/// How many operations one commit takes at most, so that the first one does not wait for ever.
const MAX_GROUP: usize = 256;

/// How often an idle store is checked, so that a loss is reported before something is written in vain.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// The writer. Dropping it lets queued operations finish.
pub(super) struct Writer {
    queue: Queue,
    lost: watch::Receiver<Option<StoreError>>,
    trouble: Arc<Trouble>,
}

/// What is known of an operation before it runs.
pub(super) enum Prefetch {
    /// Nothing: the queries of later operations are made after it has run.
    None,
    /// It invalidates no prefetched rows of other operations, or declares which it
    /// [invalidates](sql::Invalidation).
    Narrow,
    /// As `Narrow`; and these queries of it can be made in advance.
    Asks(Ask),
}

type Ask = Box<dyn Fn(&Connection) -> Result<(), Fault> + Send>;

impl Prefetch {
    pub(super) fn asks(ask: impl Fn(&Connection) -> Result<(), Fault> + Send + 'static) -> Prefetch {
        Prefetch::Asks(Box::new(ask))
    }
}

/// What runs the queued operations.
enum Queue {
    Thread { operations: Option<Sender<Operation>>, thread: Option<JoinHandle<()>> },
    Task(Arc<Task>),
}

impl Writer {
    pub(super) fn start(
        conn: Connection,
        path: PathBuf,
        files: Option<OpenFiles>,
        threads: Threads,
    ) -> std::io::Result<Self> {
        let (lose, lost) = watch::channel(None);
        let trouble = Arc::<Trouble>::default();
        let hand = WriterLoop { conn, path, files, has_looked: Cell::new(false), lose, trouble: Arc::clone(&trouble) };
        let queue = match threads {
            Threads::Own => {
                let (operations, queued) = mpsc::channel();
                let thread = thread::Builder::new().name("store-writer".into()).spawn(move || hand.work(&queued))?;
                Queue::Thread { operations: Some(operations), thread: Some(thread) }
            }
            Threads::None(pace) => Queue::Task(Task::start(hand, pace)),
        };
        Ok(Writer { queue, lost, trouble })
    }

    /// Returns what keeps things from being stored, if anything does.
    pub(super) fn trouble(&self) -> &Trouble {
        &self.trouble
    }

    /// Waits until the store is lost, and returns how; for ever if it is not lost.
    pub(super) async fn lost(&self) -> StoreError {
        let mut lost = self.lost.clone();
        let how = lost.wait_for(Option::is_some).await.ok().and_then(|how| how.clone());
        // The thread ends only with the store, unless it has panicked.
        how.unwrap_or(StoreError::Closed)
    }

    /// Runs `work` in a transaction, after everything that was queued before this call; the returned future waits
    /// until that is committed. The work runs even if the future is dropped.
    pub(super) fn write<T, F>(
        &self,
        prefetch: Prefetch,
        work: F,
    ) -> impl Future<Output = Result<T, StoreError>> + Send + use<T, F>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        let queued = self.queue_answered(prefetch, Repeated::new(work));
        async move { Repeated::<T, F>::done(work::ended(queued?.await)?) }
    }

    /// As [`write`](Writer::write), for a thread that may block; panics in the async runtime.
    pub(super) fn write_waiting<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        let mut answer = self.queue_answered(Prefetch::None, Repeated::new(work))?;
        let work = match &self.queue {
            Queue::Thread { .. } => work::ended(answer.blocking_recv()),
            Queue::Task(task) => {
                task.commit_all();
                work::ended(answer.try_recv())
            }
        };
        Repeated::<T, F>::done(work?)
    }

    /// Runs `work` in a transaction, and calls `answer` with how it ended on the writer's thread once the transaction
    /// has ended.
    ///
    /// # Errors
    /// The writer has ended: neither is called.
    pub(super) fn queue<F>(
        &self,
        prefetch: Prefetch,
        work: F,
        answer: impl FnOnce(Result<(), StoreError>) + Send + 'static,
    ) -> Result<(), StoreError>
    where
        F: Fn(&Connection) -> Result<(), Fault> + Send + 'static,
    {
        self.take_in(prefetch, Repeated::new(work), Answer::Call(Box::new(answer)))
    }

    fn queue_answered(
        &self,
        prefetch: Prefetch,
        work: Box<dyn Work>,
    ) -> Result<oneshot::Receiver<Answered>, StoreError> {
        let (caller, answer) = oneshot::channel();
        self.take_in(prefetch, work, Answer::Send(caller))?;
        Ok(answer)
    }

    fn take_in(&self, prefetch: Prefetch, work: Box<dyn Work>, answer: Answer) -> Result<(), StoreError> {
        let operation = Operation { prefetch, prefetched: None, work, result: None, answer };
        match &self.queue {
            Queue::Thread { operations, .. } => {
                operations.as_ref().ok_or(StoreError::Closed)?.send(operation).map_err(|_| StoreError::Closed)
            }
            Queue::Task(task) => {
                task.take_in(operation);
                Ok(())
            }
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        match &mut self.queue {
            Queue::Thread { operations, thread } => {
                drop(operations.take());
                if let Some(thread) = thread.take() {
                    // This fails only if the thread panicked, which has been printed.
                    let _ = thread.join();
                }
            }
            Queue::Task(task) => {
                task.commit_all();
                task.hand().leave();
            }
        }
    }
}

/// Runs the writer as tasks of a runtime: one task commits whatever is queued until it runs.
struct Task {
    hand: Mutex<WriterLoop>,
    queued: Mutex<VecDeque<Operation>>,
    pace: Pace,
}

impl Task {
    fn start(hand: WriterLoop, pace: Pace) -> Arc<Task> {
        let gives_signs = hand.files.is_none();
        let task = Arc::new(Task { hand: Mutex::new(hand), queued: Mutex::default(), pace });
        if gives_signs && let Ok(runtime) = Handle::try_current() {
            let task = Arc::downgrade(&task);
            runtime.spawn(async move {
                loop {
                    tokio::time::sleep(hosts::SIGN_EVERY).await;
                    let Some(task) = task.upgrade() else { return };
                    task.hand().look_idly();
                }
            });
        }
        task
    }

    fn take_in(self: &Arc<Self>, operation: Operation) {
        let is_first = {
            let mut queued = self.queued();
            queued.push_back(operation);
            queued.len() == 1
        };
        // Outside of a runtime, what is queued is committed when a caller waits for it.
        if is_first && let Ok(runtime) = Handle::try_current() {
            let task = Arc::clone(self);
            runtime.spawn(async move {
                tokio::time::sleep((task.pace)()).await;
                task.commit_all();
            });
        }
    }

    fn commit_all(&self) {
        let hand = self.hand();
        hand.has_looked.set(false);
        let next = || self.queued().pop_front();
        while let Some(first) = next() {
            hand.commit_group(first, next);
        }
    }

    fn hand(&self) -> MutexGuard<'_, WriterLoop> {
        self.hand.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn queued(&self) -> MutexGuard<'_, VecDeque<Operation>> {
        self.queued.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One caller's part of a group.
struct Operation {
    prefetch: Prefetch,
    prefetched: Option<Prefetched>,
    work: Box<dyn Work>,
    /// How it ended when it ran last.
    result: Option<Result<(), StoreError>>,
    answer: Answer,
}

/// Who is told how an operation ended.
enum Answer {
    /// A caller, who also gets the work back.
    Send(oneshot::Sender<Answered>),
    Call(Box<dyn FnOnce(Result<(), StoreError>) + Send>),
}

impl Operation {
    /// Makes its queries in advance. Returns whether those of the next operations may be made in advance, too,
    /// before this one runs.
    fn prefetch(&mut self, database: &Postgres, conn: &Connection) -> bool {
        if let Prefetch::Asks(ask) = &self.prefetch {
            // An error of a query in advance occurs again when the rows are needed.
            self.prefetched = Some(database.prefetching(|| guarded(|| ask(conn))));
        }
        !matches!(self.prefetch, Prefetch::None)
    }

    /// Runs the work inside the group's transaction; replaces the result of an earlier run.
    ///
    /// # Errors
    /// It failed.
    fn run(&mut self, conn: &Connection, path: &Path, undoing: Undoing) -> Result<(), StoreError> {
        // Prefetched rows belong to the transaction that the group was begun with.
        let prefetched = self.prefetched.take().filter(|_| undoing == Undoing::Together);
        let mut run = || work::run(&mut *self.work, conn, path);
        let ran = match (conn, prefetched) {
            (Connection::Postgres(database), Some(prefetched)) => database.with_prefetched(prefetched, run),
            _ => run(),
        };
        // An operation that is undone alone must also report its errors alone.
        let settled = |()| match undoing {
            Undoing::Alone => conn.settle().map_err(|error| Fault::from(error).at(path)),
            Undoing::Together => Ok(()),
        };
        self.result.insert(ran.and_then(settled)).clone()
    }

    /// Whether it has a result.
    fn has_run(&self) -> bool {
        self.result.is_some()
    }

    /// Discards the result of an earlier run.
    fn forget(&mut self) {
        self.result = None;
    }

    /// Tells the caller how it ended, now that the transaction has ended.
    fn answer(self, committed: Result<(), StoreError>) {
        let result = match (self.result, committed) {
            (Some(Ok(())) | None, Err(lost)) => Err(lost),
            (Some(result), _) => result,
            (None, Ok(())) => Err(StoreError::Closed),
        };
        match self.answer {
            // A caller that has gone away does not need to know.
            Answer::Send(caller) => drop(caller.send((result, self.work))),
            Answer::Call(answer) => answer(result),
        }
    }
}

/// How the writes of a failed operation are undone.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Undoing {
    /// By rolling back the whole transaction.
    Together,
    /// By a savepoint of its own.
    Alone,
}

/// The state of the writer's loop.
struct WriterLoop {
    conn: Connection,
    path: PathBuf,
    /// The open files, for a store in a file.
    files: Option<OpenFiles>,
    /// Whether the files were checked, and nothing was waited for since.
    has_looked: Cell<bool>,
    /// Reports that the store is lost.
    lose: watch::Sender<Option<StoreError>>,
    trouble: Arc<Trouble>,
}

impl WriterLoop {
    fn work(&self, queue: &Receiver<Operation>) {
        let look_every = if self.files.is_some() { LOOK_EVERY } else { hosts::SIGN_EVERY };
        loop {
            let next = match queue.try_recv() {
                Err(TryRecvError::Empty) => {
                    self.has_looked.set(false);
                    queue.recv_timeout(look_every)
                }
                waiting => waiting.map_err(|_| RecvTimeoutError::Disconnected),
            };
            match next {
                Ok(first) => self.commit_group(first, || queue.try_recv().ok()),
                Err(RecvTimeoutError::Timeout) => self.look_idly(),
                Err(RecvTimeoutError::Disconnected) => return self.leave(),
            }
        }
    }

    /// Does what is due while there is nothing to write.
    fn look_idly(&self) {
        self.tell_loss(&self.look().and_then(|()| self.give_sign()));
    }

    fn leave(&self) {
        if let Err(fault) = hosts::leave(&self.conn) {
            tracing::warn!(error = %fault.at(&self.path), "other hosts wait until the lease of this host expires");
        }
    }

    fn tell_loss(&self, outcome: &Result<(), StoreError>) {
        if let Err(error) = outcome
            && error.is_lost()
        {
            if let Connection::Postgres(database) = &self.conn {
                database.link().is_heard_no_more();
            }
            self.lose.send_if_modified(|how| how.is_none() && how.replace(error.clone()).is_none());
        }
    }

    /// Notes whether things can be stored, which an empty transaction does not say.
    fn note_trouble(&self, committed: &Result<(), StoreError>, group: &[Operation], changes_before: u64) {
        let failed = group.iter().filter_map(|operation| operation.result.as_ref()?.as_ref().err());
        match committed.as_ref().err().into_iter().chain(failed).find(|error| error.is_of_disk()) {
            Some(error) => self.trouble.begins(error),
            None if committed.is_ok() && self.conn.changes() != changes_before => self.trouble.ends(),
            None => {}
        }
    }

    fn commit_group(&self, first: Operation, next: impl Fn() -> Option<Operation>) {
        let waiting = RefCell::new(VecDeque::from([first]));
        let more = || waiting.borrow_mut().pop_front().or_else(&next);
        loop {
            let Some(first) = waiting.borrow_mut().pop_front() else { return };
            let mut group: Vec<Operation> = Vec::new();
            let changes = self.conn.changes();
            let committed = self.run_all(first, &mut group, more);
            if !self.conn.is_autocommit() {
                // The commit failed and the transaction is still open. If this fails too, the next group's BEGIN says so.
                let _ = self.said(self.conn.roll_back());
            }
            self.tell_loss(&committed);
            self.note_trouble(&committed, &group, changes);
            if committed.as_ref().is_err_and(|error| !error.is_lost()) {
                // Operations that have not run yet wait for the next transaction.
                let mut group = group.extract_if(1.., |operation| !operation.has_run()).collect();
                waiting.borrow_mut().append(&mut group);
            }
            for operation in group {
                operation.answer(committed.clone());
            }
        }
    }

    fn run_all(
        &self,
        first: Operation,
        group: &mut Vec<Operation>,
        more: impl Fn() -> Option<Operation>,
    ) -> Result<(), StoreError> {
        // Checked before the transaction, so that nothing is written to a truncated file; and after it, so that
        // everything written is where it will be found. The check after the last commit is still valid if this
        // operation was already waiting.
        let looked = if self.has_looked.get() { Ok(()) } else { self.look() };
        let begun = looked.and_then(|()| self.said(self.conn.begin()));
        group.push(first);
        begun?;
        if let Connection::Postgres(database) = &self.conn {
            group.extend(iter::from_fn(&more).take(MAX_GROUP - 1));
            self.prefetch(database, group)?;
        }
        let (mut undoing, mut at) = (Undoing::Together, 0);
        while at < group.len() {
            if self.run(&mut group[at], undoing)? {
                undoing = Undoing::Alone;
                self.run_again(&mut group[..=at])?;
            }
            at += 1;
            // On a database other hosts wait for this transaction, so operations that arrive meanwhile go into the
            // next one.
            if self.files.is_some() && at < MAX_GROUP {
                group.extend(more());
            }
        }
        match self.conn.commit() {
            // Running each operation alone shows which one has failed.
            Err(sql::Error::Undone(_)) if undoing == Undoing::Together => {
                self.run_again(group)?;
                self.said(self.conn.commit())?;
            }
            committed => self.said(committed)?,
        }
        // It is committed: if the check itself fails, the result of the last check holds.
        let looked = self.look();
        self.has_looked.set(looked.is_ok());
        looked.or_else(|error| if error.is_lost() { Err(error) } else { Ok(()) })
    }

    /// Makes the queries of a group in advance.
    ///
    /// # Errors
    /// The connection was lost, and the transaction with it: later statements would run outside of a transaction.
    fn prefetch(&self, database: &Postgres, operations: &mut [Operation]) -> Result<(), StoreError> {
        // A single operation gains nothing by it.
        if operations.len() == 1 {
            return Ok(());
        }
        for operation in operations {
            let goes_on = operation.prefetch(database, &self.conn);
            if self.conn.is_autocommit() {
                return self.said(Err(sql::Error::Away("the connection was lost".to_owned())));
            }
            if !goes_on {
                break;
            }
        }
        Ok(())
    }

    /// Rolls back the transaction, and runs its operations again, each with a savepoint.
    fn run_again(&self, group: &mut [Operation]) -> Result<(), StoreError> {
        group.iter_mut().for_each(|operation| operation.forget());
        if !self.conn.is_autocommit() {
            self.said(self.conn.roll_back())?;
        }
        self.said(self.conn.begin())?;
        for operation in group {
            self.run(operation, Undoing::Alone)?;
        }
        Ok(())
    }

    /// Runs an operation; returns whether it has failed and its writes still have to be undone.
    ///
    /// # Errors
    /// The whole transaction is lost.
    fn run(&self, operation: &mut Operation, undoing: Undoing) -> Result<bool, StoreError> {
        let WriterLoop { conn, path, .. } = self;
        let before = conn.changes();
        if undoing == Undoing::Alone {
            self.said(conn.savepoint("SAVEPOINT operation"))?;
        }
        let ran = operation.run(conn, path, undoing);
        // On a full disk, SQLite has rolled the transaction back.
        if conn.is_autocommit() {
            return Err(ran.err().unwrap_or(StoreError::Closed));
        }
        let failed = match ran {
            Err(error) if error.is_lost() => return Err(error),
            ran => ran.is_err(),
        };
        match undoing {
            Undoing::Together => Ok(failed && conn.changes() != before),
            Undoing::Alone => {
                if failed {
                    self.said(conn.savepoint("ROLLBACK TO operation"))?;
                }
                self.said(conn.savepoint("RELEASE operation"))?;
                Ok(false)
            }
        }
    }

    /// Checks that the database files are still the ones that are open.
    fn look(&self) -> Result<(), StoreError> {
        self.files.as_ref().map_or(Ok(()), OpenFiles::check)
    }

    /// Gives a sign of life, where this is a host of a database.
    fn give_sign(&self) -> Result<(), StoreError> {
        match &self.conn {
            Connection::Postgres(conn) if conn.link().host() != 0 => {
                self.said(self.conn.begin().and_then(|()| self.conn.commit()))
            }
            _ => Ok(()),
        }
    }

    fn said(&self, answer: sql::Result<()>) -> Result<(), StoreError> {
        answer.map_err(|error| Fault::from(error).at(&self.path))
    }
}
