//! The sweep: finds open messages that nobody processes. A message that is just being stored or finished may look
//! like one for a moment, so only messages found by two consecutive sweeps count.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    sync::atomic::Ordering,
    time::Duration,
};

use tokio::time::Instant;

use super::{Dispatcher, queues};
use crate::{ids::InboxId, ledger::Event, store::Pending};

/// The time between two sweeps.
pub(super) const EVERY: Duration = Duration::from_secs(10);

/// The longest time between two attempts to tell people of a parked message: each is twice as long as the one before.
const TELL_EVERY_MOST: Duration = Duration::from_secs(600);

/// When to try again to tell people of a message, and the pause after that.
struct Retry {
    at: Instant,
    pause: Duration,
}

/// For this long after a message was first seen parked, telling people is left to the host that parked it. Its clock may
/// differ.
const OTHERS_TELL_FOR: Duration = Duration::from_secs(60);

impl Dispatcher {
    /// Sweeps until the gateway stops.
    pub(super) async fn sweep(self: Arc<Self>) {
        let (mut suspects, mut retries) = (HashSet::new(), HashMap::new());
        loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                () = tokio::time::sleep(EVERY) => {}
            }
            suspects = self.look(&suspects).await;
            if self.store.is_first_to_hear() {
                self.tell_untold(&mut retries).await;
            }
        }
    }

    /// Queues the suspects of the previous sweep that are found again, and returns the new suspects.
    pub(super) async fn look(self: &Arc<Self>, suspects: &HashSet<InboxId>) -> HashSet<InboxId> {
        let (open, reopened) = match self.store.open_work().await {
            Ok(open) => {
                for (inbox, why) in open.unreadable {
                    self.park(inbox, &why, vec![]).await;
                }
                (open.pending, open.reopened)
            }
            Err(error) => {
                if self.is_news(&error.to_string()) {
                    tracing::warn!(%error, "cannot sweep the inbox");
                }
                return HashSet::new();
            }
        };
        let unknown = |pending: &Pending| !queues::lock(&self.queues).knows(pending.inbox);
        let (lost, suspected): (Vec<_>, Vec<_>) =
            open.into_iter().filter(unknown).partition(|pending| suspects.contains(&pending.inbox));
        // Messages that `sessions retry` has reopened in another home are found here, too: they were not lost.
        let messages = lost.iter().filter(|pending| !reopened.contains(&pending.inbox)).count() as u64;
        if messages > 0 {
            tracing::warn!(messages, "the sweep found messages that were not being processed; processing them now");
            self.swept.fetch_add(messages, Ordering::Relaxed);
            self.turns.note(Event::QueueSwept { messages }.into());
        }
        self.enter_all(lost);
        suspected.into_iter().map(|pending| pending.inbox).collect()
    }

    /// Tells people who could not be reached when their message was parked. While that keeps failing, it is tried less
    /// and less often.
    async fn tell_untold(&self, retries: &mut HashMap<InboxId, Retry>) {
        match self.store.parked_untold().await {
            Ok(parked) => {
                let others_tell_for = if self.store.peers_may_have_work() { OTHERS_TELL_FOR } else { Duration::ZERO };
                let untold: HashSet<InboxId> = parked.iter().map(|parked| parked.inbox).collect();
                retries.retain(|inbox, _| untold.contains(inbox));
                for parked in parked {
                    let now = Instant::now();
                    let retry =
                        retries.entry(parked.inbox).or_insert(Retry { at: now + others_tell_for, pause: EVERY });
                    if now >= retry.at {
                        self.tell(parked.inbox).await;
                        *retry =
                            Retry { at: Instant::now() + retry.pause, pause: (retry.pause * 2).min(TELL_EVERY_MOST) };
                    }
                }
            }
            Err(error) => {
                if self.is_news(&error.to_string()) {
                    tracing::warn!(%error, "cannot read parked messages");
                }
            }
        }
    }
}
