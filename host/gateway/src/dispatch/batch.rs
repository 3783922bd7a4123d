//! Messages that are answered together: usually one; under `collect` and `steer`, also those that arrived
//! meanwhile.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use pmk_core::SessionKey;
use tokio_util::sync::CancellationToken;

use super::{
    Arrival, Dispatcher,
    queues::{self, Dequeued, Queues},
};
use crate::{
    chat::Inbound,
    config::{QueueConfig, QueueMode},
    exchange::GivenUp,
    ids::InboxId,
    ledger::TaggedEvent,
    store::StoreError,
};

/// How often newly arriving messages may delay an answer.
const MAX_DEBOUNCES: usize = 10;

/// The model's answer so far. Clones share it.
#[derive(Clone, Default)]
pub struct AnswerSoFar(Arc<Mutex<String>>);

impl AnswerSoFar {
    /// Replaces it by a longer one.
    pub fn set(&self, text: &str) {
        text.clone_into(&mut self.lock());
    }

    fn lock(&self) -> MutexGuard<'_, String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The messages that a worker is processing.
pub struct Batch {
    key: SessionKey,
    ids: Vec<InboxId>,
    said: AnswerSoFar,
    given_up: Mutex<GivenUp>,
    has_tried: AtomicBool,
    dispatcher: Arc<Dispatcher>,
}

impl Batch {
    /// Returns the conversation.
    pub fn key(&self) -> &SessionKey {
        &self.key
    }

    /// Returns the messages, at least one, in the order in which they were written.
    pub fn ids(&self) -> &[InboxId] {
        &self.ids
    }

    /// Returns the token that tells the current attempt to give up because the stored state has
    /// changed.
    pub fn interrupted(&self) -> CancellationToken {
        self.queues().attempt(&self.key)
    }

    /// Notes the revision of the conversation that this attempt is based on.
    pub fn begins_at(&self, revision: i64) {
        self.queues().begins_at(&self.key, revision);
    }

    /// Returns the model's answer so far, for whoever hears it grow; it outlives an attempt.
    pub fn said(&self) -> AnswerSoFar {
        self.said.clone()
    }

    /// Takes the model's answer so far.
    pub fn take_said(&self) -> String {
        std::mem::take(&mut self.said.lock())
    }

    /// Puts back what was [taken](Batch::take_said), for the next attempt.
    pub fn restore_said(&self, said: String) {
        *self.said.lock() = said;
    }

    /// Keeps the results of the current attempt, which is abandoned.
    pub fn give_up(&self, attempt: GivenUp) {
        self.has_tried.store(true, Ordering::Relaxed);
        let mut given_up = self.lock_given_up();
        *given_up = attempt.after(std::mem::take(&mut given_up));
    }

    /// Keeps those of the current attempt, which is abandoned before there was a request.
    pub fn give_up_early(&self, attempt: GivenUp) {
        self.has_tried.store(true, Ordering::Relaxed);
        let mut given_up = self.lock_given_up();
        *given_up = std::mem::take(&mut *given_up).and_early(attempt);
    }

    /// Returns whether an attempt at these very messages was abandoned.
    pub fn has_tried(&self) -> bool {
        self.has_tried.load(Ordering::Relaxed)
    }

    /// Takes the results of all abandoned attempts.
    pub fn take_given_up(&self) -> GivenUp {
        std::mem::take(&mut self.lock_given_up())
    }

    /// Returns the results of the latest attempt, with what still counts of those before it.
    pub fn given_up(&self) -> GivenUp {
        self.lock_given_up().clone()
    }

    /// Takes the [lasting events](GivenUp::take_lasting_events) of all abandoned attempts.
    pub fn take_lasting_events(&self) -> Vec<TaggedEvent> {
        self.lock_given_up().take_lasting_events()
    }

    /// Puts events [back](GivenUp::put_back_events) that could not be stored.
    pub fn put_back_events(&self, events: Vec<TaggedEvent>) {
        self.lock_given_up().put_back_events(events);
    }

    fn lock_given_up(&self) -> MutexGuard<'_, GivenUp> {
        self.given_up.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds at most `most` messages that arrived since. They are done when the turn finishes, and queued again
    /// if it does not.
    pub fn take_along(&self, most: usize) -> Vec<InboxId> {
        self.queues().take(&self.key, most)
    }

    /// Takes in a message that the turn has produced, like one from outside.
    ///
    /// # Errors
    /// The message was not stored.
    pub async fn take_in(&self, message: Inbound) -> Result<(), StoreError> {
        self.dispatcher.take_in(message, Arrival::Fresh).await.map(drop)
    }

    /// Leaves a message that was taken along, and those after it, to later turns.
    pub fn put_back(&self, inbox: InboxId) {
        self.queues().put_back(&self.key, inbox);
    }

    fn queues(&self) -> MutexGuard<'_, Queues> {
        queues::lock(&self.dispatcher.queues)
    }
}

impl Dispatcher {
    /// Returns the next batch; where several messages are answered together, once no more are arriving. `None`
    /// if the conversation has no messages left, and then no queue. `given_up` is what an attempt at a
    /// batch that was taken apart, or at a message that is tried once more, has come to.
    pub(super) async fn next_batch(self: &Arc<Self>, key: &SessionKey, given_up: GivenUp) -> Option<Batch> {
        let begun = queues::lock(&self.queues).begin(key);
        let QueueConfig { mode, most, .. } = self.queue;
        match begun {
            Dequeued::Nothing => return None,
            // A single message is answered at once: the pause begins with the second.
            Dequeued::First if mode != QueueMode::Sequential && queues::lock(&self.queues).waiting(key) > 0 => {
                self.await_more(key).await;
                // Another host may have received messages that belong in between.
                if self.store.peers_may_have_work()
                    && let Err(error) = self.look_at(key).await
                {
                    tracing::debug!(session = %key, %error, "messages heard by other hosts will be seen later");
                }
                queues::lock(&self.queues).take(key, most - 1);
            }
            Dequeued::First | Dequeued::Alone => {}
        }
        let ids = queues::lock(&self.queues).working(key);
        Some(Batch {
            key: key.clone(),
            ids,
            said: AnswerSoFar::default(),
            given_up: Mutex::new(given_up),
            has_tried: AtomicBool::new(false),
            dispatcher: Arc::clone(self),
        })
    }

    /// Waits until nothing arrives during a pause, or enough messages wait.
    async fn await_more(&self, key: &SessionKey) {
        let waiting = || queues::lock(&self.queues).waiting(key);
        let pause = Duration::from_millis(self.queue.debounce_ms);
        let mut seen = waiting();
        for _ in 0..MAX_DEBOUNCES {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => break,
                () = tokio::time::sleep(pause) => {}
            }
            let now = waiting();
            if now == seen || now + 1 >= self.queue.most {
                break;
            }
            seen = now;
        }
    }
}
