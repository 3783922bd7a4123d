//! The dispatcher: runs the turns of many conversations concurrently, one at a time in each.
//!
//! The stored inbox is the only source of truth about what is to be answered. The [`queues`] here are a cache of it;
//! losing an entry never loses a message:
//!
//! - [`intake`] stores a message and queues it, in a task of its own, so that a stored message is processed even if
//!   the caller has stopped waiting. A message that arrives again while it is open is queued again, which has no
//!   effect if it is queued already.
//! - [`worker`] takes a conversation's messages through their turns, in [`batch`]es. A turn delayed by a temporary
//!   error is retried without blocking other conversations; one that panics is retried once; one that cannot
//!   continue is [parked](parking), and the conversation goes on without it.
//! - [`interrupt`] restarts a turn that people have changed something about.
//! - [`hosts`] takes over what a host that is gone has left, if several hosts share a database.
//! - [`sweep`] looks every few seconds for open messages that nobody processes. There should be none; if there are,
//!   it logs a warning, counts them, and has them processed.
//!
//! What a turn does is not this module's concern; it knows turns only as [`Turns`].

use std::{
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use pmk_core::SessionKey;
use pmk_system::{clock::Clock, error::Failure, threads::offload};
use tokio::{sync::Semaphore, task::JoinHandle};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    config::QueueConfig,
    ledger::TaggedEvent,
    store::{Parked, Pending, Store, StoreError, Unparked},
};

mod batch;
mod hosts;
mod intake;
mod interrupt;
mod parking;
mod queues;
mod stuck;
mod sweep;
mod worker;

#[cfg(test)]
mod tests;

pub use batch::{AnswerSoFar, Batch};
pub use intake::Arrival;
pub use stuck::TurnFailure;

use queues::{EnqueueOutcome, QueuedMessage, Queues};

/// Turns that run at the same time; further ones wait.
pub const MAX_RUNNING_TURNS: usize = 256;

/// How long running turns may take to finish after the gateway is told to stop.
pub const DRAIN_TIME: Duration = Duration::from_secs(30);

/// How long turns that did not finish in that time may then take to give up: first, an update of what they show ends, and
/// they no longer look for a placeholder. Less than the service manager waits beyond [`DRAIN_TIME`].
const GIVING_UP_TIME: Duration = Duration::from_secs(10);

/// What the dispatcher needs of the code that runs turns.
#[async_trait]
pub trait Turns: Send + Sync {
    /// Takes messages that are answered together (usually one) through their turn. Running it again for finished
    /// messages is harmless.
    ///
    /// # Errors
    /// The turn did not finish. What it has done is stored.
    async fn run(&self, batch: &Batch) -> Result<(), TurnFailure>;

    /// Tells the person and the admins that a message is parked. Returns false if the person could not be
    /// reached now and may be reached later.
    async fn tell_parked(&self, parked: &Parked) -> bool;

    /// Notes an event in the ledger, tagged with the policies that decided.
    fn note(&self, noted: TaggedEvent);
}

/// Queues, workers, and the handling of turns that do not finish.
pub struct Dispatcher {
    clock: Clock,
    turns: Arc<dyn Turns>,
    store: Store,
    queue: QueueConfig,
    queues: Arc<Mutex<Queues>>,
    /// Workers, and messages being stored; all of them end before the gateway does.
    tasks: TaskTracker,
    permits: Semaphore,
    /// Cancelled when nothing new may begin.
    stop: CancellationToken,
    /// Held while somebody is told of a parked message, and while parked messages are taken up
    /// again.
    telling: tokio::sync::Mutex<()>,
    /// Number of finished turns.
    finished: AtomicU64,
    /// The latest logged reason for a delay, and the number of finished turns at that time.
    told: Mutex<Option<(String, u64)>>,
    /// Number of messages that only the sweep has found.
    swept: AtomicU64,
    /// Why the gateway cannot go on.
    ended: OnceLock<Failure>,
}

impl Dispatcher {
    /// Returns a dispatcher with nothing to do yet. Its tasks are tracked by `tasks`.
    pub fn new(
        clock: Clock,
        turns: Arc<dyn Turns>,
        store: Store,
        queue: QueueConfig,
        tasks: TaskTracker,
        stop: CancellationToken,
    ) -> Arc<Dispatcher> {
        Arc::new(Dispatcher {
            clock,
            turns,
            store,
            queue,
            queues: Arc::default(),
            tasks,
            permits: Semaphore::new(MAX_RUNNING_TURNS),
            stop,
            telling: tokio::sync::Mutex::default(),
            finished: AtomicU64::new(0),
            told: Mutex::default(),
            swept: AtomicU64::new(0),
            ended: OnceLock::new(),
        })
    }

    /// Continues what an earlier run left unfinished, and starts the sweep and the monitoring of other hosts. Messages
    /// that the store can no longer read are parked, now or by the sweep. The task ends when the dispatcher's `stop` is
    /// cancelled, or when it is aborted.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn start(self: &Arc<Self>) -> Result<JoinHandle<()>, StoreError> {
        let open = self.store.open_work().await?;
        for (inbox, why) in open.unreadable {
            self.park(inbox, &why, vec![]).await;
        }
        self.enter_all(open.pending);
        let dispatcher = Arc::clone(self);
        let shared = self.store.is_shared().then(|| Arc::clone(self));
        Ok(tokio::spawn(async move {
            let others = async {
                if let Some(dispatcher) = shared {
                    dispatcher.look_after_hosts().await;
                }
            };
            tokio::join!(dispatcher.sweep(), others);
        }))
    }

    /// Takes up parked messages again: those of one conversation, or all. What is for another host is found there. The work
    /// goes on if the caller goes away.
    ///
    /// # Errors
    /// The messages stay parked.
    pub async fn retry(self: &Arc<Self>, key: Option<&SessionKey>) -> Result<Unparked, StoreError> {
        let (dispatcher, key) = (Arc::clone(self), key.cloned());
        let retried = self.tasks.spawn(async move {
            // A person who is being told of a parked message is told before its answer arrives.
            let _telling = dispatcher.telling.lock().await;
            let unparked = dispatcher.store.unpark(key.as_ref(), dispatcher.clock.now_ms()).await?;
            dispatcher.enter_all(unparked.pending.clone());
            Ok::<_, StoreError>(unparked)
        });
        // The task only fails if it panicked; then nothing is known to be reopened.
        retried.await.unwrap_or(Err(StoreError::Closed))
    }

    /// Waits for the turns: for all of them at the end of the input, for the running ones when stopped. What does not
    /// finish in time then gives up, so that its cost is noted, and goes on at the next start, which is no failure: it
    /// was asked for.
    ///
    /// # Errors
    /// The gateway ends because of a failure.
    pub async fn drain(&self) -> Result<(), Failure> {
        self.tasks.close();
        let stopped = async {
            self.stop.cancelled().await;
            tokio::time::sleep(DRAIN_TIME).await;
        };
        let is_drained = tokio::select! {
            biased;
            () = self.tasks.wait() => true,
            () = stopped => false,
        };
        if !is_drained {
            let (tasks, seconds) = (self.tasks.len(), DRAIN_TIME.as_secs());
            tracing::warn!(
                "{tasks} tasks did not finish within {seconds} s; they are stored and go on at the next start"
            );
            queues::lock(&self.queues).interrupt_all();
            let _ = tokio::time::timeout(GIVING_UP_TIME, self.tasks.wait()).await;
        }
        self.ended.get().cloned().map_or(Ok(()), Err)
    }

    /// Returns once the lock on the queues was acquired, which is never held for more than a
    /// moment.
    pub async fn prove_alive(&self) {
        let queues = Arc::clone(&self.queues);
        offload(move || drop(queues::lock(&queues))).await;
    }

    /// Returns how many messages only the sweep has found since the start.
    pub fn swept(&self) -> u64 {
        self.swept.load(Ordering::Relaxed)
    }

    /// Queues a stored message, and starts a worker for its conversation if it has none. Harmless for a message
    /// that is queued or being processed.
    pub fn enter(self: &Arc<Self>, pending: Pending) {
        self.enter_all([pending]);
    }

    /// Does the same for several messages. No worker starts before all of them are queued, so that messages that
    /// belong together are seen together and in order.
    fn enter_all(self: &Arc<Self>, all: impl IntoIterator<Item = Pending>) {
        let mut begin = Vec::new();
        {
            let mut queues = queues::lock(&self.queues);
            for Pending { inbox, key, ts } in all {
                if queues.enter(&key, QueuedMessage { ts, inbox }) == EnqueueOutcome::First {
                    begin.push(key);
                }
            }
        }
        for key in begin {
            let dispatcher = Arc::clone(self);
            self.tasks.spawn(async move { dispatcher.work(key).await });
        }
    }

    /// Stops the gateway because of a failure.
    fn end(&self, why: Failure) {
        tracing::error!("the gateway is stopping: {}", why.message());
        let _ = self.ended.set(why);
        self.stop.cancel();
    }
}
