//! One thread writes. What arrives while it commits shares the next commit.
//!
//! A commit waits for the disk (about 0.3 ms); what is in it hardly matters. So the writer takes
//! everything that is waiting into one transaction, and answers nobody before it is committed.
//!
//! An operation that fails is undone alone. Nearly none fails after it has written something, and a savepoint for each
//! costs more than what most of them write: SQLite keeps a copy of every page, and its index of words is written out at
//! each. So all are run without; where one leaves something behind, the transaction is undone, and what it held is run
//! again with savepoints. An operation may therefore be run twice, and does nothing but read and write the database.
//!
//! For the same reason no statement of an ordinary turn may be one that SQLite would have to undo by itself: one that writes
//! several rows, or says what it has written (`RETURNING`), and may fail amid them. The index of words is written out before
//! each of those, though it changes nothing. So a turn looks first, and writes row by row.
//!
//! A database is waited for each time that something is asked of it. What the operations of a group will ask is asked for all of
//! them at once, as far as that is [known](Prefetch).
//!
//! It answers only for the file that the next start will find: see [`OpenFiles`].
//!
//! In a runtime of one thread that is to do everything in one order, a task does the same.

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
};

/// How many operations one commit takes at most, so that the first does not wait for ever.
const MAX_GROUP: usize = 256;

/// How often a store that nobody writes to is looked at: people are told before they have written in vain.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// What writes. Dropping it lets what is queued finish.
pub(super) struct Writer {
    queue: Queue,
    lost: watch::Receiver<Option<StoreError>>,
}

type Queued = Box<dyn Operation>;

/// What is known of an operation before it is run.
pub(super) enum Prefetch {
    /// Nothing: what those after it will ask is asked once it is done.
    None,
    /// It changes nothing that others ask ahead, or says that it has [moved](sql::Invalidation).
    Narrow,
    /// Nor does this, and it asks ahead what is asked here.
    Asks(Ask),
}

type Ask = Box<dyn Fn(&Connection) -> Result<(), Fault> + Send>;

impl Prefetch {
    pub(super) fn asks(ask: impl Fn(&Connection) -> Result<(), Fault> + Send + 'static) -> Prefetch {
        Prefetch::Asks(Box::new(ask))
    }
}

/// Who works on what is queued.
enum Queue {
    Thread { operations: Option<Sender<Queued>>, thread: Option<JoinHandle<()>> },
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
        let hand = WriterLoop { conn, path, files, has_looked: Cell::new(false), lose };
        let queue = match threads {
            Threads::Own => {
                let (operations, queued) = mpsc::channel();
                let thread = thread::Builder::new().name("store-writer".into()).spawn(move || hand.work(&queued))?;
                Queue::Thread { operations: Some(operations), thread: Some(thread) }
            }
            Threads::None(pace) => Queue::Task(Task::start(hand, pace)),
        };
        Ok(Writer { queue, lost })
    }

    /// Waits until the store is lost, and says how; for ever where it is not.
    pub(super) async fn lost(&self) -> StoreError {
        let mut lost = self.lost.clone();
        let how = lost.wait_for(Option::is_some).await.ok().and_then(|how| how.clone());
        // The thread only ends with the store, unless it has panicked.
        how.unwrap_or(StoreError::Closed)
    }

    /// Has `work` run in a transaction, after whatever was queued before this call; what it returns waits until that is
    /// committed. Where nobody waits the work is done all the same.
    pub(super) fn write<T, F>(
        &self,
        prefetch: Prefetch,
        work: F,
    ) -> impl Future<Output = Result<T, StoreError>> + Send + use<T, F>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        let (caller, answer) = oneshot::channel();
        // A caller that has gone away does not need to know. One that has not gets the work back as well, to be freed where
        // such things are made: the allocator keeps what a thread frees for that thread, and this one makes nothing.
        let queued = self.queue(prefetch, work, |result, work| drop(caller.send((result, work))));
        async move {
            queued?;
            let (result, _work) = answer.await.map_err(|_| StoreError::Closed)?;
            result
        }
    }

    /// The same for a thread that may wait; in the async runtime it panics.
    pub(super) fn write_waiting<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        let (caller, mut answer) = oneshot::channel();
        self.queue(Prefetch::None, work, |result, _| drop(caller.send(result)))?;
        match &self.queue {
            Queue::Thread { .. } => answer.blocking_recv().map_err(|_| StoreError::Closed)?,
            Queue::Task(task) => {
                task.commit_all();
                answer.try_recv().map_err(|_| StoreError::Closed)?
            }
        }
    }

    /// Has `work` run in a transaction, and `answer` called on the writer's thread once it is known what came of it; it gets the
    /// work, too.
    ///
    /// # Errors
    /// There is no writer any more: neither is called.
    pub(super) fn queue<T, F, A>(&self, prefetch: Prefetch, work: F, answer: A) -> Result<(), StoreError>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Result<T, Fault> + Send + 'static,
        A: FnOnce(Result<T, StoreError>, F) + Send + 'static,
    {
        let operation = Box::new(Pending { prefetch, foreseen: None, work, result: None, answer });
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
                    // It only fails when the thread panicked, which has been printed.
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

/// The work as tasks of a runtime: one for whatever is queued until it gets to run.
struct Task {
    hand: Mutex<WriterLoop>,
    queued: Mutex<VecDeque<Queued>>,
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

    fn take_in(self: &Arc<Self>, operation: Queued) {
        let is_first = {
            let mut queued = self.queued();
            queued.push_back(operation);
            queued.len() == 1
        };
        // Outside of a runtime, what is queued is committed when somebody waits for it.
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

    fn queued(&self) -> MutexGuard<'_, VecDeque<Queued>> {
        self.queued.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One caller's part of a group.
trait Operation: Send {
    /// Asks what it will ask. Says whether that may be done for those after it as well, before this one is run.
    fn foresee(&mut self, database: &Postgres, conn: &Connection) -> bool;

    /// Does the work, inside the group's transaction; whatever an earlier run came to is forgotten.
    ///
    /// # Errors
    /// It failed.
    fn run(&mut self, conn: &Connection, path: &Path, undoing: Undoing) -> Result<(), StoreError>;

    /// Whether it was run, and that is not forgotten.
    fn has_run(&self) -> bool;

    /// What an earlier run came to is not true any more.
    fn forget(&mut self);

    /// Tells the caller, now that the fate of the transaction is known.
    fn answer(self: Box<Self>, committed: Result<(), StoreError>);
}

struct Pending<T, F, A> {
    prefetch: Prefetch,
    foreseen: Option<Prefetched>,
    work: F,
    result: Option<Result<T, StoreError>>,
    answer: A,
}

impl<T, F, A> Operation for Pending<T, F, A>
where
    T: Send,
    F: Fn(&Connection) -> Result<T, Fault> + Send,
    A: FnOnce(Result<T, StoreError>, F) + Send,
{
    fn foresee(&mut self, database: &Postgres, conn: &Connection) -> bool {
        if let Prefetch::Asks(ask) = &self.prefetch {
            // What comes of it when it cannot be asked, comes of it again when it is wanted.
            self.foreseen = Some(database.foresee(|| guarded(|| ask(conn))));
        }
        !matches!(self.prefetch, Prefetch::None)
    }

    fn run(&mut self, conn: &Connection, path: &Path, undoing: Undoing) -> Result<(), StoreError> {
        // What was foreseen is of the transaction that the group was begun with.
        let foreseen = self.foreseen.take().filter(|_| undoing == Undoing::Together);
        let work = || {
            let done = match (conn, foreseen) {
                (Connection::Postgres(database), Some(foreseen)) => {
                    database.with_foreseen(foreseen, || (self.work)(conn))
                }
                _ => (self.work)(conn),
            }?;
            // What is undone alone has failed alone.
            if undoing == Undoing::Alone {
                conn.settle()?;
            }
            Ok(done)
        };
        let result = guarded(work).map_err(|fault| fault.at(path));
        let outcome = result.as_ref().map(|_| ()).map_err(Clone::clone);
        self.result = Some(result);
        outcome
    }

    fn has_run(&self) -> bool {
        self.result.is_some()
    }

    fn forget(&mut self) {
        self.result = None;
    }

    fn answer(self: Box<Self>, committed: Result<(), StoreError>) {
        let result = match (self.result, committed) {
            (Some(Ok(_)) | None, Err(lost)) => Err(lost),
            (Some(result), _) => result,
            (None, Ok(())) => Err(StoreError::Closed),
        };
        (self.answer)(result, self.work);
    }
}

/// How what an operation leaves behind when it fails is undone.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Undoing {
    /// By undoing all of the transaction.
    Together,
    /// By a savepoint of its own.
    Alone,
}

/// What writing takes.
struct WriterLoop {
    conn: Connection,
    path: PathBuf,
    /// Those of the database, where it is one of files.
    files: Option<OpenFiles>,
    /// Whether the files were seen where they belong, and nothing was waited for since.
    has_looked: Cell<bool>,
    /// Where it says that the store is lost.
    lose: watch::Sender<Option<StoreError>>,
}

impl WriterLoop {
    fn work(&self, queue: &Receiver<Queued>) {
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

    /// What is to be done though there is nothing to write.
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

    fn commit_group(&self, first: Queued, next: impl Fn() -> Option<Queued>) {
        let waiting = RefCell::new(VecDeque::from([first]));
        let more = || waiting.borrow_mut().pop_front().or_else(&next);
        loop {
            let Some(first) = waiting.borrow_mut().pop_front() else { return };
            let mut group: Vec<Queued> = Vec::new();
            let committed = self.run_all(first, &mut group, more);
            if !self.conn.is_autocommit() {
                // The commit failed and the transaction is still open. If this fails too, the next group's BEGIN says so.
                let _ = self.said(self.conn.roll_back());
            }
            self.tell_loss(&committed);
            if committed.as_ref().is_err_and(|error| !error.is_lost()) {
                // What has not had its turn by then waits for the next.
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
        first: Queued,
        group: &mut Vec<Queued>,
        more: impl Fn() -> Option<Queued>,
    ) -> Result<(), StoreError> {
        // Before it, so that nothing is written to a file that was cut; after it, so that all of it is where it
        // will be found. What was seen after the last is not old where this one was waiting already.
        let looked = if self.has_looked.get() { Ok(()) } else { self.look() };
        let begun = looked.and_then(|()| self.said(self.conn.begin()));
        group.push(first);
        begun?;
        if let Connection::Postgres(database) = &self.conn {
            group.extend(iter::from_fn(&more).take(MAX_GROUP - 1));
            self.foresee(database, group)?;
        }
        let (mut undoing, mut at) = (Undoing::Together, 0);
        while at < group.len() {
            if self.run(&mut *group[at], undoing)? {
                undoing = Undoing::Alone;
                self.run_again(&mut group[..=at])?;
            }
            at += 1;
            // Hosts wait for each other, and what arrives meanwhile for the next transaction.
            if self.files.is_some() && at < MAX_GROUP {
                group.extend(more());
            }
        }
        match self.conn.commit() {
            // Whose it was that has failed is told by running each alone.
            Err(sql::Error::Undone(_)) if undoing == Undoing::Together => {
                self.run_again(group)?;
                self.said(self.conn.commit())?;
            }
            committed => self.said(committed)?,
        }
        // It is committed: where one cannot look, what was seen before holds.
        let looked = self.look();
        self.has_looked.set(looked.is_ok());
        looked.or_else(|error| if error.is_lost() { Err(error) } else { Ok(()) })
    }

    /// # Errors
    /// The connection was lost with that, and the transaction with it: what came after would be in none, and nobody's.
    fn foresee(&self, database: &Postgres, operations: &mut [Queued]) -> Result<(), StoreError> {
        // By itself an operation asks as soon.
        if operations.len() == 1 {
            return Ok(());
        }
        for operation in operations {
            let goes_on = operation.foresee(database, &self.conn);
            if self.conn.is_autocommit() {
                return self.said(Err(sql::Error::Away("the connection was lost".to_owned())));
            }
            if !goes_on {
                break;
            }
        }
        Ok(())
    }

    /// Runs operations anew, whose transaction is undone.
    fn run_again(&self, group: &mut [Queued]) -> Result<(), StoreError> {
        group.iter_mut().for_each(|operation| operation.forget());
        if !self.conn.is_autocommit() {
            self.said(self.conn.roll_back())?;
        }
        self.said(self.conn.begin())?;
        for operation in group {
            self.run(&mut **operation, Undoing::Alone)?;
        }
        Ok(())
    }

    /// Runs an operation, and says whether it has failed and what it left behind is still there.
    ///
    /// # Errors
    /// All of the transaction is lost.
    fn run(&self, operation: &mut dyn Operation, undoing: Undoing) -> Result<bool, StoreError> {
        let WriterLoop { conn, path, .. } = self;
        let before = conn.changes();
        if undoing == Undoing::Alone {
            self.said(conn.savepoint("SAVEPOINT operation"))?;
        }
        let ran = operation.run(conn, path, undoing);
        // A full disk made SQLite give it up.
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

    /// Whether the database is still what is open.
    fn look(&self) -> Result<(), StoreError> {
        self.files.as_ref().map_or(Ok(()), OpenFiles::check)
    }

    /// That this host lives, where it is one of a database.
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
