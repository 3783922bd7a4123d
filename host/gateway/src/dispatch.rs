//! Who works on what: many conversations at once, one turn at a time in each.
//!
//! The stored inbox is the only truth about what is to be answered; the [`queues`] here are a cache of it that may
//! lose anything without a message being lost:
//!
//! - [`intake`] stores a message and queues it, in a task of its own: whoever stopped waiting, what is stored is
//!   worked on. A message that comes again while it is open is queued again, which changes nothing where it is.
//! - [`worker`] takes a conversation's messages through their turns, in [`batch`]es. A turn that is held up by
//!   something that passes is tried again, without keeping anybody else from working; one that
//!   panics is tried once more; one that cannot go on is [parked](parking), and the conversation goes on without it.
//! - [`interrupt`] has a turn begun anew that people have changed something about.
//! - [`hosts`] takes up what another host has left that is gone, where several share a database.
//! - [`sweep`] looks every few seconds for open messages that nobody works on. There are none, or something above
//!   is broken: it says so, counts them, and has them worked on.
//!
//! What a turn does is none of this module's business; it knows them as [`Turns`].

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
    ledger::Event,
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

pub use batch::Batch;
pub use stuck::TurnFailure;

use queues::{EnqueueOutcome, QueuedMessage, Queues};

/// Turns that run at once; more wait their turn.
pub const MAX_RUNNING_TURNS: usize = 256;

/// How long running turns get to finish once the gateway is told to stop.
pub const DRAIN_TIME: Duration = Duration::from_secs(30);

/// What the dispatcher needs of those whose turns it runs.
#[async_trait]
pub trait Turns: Send + Sync {
    /// Takes messages that are answered together, usually one, through their turn. Running it again for messages
    /// that are done with is harmless.
    ///
    /// # Errors
    /// The turn did not come to its end. What it has done is stored.
    async fn run(&self, batch: &Batch) -> Result<(), TurnFailure>;

    /// Tells the person, and the admins, of a message that is set aside. False where the person could not be
    /// reached now and may be later.
    async fn tell_parked(&self, parked: &Parked) -> bool;

    /// Notes an event.
    fn note(&self, event: Event);
}

/// Queues, workers, and what becomes of turns that do not come to their end.
pub struct Dispatcher {
    clock: Clock,
    turns: Arc<dyn Turns>,
    store: Store,
    queue: QueueConfig,
    queues: Arc<Mutex<Queues>>,
    /// Workers and messages that are being stored; all of them end before the gateway does.
    tasks: TaskTracker,
    permits: Semaphore,
    /// Cancelled when nothing new may begin.
    stop: CancellationToken,
    /// Held while somebody is told of a parked message, and while parked messages are taken up.
    telling: tokio::sync::Mutex<()>,
    /// Turns that came to their end.
    finished: AtomicU64,
    /// What was last said to hold a turn up, and how many had come to their end by then.
    told: Mutex<Option<(String, u64)>>,
    /// Messages that only the sweep has found.
    swept: AtomicU64,
    /// Why the gateway cannot go on.
    ended: OnceLock<Failure>,
}

impl Dispatcher {
    /// A dispatcher with nothing to do yet. Its work is tracked by `tasks`.
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

    /// Goes on with whatever an earlier run left unfinished, and begins to sweep, and to look after other hosts. What the store can no longer
    /// read is parked. The task ends with the dispatcher's `stop`, or when it is aborted.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn start(self: &Arc<Self>) -> Result<JoinHandle<()>, StoreError> {
        let open = self.store.open_work().await?;
        for (inbox, why) in open.unreadable {
            self.park(inbox, &why).await;
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

    /// Takes parked messages up again, those of one conversation or all.
    ///
    /// # Errors
    /// They stay parked.
    pub async fn retry(self: &Arc<Self>, key: Option<&SessionKey>) -> Result<Unparked, StoreError> {
        // Whoever is being told of a message is told before its answer comes.
        let _telling = self.telling.lock().await;
        let unparked = self.store.unpark(key, self.clock.now_ms()).await?;
        self.enter_all(unparked.pending.clone());
        Ok(unparked)
    }

    /// Waits for the turns: all of them at the end of the input, those that have begun when stopped.
    ///
    /// # Errors
    /// They did not finish in time, or the gateway ends because it cannot go on.
    pub async fn drain(&self) -> Result<(), Failure> {
        self.tasks.close();
        let stopped = async {
            self.stop.cancelled().await;
            tokio::time::sleep(DRAIN_TIME).await;
        };
        let drained = tokio::select! {
            biased;
            () = self.tasks.wait() => Ok(()),
            () = stopped => Err(Failure::new(format!(
                "{} tasks did not finish within {} s",
                self.tasks.len(),
                DRAIN_TIME.as_secs()
            ))
            .hint("they are stored and go on at the next start")),
        };
        match self.ended.get() {
            Some(why) => Err(why.clone()),
            None => drained,
        }
    }

    /// Returns once the queues could be had, which nobody keeps for longer than a moment.
    pub async fn prove_alive(&self) {
        let queues = Arc::clone(&self.queues);
        offload(move || drop(queues::lock(&queues))).await;
    }

    /// How many messages only the sweep has found since the start.
    pub fn swept(&self) -> u64 {
        self.swept.load(Ordering::Relaxed)
    }

    /// Queues a stored message, and gives its conversation a worker if it has none. Harmless for one that is queued
    /// or being worked on.
    fn enter(self: &Arc<Self>, pending: Pending) {
        self.enter_all([pending]);
    }

    /// The same for several. No worker begins before all of them are queued: those that belong together are seen
    /// together, and in their order.
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

    /// Ends the gateway: it cannot go on.
    fn end(&self, why: Failure) {
        tracing::error!("the gateway is stopping: {}", why.message());
        let _ = self.ended.set(why);
        self.stop.cancel();
    }
}
