//! Work for the store's threads, of any type: it travels there, and comes back with what it has done.
//!
//! The threads, their queues and channels know only [`Work`], so that all of that exists once and not once for each
//! of the store's operations. What comes back is freed on the caller's thread, too: the allocator keeps memory for the
//! thread that frees it, and the store's threads allocate nothing of that kind.

use std::{any::Any, mem, path::Path};

use super::{
    error::{Fault, StoreError, guarded},
    sql::Connection,
};

/// Something to do with a connection. What it has done is kept in it.
pub(super) trait Work: Any + Send {
    /// Does it.
    ///
    /// # Errors
    /// It failed, and has done nothing that counts.
    fn run(&mut self, conn: &Connection) -> Result<(), Fault>;
}

/// Work and how it ended, for whoever waits for it.
pub(super) type Answered = (Result<(), StoreError>, Box<dyn Work>);

/// Does the work, and turns its panic into an error.
pub(super) fn run(work: &mut dyn Work, conn: &Connection, path: &Path) -> Result<(), StoreError> {
    guarded(|| work.run(conn)).map_err(|fault| fault.at(path))
}

/// Returns the work that was waited for, if it did not fail. The store is closed where nobody answers.
pub(super) fn ended<E>(answered: Result<Answered, E>) -> Result<Box<dyn Work>, StoreError> {
    let (ended, work) = answered.map_err(|_| StoreError::Closed)?;
    ended.map(|()| work)
}

/// Work that may run several times, of which the last one counts.
pub(super) struct Repeated<T, F> {
    work: F,
    done: Option<T>,
}

impl<T, F> Repeated<T, F>
where
    T: Send + 'static,
    F: Fn(&Connection) -> Result<T, Fault> + Send + 'static,
{
    pub(super) fn new(work: F) -> Box<Self> {
        Box::new(Repeated { work, done: None })
    }

    /// Returns what it has done.
    pub(super) fn done(work: Box<dyn Work>) -> Result<T, StoreError> {
        let work: Box<dyn Any> = work;
        work.downcast::<Self>().ok().and_then(|work| work.done).ok_or(StoreError::Closed)
    }
}

impl<T, F> Work for Repeated<T, F>
where
    T: Send + 'static,
    F: Fn(&Connection) -> Result<T, Fault> + Send + 'static,
{
    fn run(&mut self, conn: &Connection) -> Result<(), Fault> {
        self.done = None;
        self.done = Some((self.work)(conn)?);
        Ok(())
    }
}

/// Work that runs once.
pub(super) enum Once<T, F> {
    Waits(F),
    Done(T),
    Failed,
}

impl<T, F> Once<T, F>
where
    T: Send + 'static,
    F: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
{
    pub(super) fn new(work: F) -> Box<Self> {
        Box::new(Once::Waits(work))
    }

    /// Returns what it has done.
    pub(super) fn done(work: Box<dyn Work>) -> Result<T, StoreError> {
        let work: Box<dyn Any> = work;
        match work.downcast::<Self>().map(|work| *work) {
            Ok(Once::Done(done)) => Ok(done),
            Ok(Once::Waits(_) | Once::Failed) | Err(_) => Err(StoreError::Closed),
        }
    }
}

impl<T, F> Work for Once<T, F>
where
    T: Send + 'static,
    F: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
{
    fn run(&mut self, conn: &Connection) -> Result<(), Fault> {
        if let Once::Waits(work) = mem::replace(self, Once::Failed) {
            *self = Once::Done(work(conn)?);
        }
        Ok(())
    }
}
