//! The messages that wait or are being processed, by conversation. A message is queued once, however often it is
//! entered.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use pmk_core::SessionKey;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::ids::InboxId;

/// A stored message that waits for its turn. Messages are ordered by their position in the conversation, Slack's
/// `ts`, because sockets do not preserve order; without a `ts`, by arrival.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct QueuedMessage {
    pub ts: String,
    pub inbox: InboxId,
}

/// The result of entering a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EnqueueOutcome {
    /// It is already waiting or being processed.
    Known,
    /// Its conversation has a worker.
    Queued,
    /// Its conversation needs a worker.
    First,
}

/// The queues of all conversations that have a worker.
#[derive(Debug, Default)]
pub(super) struct Queues {
    by_key: HashMap<SessionKey, Queue>,
    /// All messages of all queues.
    known: HashSet<InboxId>,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<QueuedMessage>,
    working: Vec<QueuedMessage>,
    /// How many of the next messages are processed one by one.
    singly: usize,
    /// Cancelled when the current attempt is to be given up.
    attempt: CancellationToken,
    /// Since when another host works on the conversation, if one does; the token is cancelled when it no
    /// longer does.
    elsewhere: Option<(Instant, CancellationToken)>,
    /// The revision of the conversation that the current attempt is based on, once known.
    revision: Option<i64>,
}

/// How a conversation continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dequeued {
    /// With this message, and others if they may be answered together.
    First,
    /// With this message alone.
    Alone,
    /// It has no messages left and no longer a queue: its worker must end.
    Nothing,
}

/// Locks the queues, even if a panic elsewhere has poisoned the lock: none of their methods leaves
/// them inconsistent.
pub(super) fn lock(queues: &Mutex<Queues>) -> MutexGuard<'_, Queues> {
    queues.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Queues {
    /// Returns whether a message waits or is being processed.
    pub fn knows(&self, inbox: InboxId) -> bool {
        self.known.contains(&inbox)
    }

    pub fn enter(&mut self, key: &SessionKey, waiting: QueuedMessage) -> EnqueueOutcome {
        if !self.known.insert(waiting.inbox) {
            return EnqueueOutcome::Known;
        }
        if let Some(queue) = self.by_key.get_mut(key) {
            queue.insert(waiting);
            return EnqueueOutcome::Queued;
        }
        self.by_key.insert(key.clone(), Queue { waiting: VecDeque::from([waiting]), ..Queue::default() });
        EnqueueOutcome::First
    }

    /// Starts processing the next message.
    ///
    /// # Panics
    /// The conversation is being processed: it would have two workers.
    pub fn begin(&mut self, key: &SessionKey) -> Dequeued {
        assert!(self.working(key).is_empty(), "`{key}` has a worker already");
        if self.take(key, 1).is_empty() {
            self.by_key.remove(key);
            return Dequeued::Nothing;
        }
        match self.by_key.get_mut(key) {
            Some(queue) if queue.singly > 0 => {
                queue.singly -= 1;
                Dequeued::Alone
            }
            _ => Dequeued::First,
        }
    }

    /// Starts processing at most `most` of the waiting messages, too.
    pub fn take(&mut self, key: &SessionKey, most: usize) -> Vec<InboxId> {
        let Some(queue) = self.by_key.get_mut(key) else { return vec![] };
        let taken: Vec<QueuedMessage> = queue.waiting.drain(..queue.waiting.len().min(most)).collect();
        let ids = taken.iter().map(|waiting| waiting.inbox).collect();
        queue.working.extend(taken);
        ids
    }

    /// Starts a new attempt at the messages being processed.
    pub fn renew(&mut self, key: &SessionKey) {
        if let Some(queue) = self.by_key.get_mut(key) {
            queue.attempt = CancellationToken::new();
            queue.revision = None;
        }
    }

    /// Sets the revision of the conversation that the current attempt is based on.
    pub fn begins_at(&mut self, key: &SessionKey, revision: i64) {
        if let Some(queue) = self.by_key.get_mut(key) {
            queue.revision = Some(revision);
        }
    }

    /// The conversation is now at this revision: gives up an attempt that is based on an earlier one.
    pub fn stands_at(&self, key: &SessionKey, revision: i64) {
        if let Some(queue) = self.by_key.get(key)
            && queue.revision.is_some_and(|begun| begun < revision)
        {
            queue.attempt.cancel();
        }
    }

    /// Gives up the current attempt.
    pub fn interrupt(&self, key: &SessionKey) {
        if let Some(queue) = self.by_key.get(key) {
            queue.attempt.cancel();
        }
    }

    /// Gives up the current attempts of all conversations, in an order that is the same in every process.
    pub fn interrupt_all(&self) {
        let mut keys: Vec<_> = self.by_key.keys().collect();
        keys.sort_unstable();
        keys.into_iter().for_each(|key| self.interrupt(key));
    }

    /// Returns the token that tells the current attempt to give up.
    pub fn attempt(&self, key: &SessionKey) -> CancellationToken {
        self.by_key.get(key).map(|queue| queue.attempt.clone()).unwrap_or_default()
    }

    /// Returns how many messages wait.
    pub fn waiting(&self, key: &SessionKey) -> usize {
        self.by_key.get(key).map_or(0, |queue| queue.waiting.len())
    }

    /// Returns the messages being processed.
    pub fn working(&self, key: &SessionKey) -> Vec<InboxId> {
        let queue = self.by_key.get(key);
        queue.map(|queue| queue.working.iter().map(|waiting| waiting.inbox).collect()).unwrap_or_default()
    }

    /// Continues with the first `most` messages being processed only; the others are queued again.
    pub fn keep(&mut self, key: &SessionKey, most: usize) {
        let Some(queue) = self.by_key.get_mut(key) else { return };
        for waiting in queue.working.split_off(queue.working.len().min(most)) {
            queue.insert(waiting);
        }
    }

    /// Queues this message again, and those taken after it.
    pub fn put_back(&mut self, key: &SessionKey, inbox: InboxId) {
        let Some(queue) = self.by_key.get(key) else { return };
        if let Some(at) = queue.working.iter().position(|working| working.inbox == inbox) {
            self.keep(key, at);
        }
    }

    /// Queues the messages being processed again, to be processed one by one.
    pub fn part(&mut self, key: &SessionKey) {
        let Some(queue) = self.by_key.get_mut(key) else { return };
        queue.singly += queue.working.len();
        self.keep(key, 0);
    }

    /// Returns whether the next message is one of a batch that was taken apart.
    pub fn is_apart(&self, key: &SessionKey) -> bool {
        self.by_key.get(key).is_some_and(|queue| queue.singly > 0 && !queue.waiting.is_empty())
    }

    /// Finishes the messages being processed.
    pub fn done(&mut self, key: &SessionKey) {
        let Some(queue) = self.by_key.get_mut(key) else { return };
        for waiting in queue.working.drain(..) {
            self.known.remove(&waiting.inbox);
        }
    }

    /// Notes that another host works on a conversation. The returned token is cancelled when it no
    /// longer does.
    pub fn stand_back(&mut self, key: &SessionKey) -> CancellationToken {
        let goes_on = CancellationToken::new();
        if let Some(queue) = self.by_key.get_mut(key) {
            queue.elsewhere = Some((Instant::now(), goes_on.clone()));
        }
        goes_on
    }

    /// Returns the conversations that other hosts work on, as far as is known, in an order that is the same in every
    /// process.
    pub fn elsewhere(&self) -> Vec<SessionKey> {
        let elsewhere = self.by_key.iter().filter(|(_, queue)| queue.elsewhere.is_some());
        let mut keys: Vec<_> = elsewhere.map(|(key, _)| key.clone()).collect();
        keys.sort_unstable();
        keys
    }

    /// Notes that no other host works on a conversation any more: its worker goes on if it has
    /// waited for at least `least`.
    pub fn go_on(&mut self, key: &SessionKey, least: Duration) {
        let queue = self.by_key.get_mut(key);
        let elsewhere = queue.and_then(|queue| queue.elsewhere.take_if(|(since, _)| since.elapsed() >= least));
        if let Some((_, goes_on)) = elsewhere {
            goes_on.cancel();
        }
    }

    /// Removes a conversation: its worker ends, and its messages remain in the inbox.
    pub fn forget(&mut self, key: &SessionKey) {
        let Some(queue) = self.by_key.remove(key) else { return };
        for waiting in queue.waiting.iter().chain(&queue.working) {
            self.known.remove(&waiting.inbox);
        }
    }
}

impl Queue {
    fn insert(&mut self, waiting: QueuedMessage) {
        let place = self.waiting.iter().rposition(|other| *other <= waiting).map_or(0, |at| at + 1);
        self.waiting.insert(place, waiting);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> SessionKey {
        "slack:dm:U1".parse().expect("a key")
    }

    fn waiting(inbox: i64, ts: &str) -> QueuedMessage {
        QueuedMessage { ts: ts.into(), inbox: InboxId::of(inbox) }
    }

    fn ids(numbers: &[i64]) -> Vec<InboxId> {
        numbers.iter().map(|&number| InboxId::of(number)).collect()
    }

    #[test]
    fn a_message_is_queued_once_however_often_it_is_entered() {
        let mut queues = Queues::default();
        assert_eq!(queues.enter(&key(), waiting(1, "")), EnqueueOutcome::First);
        assert_eq!(queues.enter(&key(), waiting(1, "")), EnqueueOutcome::Known);
        assert_eq!(queues.begin(&key()), Dequeued::First);
        assert_eq!(queues.enter(&key(), waiting(1, "")), EnqueueOutcome::Known, "it is being worked on");
        assert_eq!(queues.enter(&key(), waiting(2, "")), EnqueueOutcome::Queued);
        queues.done(&key());
        assert!(!queues.knows(InboxId::of(1)) && queues.knows(InboxId::of(2)));
        assert_eq!(queues.begin(&key()), Dequeued::First);
        queues.done(&key());
        assert_eq!(queues.begin(&key()), Dequeued::Nothing);
        assert_eq!(queues.enter(&key(), waiting(2, "")), EnqueueOutcome::First);
    }

    #[test]
    fn they_wait_in_the_order_they_were_written() {
        let mut queues = Queues::default();
        for (inbox, ts) in [(1, "1700000002.000100"), (2, "1700000001.000100"), (3, "1700000003.000100")] {
            queues.enter(&key(), waiting(inbox, ts));
        }
        assert_eq!(queues.take(&key(), 9), ids(&[2, 1, 3]));
        let other: SessionKey = "console:dm:U1".parse().expect("a key");
        for inbox in [7, 5, 6] {
            queues.enter(&other, waiting(inbox, ""));
        }
        assert_eq!(queues.take(&other, 9), ids(&[5, 6, 7]));
    }

    #[test]
    fn what_was_steered_in_waits_again_when_the_turn_is_held_up() {
        let mut queues = Queues::default();
        for inbox in 1..=4 {
            queues.enter(&key(), waiting(inbox, ""));
        }
        assert_eq!(queues.begin(&key()), Dequeued::First);
        assert_eq!(queues.take(&key(), 2), ids(&[2, 3]));
        queues.keep(&key(), 1);
        assert_eq!((queues.working(&key()), queues.waiting(&key())), (ids(&[1]), 3));
        assert_eq!(queues.take(&key(), 9), ids(&[2, 3, 4]));
    }

    #[test]
    fn what_is_put_back_waits_again_with_what_was_taken_after_it() {
        let mut queues = Queues::default();
        for inbox in 1..=4 {
            queues.enter(&key(), waiting(inbox, ""));
        }
        assert_eq!(queues.begin(&key()), Dequeued::First);
        queues.take(&key(), 3);
        queues.put_back(&key(), InboxId::of(3));
        assert_eq!((queues.working(&key()), queues.take(&key(), 9)), (ids(&[1, 2]), ids(&[3, 4])));
    }

    #[test]
    fn what_was_parted_is_worked_on_one_by_one() {
        let mut queues = Queues::default();
        for inbox in 1..=4 {
            queues.enter(&key(), waiting(inbox, ""));
        }
        assert_eq!(queues.begin(&key()), Dequeued::First);
        queues.take(&key(), 1);
        queues.part(&key());
        for (inbox, is_next_apart) in [(1, true), (2, false)] {
            assert_eq!((queues.begin(&key()), queues.working(&key())), (Dequeued::Alone, ids(&[inbox])));
            assert_eq!(queues.is_apart(&key()), is_next_apart);
            queues.done(&key());
        }
        assert_eq!(queues.begin(&key()), Dequeued::First);
    }

    #[test]
    fn who_stands_back_is_told_once_when_to_go_on() {
        let mut queues = Queues::default();
        queues.enter(&key(), waiting(1, ""));
        assert_eq!(queues.elsewhere(), []);
        let goes_on = queues.stand_back(&key());
        assert_eq!((queues.elsewhere(), goes_on.is_cancelled()), (vec![key()], false));
        queues.go_on(&key(), Duration::from_secs(60));
        assert!(!goes_on.is_cancelled());
        queues.go_on(&key(), Duration::ZERO);
        assert_eq!((queues.elsewhere(), goes_on.is_cancelled()), (vec![], true));
        assert!(!queues.stand_back(&key()).is_cancelled());
    }

    #[test]
    fn a_forgotten_conversation_is_known_no_more() {
        let mut queues = Queues::default();
        queues.enter(&key(), waiting(1, ""));
        queues.enter(&key(), waiting(2, ""));
        assert_eq!(queues.begin(&key()), Dequeued::First);
        queues.forget(&key());
        assert!(!queues.knows(InboxId::of(1)) && !queues.knows(InboxId::of(2)));
        assert_eq!(queues.enter(&key(), waiting(2, "")), EnqueueOutcome::First);
    }
}
