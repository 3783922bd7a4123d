//! A worker takes one conversation's messages through their turns, until none is left.

use std::{
    sync::{Arc, PoisonError, atomic::Ordering},
    time::Duration,
};

use pmk_core::SessionKey;
use pmk_system::panics;
use tokio::time::Instant;

use super::{Batch, Dispatcher, TurnFailure, queues};
use crate::ledger::Event;

/// How long to wait before a turn that was held up is tried again; the last one over and over.
const PAUSES: [Duration; 5] = [
    Duration::from_millis(200),
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(15),
    Duration::from_secs(30),
];

/// How often a turn may panic before it is parked, and how often somebody may say no to it.
const MAX_PANICS: u32 = 2;
const MAX_REFUSALS: u32 = 4;

/// What holds a turn up for so long after others went on, while so many of them come to their end, will not pass: no
/// list of errors is ever complete.
pub(super) const HELD_UP_MOST: Duration = Duration::from_secs(600);
pub(super) const OTHERS_MEANWHILE: u64 = 3;

/// Whether the worker has anything left to do.
#[derive(PartialEq, Eq)]
enum BatchOutcome {
    On,
    /// Another host goes first. What was in hand waits again.
    Aside,
    /// Nothing new may begin.
    Stopped,
}

/// What a batch went through so far.
struct RetryState {
    /// How many turns had come to their end when it first did not.
    finished: Option<u64>,
    /// Since when others are seen to go on.
    others_since: Option<Instant>,
    panics: u32,
    refusals: u32,
    pauses: usize,
}

impl Dispatcher {
    /// Works through one conversation's queue, first in, first out.
    pub(super) async fn work(self: Arc<Self>, key: SessionKey) {
        let mut shift = WorkerGuard { dispatcher: &self, key: &key, is_over: false };
        while let Some(batch) = self.next_batch(&key).await {
            match self.see_through(&batch).await {
                BatchOutcome::On => {}
                BatchOutcome::Aside => self.stand_back(&key).await,
                // What has not come to its end stays in the inbox for the next start.
                BatchOutcome::Stopped => return,
            }
            queues::lock(&self.queues).done(&key);
        }
        shift.is_over = true;
    }

    /// Tries until the turn has come to its end or is parked, or the gateway stops.
    async fn see_through(self: &Arc<Self>, batch: &Batch) -> BatchOutcome {
        let mut trouble = RetryState { finished: None, others_since: None, panics: 0, refusals: 0, pauses: 0 };
        loop {
            queues::lock(&self.queues).renew(batch.key());
            let outcome = {
                let Ok(_permit) = self.permits.acquire().await else { return BatchOutcome::Stopped };
                if self.stop.is_cancelled() {
                    return BatchOutcome::Stopped;
                }
                // Locks of tokio are freed by a panic, and those of the standard library guard what is never left
                // half changed; what the turn stored is whole.
                panics::caught(self.turns.run(batch)).await
            };
            let pause = match outcome {
                Ok(Ok(())) => {
                    self.finished.fetch_add(1, Ordering::Relaxed);
                    return BatchOutcome::On;
                }
                Ok(Err(TurnFailure::Over(why))) => {
                    match why {
                        Some(why) => self.end(why),
                        None => self.stop.cancel(),
                    }
                    return BatchOutcome::Stopped;
                }
                Ok(Err(TurnFailure::Anew)) => Duration::ZERO,
                Ok(Err(TurnFailure::Elsewhere)) => {
                    queues::lock(&self.queues).keep(batch.key(), 0);
                    return BatchOutcome::Aside;
                }
                Ok(Err(TurnFailure::Apart)) => {
                    queues::lock(&self.queues).part(batch.key());
                    return BatchOutcome::On;
                }
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
                    // Who is told when to come again is not left alone.
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
                    self.turns.note(Event::TurnPanicked { session: batch.key().to_string(), place: place.clone() });
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
                () = self.stop.cancelled() => return BatchOutcome::Stopped,
                () = batch.interrupted().cancelled_owned() => {}
                // Whatever else held it up says so once more.
                () = self.store.back() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Lets another host work on a conversation, which sees by itself what is open there, until it [does not](Self::look_after_hosts) any
    /// more. What is open by then is looked up: its order counts.
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

    /// Parks a message that cannot go on. Of several it need not be all of them: each is tried by itself.
    async fn give_up(self: &Arc<Self>, batch: &Batch, why: &str) -> BatchOutcome {
        queues::lock(&self.queues).keep(batch.key(), batch.ids().len());
        match batch.ids() {
            [inbox] => {
                // Free to be entered anew before anybody can take it up again.
                queues::lock(&self.queues).done(batch.key());
                self.park(*inbox, why).await;
            }
            _ => queues::lock(&self.queues).part(batch.key()),
        }
        BatchOutcome::On
    }

    /// Whether it is worth a line of the log what holds a turn up, or a look for some: not where that was the last one's reason, too,
    /// and no turn has come to its end since.
    pub(super) fn is_news(&self, why: &str) -> bool {
        let finished = self.finished.load(Ordering::Relaxed);
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = told.as_ref().is_some_and(|(last, then)| last == why && *then == finished);
        if !is_known {
            *told = Some((why.to_owned(), finished));
        }
        !is_known
    }

    /// For how many minutes a turn has been held up by something that evidently does not hold up others.
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

/// Frees the conversation when its worker goes, whatever made it go: then messages that are open still are found by
/// the sweep, or by the next start.
struct WorkerGuard<'a> {
    dispatcher: &'a Dispatcher,
    key: &'a SessionKey,
    /// The queue is gone; one of that key has another worker.
    is_over: bool,
}

impl Drop for WorkerGuard<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            queues::lock(&self.dispatcher.queues).forget(self.key);
        }
    }
}
