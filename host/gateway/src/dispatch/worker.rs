//! A worker takes one conversation's messages through their turns, until none is left.

use std::{
    sync::{Arc, PoisonError, atomic::Ordering},
    time::Duration,
};

use pmk_core::SessionKey;
use pmk_system::panics;
use tokio::time::Instant;

use super::{Batch, Dispatcher, TurnFailure, queues};
use crate::{exchange::GivenUp, ledger::Event};

/// The pauses before a delayed turn is retried; the last one is repeated.
const PAUSES: [Duration; 5] = [
    Duration::from_millis(200),
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(15),
    Duration::from_secs(30),
];

/// The pause before the next attempt to park a message that could not be parked.
const PARKING_PAUSE: Duration = Duration::from_secs(5);

/// How many panics, and how many refusals, before a turn is parked.
const MAX_PANICS: u32 = 2;
const MAX_REFUSALS: u32 = 4;

/// A temporary error is considered permanent if it has delayed one turn for this long since other turns went on, and
/// this many of them have finished. No list of errors is ever complete.
pub(super) const HELD_UP_MOST: Duration = Duration::from_secs(600);
pub(super) const OTHERS_MEANWHILE: u64 = 3;

/// How the processing of a batch ended.
enum BatchOutcome {
    On,
    /// Its message, now queued again, is to be tried once more.
    Again,
    /// Each of its messages, now queued again, is to be tried by itself.
    Apart,
    /// Another host goes first. The messages being processed are queued again.
    Aside,
    /// Nothing new may begin.
    Stopped,
}

/// The retry state of a batch.
struct RetryState {
    /// The number of finished turns at its first failure.
    finished: Option<u64>,
    /// Since when other turns are known to go on.
    others_since: Option<Instant>,
    panics: u32,
    refusals: u32,
    pauses: usize,
}

impl Dispatcher {
    /// Works through one conversation's queue, first in, first out.
    pub(super) async fn work(self: Arc<Self>, key: SessionKey) {
        let mut shift = WorkerGuard { dispatcher: &self, key: &key, is_over: false };
        let mut given_up = GivenUp::default();
        while let Some(batch) = self.next_batch(&key, given_up).await {
            given_up = match self.see_through(&batch).await {
                BatchOutcome::On => {
                    let is_apart = queues::lock(&self.queues).is_apart(&key);
                    if is_apart && !batch.has_tried() {
                        // It was over already, and the attempt was one at the next message, too.
                        batch.take_given_up()
                    } else {
                        // Somebody else has ended its messages, and no other message is charged for them.
                        self.note_spent(&batch);
                        GivenUp::default()
                    }
                }
                BatchOutcome::Again => batch.take_given_up(),
                BatchOutcome::Apart => {
                    queues::lock(&self.queues).part(&key);
                    // The first message retried is charged for the failed attempt at the whole batch.
                    batch.take_given_up()
                }
                BatchOutcome::Aside => {
                    self.note_spent(&batch);
                    self.stand_back(&key).await;
                    GivenUp::default()
                }
                // Unfinished messages stay in the inbox for the next start.
                BatchOutcome::Stopped => return,
            };
            queues::lock(&self.queues).done(&key);
        }
        shift.is_over = true;
    }

    /// Retries until the turn has finished or is parked, or the gateway stops.
    async fn see_through(self: &Arc<Self>, batch: &Batch) -> BatchOutcome {
        let mut trouble = RetryState { finished: None, others_since: None, panics: 0, refusals: 0, pauses: 0 };
        loop {
            queues::lock(&self.queues).renew(batch.key());
            let outcome = {
                let Ok(_permit) = self.permits.acquire().await else { return self.leave(batch) };
                if self.stop.is_cancelled() {
                    return self.leave(batch);
                }
                // Tokio's locks are released by a panic, data behind the standard library's locks is never left
                // inconsistent, and what the turn has stored is complete.
                panics::caught(self.turns.run(batch)).await
            };
            let pause = match outcome {
                Ok(Ok(())) => {
                    self.finished.fetch_add(1, Ordering::Relaxed);
                    return BatchOutcome::On;
                }
                Ok(Err(TurnFailure::Over(why))) => {
                    let outcome = self.leave(batch);
                    match why {
                        Some(why) => self.end(why),
                        None => self.stop.cancel(),
                    }
                    return outcome;
                }
                Ok(Err(TurnFailure::Anew)) => Duration::ZERO,
                Ok(Err(TurnFailure::Elsewhere)) => {
                    queues::lock(&self.queues).keep(batch.key(), 0);
                    return BatchOutcome::Aside;
                }
                Ok(Err(TurnFailure::Apart)) => return BatchOutcome::Apart,
                Ok(Err(TurnFailure::Hopeless { why })) => return self.give_up(batch, &why).await,
                Ok(Err(TurnFailure::Refused { why })) => {
                    tracing::warn!(session = %batch.key(), why, "the turn is refused and will be retried");
                    trouble.refusals += 1;
                    if trouble.refusals >= MAX_REFUSALS {
                        return self.give_up(batch, &why).await;
                    }
                    trouble.pause()
                }
                Ok(Err(TurnFailure::Passing { why, retry_after })) => {
                    let session = batch.key();
                    if self.is_news(&why) {
                        tracing::warn!(%session, why, "the turn is delayed and will be retried");
                    } else {
                        tracing::debug!(%session, why, "this turn is delayed, too");
                    }
                    // A turn that was told when to retry does not count as stuck.
                    if retry_after.is_zero()
                        && let Some(minutes) = self.will_not_pass(&mut trouble)
                    {
                        let why = format!("{why}, for {minutes} minutes, while other turns went on");
                        return self.give_up(batch, &why).await;
                    }
                    trouble.pause().max(retry_after)
                }
                Err(place) => {
                    tracing::error!(session = %batch.key(), place, "a turn panicked");
                    let session = batch.key().to_string();
                    self.turns.note(Event::TurnPanicked { session, place: place.clone() }.into());
                    trouble.panics += 1;
                    if trouble.panics >= MAX_PANICS {
                        return self.give_up(batch, &format!("the program panicked at {place}")).await;
                    }
                    trouble.pause()
                }
            };
            queues::lock(&self.queues).keep(batch.key(), batch.ids().len());
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return self.leave(batch),
                () = batch.interrupted().cancelled_owned() => {}
                // The database is back; a turn delayed by something else will just fail again.
                () = self.store.back() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Leaves a conversation to another host until that host [no longer](Self::look_after_hosts) works on it. That host
    /// finds the open messages by itself. What is open afterwards is looked up, because its order matters.
    async fn stand_back(self: &Arc<Self>, key: &SessionKey) {
        let goes_on = queues::lock(&self.queues).stand_back(key);
        tokio::select! {
            biased;
            () = self.stop.cancelled() => return,
            () = goes_on.cancelled() => {}
        }
        if let Err(error) = self.look_at(key).await {
            tracing::debug!(session = %key, %error, "open work there will be looked up later");
        }
    }

    /// Parks a message that cannot be answered, as soon as the store can do that. Its turn is run again instead if
    /// people change something before, or if a shared database was away, which may have given the message's number to
    /// another one since. Of several messages, each is tried by itself first, because not all of them need to be
    /// parked.
    async fn give_up(self: &Arc<Self>, batch: &Batch, why: &str) -> BatchOutcome {
        queues::lock(&self.queues).keep(batch.key(), batch.ids().len());
        let [inbox] = batch.ids() else { return BatchOutcome::Apart };
        let (given_up, returns) = (batch.take_given_up(), self.store.returns());
        while !self.park(*inbox, why, given_up.clone().into_lasting_events()).await {
            let is_changed = tokio::select! {
                biased;
                () = self.stop.cancelled() => {
                    batch.give_up(given_up);
                    return self.leave(batch);
                }
                () = batch.interrupted().cancelled_owned() => true,
                () = self.store.back() => false,
                () = tokio::time::sleep(PARKING_PAUSE) => false,
            };
            if is_changed || self.store.returns() != returns {
                batch.give_up(given_up);
                queues::lock(&self.queues).keep(batch.key(), 0);
                return BatchOutcome::Again;
            }
        }
        queues::lock(&self.queues).done(batch.key());
        // Until now, whoever took it up again could not queue it.
        self.look_at_once_told(batch.key());
        BatchOutcome::On
    }

    /// Leaves a batch whose messages stay in the inbox for the next start.
    fn leave(&self, batch: &Batch) -> BatchOutcome {
        self.note_spent(batch);
        BatchOutcome::Stopped
    }

    /// Notes what was spent on a batch in vain, which stays true, whoever answers later.
    fn note_spent(&self, batch: &Batch) {
        for tagged in batch.take_lasting_events() {
            self.turns.note(tagged);
        }
    }

    /// Returns whether a reason for a delay is worth a log line: not if it is the same as the last one and no turn has
    /// finished since.
    pub(super) fn is_news(&self, why: &str) -> bool {
        let finished = self.finished.load(Ordering::Relaxed);
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = told.as_ref().is_some_and(|(last, then)| last == why && *then == finished);
        if !is_known {
            *told = Some((why.to_owned(), finished));
        }
        !is_known
    }

    /// Returns for how many minutes a turn has been delayed by something that evidently does not delay
    /// others.
    fn will_not_pass(&self, trouble: &mut RetryState) -> Option<u64> {
        let finished = self.finished.load(Ordering::Relaxed);
        let others = finished - *trouble.finished.get_or_insert(finished);
        if others == 0 {
            return None;
        }
        let since = *trouble.others_since.get_or_insert_with(Instant::now);
        (others >= OTHERS_MEANWHILE && since.elapsed() >= HELD_UP_MOST).then_some(since.elapsed().as_secs() / 60)
    }
}

impl RetryState {
    fn pause(&mut self) -> Duration {
        let pause = PAUSES[self.pauses.min(PAUSES.len() - 1)];
        self.pauses += 1;
        pause
    }
}

/// Removes the conversation's queue when its worker ends for any reason, so that messages still open are found by
/// the sweep or the next start.
struct WorkerGuard<'a> {
    dispatcher: &'a Dispatcher,
    key: &'a SessionKey,
    /// The queue is already gone; a queue of that key belongs to another worker.
    is_over: bool,
}

impl Drop for WorkerGuard<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            queues::lock(&self.dispatcher.queues).forget(self.key);
        }
    }
}
