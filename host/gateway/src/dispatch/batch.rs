//! Messages that are answered together: usually one, under `collect` and `steer` those that have come meanwhile.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use pmk_core::SessionKey;
use tokio_util::sync::CancellationToken;

use super::{
    Dispatcher,
    queues::{self, Dequeued, Queues},
};
use crate::{
    config::{QueueConfig, QueueMode},
    ids::InboxId,
};

/// How often messages that keep coming put off an answer.
const MAX_DEBOUNCES: usize = 10;

/// What a worker has in hand.
pub struct Batch {
    key: SessionKey,
    ids: Vec<InboxId>,
    said: Arc<Mutex<String>>,
    queues: Arc<Mutex<Queues>>,
}

impl Batch {
    /// The conversation.
    pub fn key(&self) -> &SessionKey {
        &self.key
    }

    /// The messages, at least one, in the order they were written.
    pub fn ids(&self) -> &[InboxId] {
        &self.ids
    }

    /// What tells this attempt at it that it is to be given up: what is stored has changed.
    pub fn interrupted(&self) -> CancellationToken {
        queues::lock(&self.queues).attempt(&self.key)
    }

    /// This attempt goes by the conversation as it was after so many changes.
    pub fn begins_at(&self, revision: Option<i64>) {
        queues::lock(&self.queues).begins_at(&self.key, revision);
    }

    /// What was said of an answer by now; it outlives an attempt.
    pub fn said(&self) -> &Arc<Mutex<String>> {
        &self.said
    }

    /// Takes messages along that have come since, at most so many. They are done with when the turn comes to its
    /// end, and wait again when it does not.
    pub fn take_along(&self, most: usize) -> Vec<InboxId> {
        queues::lock(&self.queues).take(&self.key, most)
    }
}

impl Dispatcher {
    /// What is to be answered next, once no more is coming where several are answered together. `None` when the
    /// conversation has no messages left, and then no queue.
    pub(super) async fn next_batch(self: &Arc<Self>, key: &SessionKey) -> Option<Batch> {
        let begun = queues::lock(&self.queues).begin(key);
        let QueueConfig { mode, most, .. } = self.queue;
        match begun {
            Dequeued::Nothing => return None,
            // One that is alone is answered at once: the pause begins with the second.
            Dequeued::First if mode != QueueMode::Sequential && queues::lock(&self.queues).waiting(key) > 0 => {
                self.await_more(key).await;
                // Others may have heard of what belongs in between.
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
        Some(Batch { key: key.clone(), ids, said: Arc::default(), queues: Arc::clone(&self.queues) })
    }

    /// Waits until a pause goes by in which nothing came, or enough waits.
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
