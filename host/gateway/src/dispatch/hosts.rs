//! Other hosts on the same database. This host takes over the work of a host that is gone; it notices which messages
//! and changes others have stored for conversations that it works on; and it notices when a conversation that another
//! host works on becomes free. It polls: a notification from the database would save a quarter of a second at most, and
//! does not pass through a connection pooler.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use super::{Dispatcher, queues};
use crate::store::{StoreError, UnderWay, UnleasedConversation};

/// The least and the most time between two polls.
const LOOK_EVERY: [Duration; 2] = [Duration::from_millis(250), Duration::from_millis(750)];
/// Within these limits, the pause is this many times the duration of the poll, so that it grows under load.
const LOOK_SELDOM: u32 = 10;

/// How long a conversation's next message is left to the host that received it, which may be busy.
const STAND_BACK: Duration = Duration::from_secs(2);

impl Dispatcher {
    /// Polls until the gateway stops.
    pub(super) async fn look_after_hosts(self: Arc<Self>) {
        let [least, most] = LOOK_EVERY;
        let mut pause = least;
        loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
            let begun = Instant::now();
            if let Err(error) = self.look_round().await {
                tracing::debug!(%error, "cannot find out what other hosts are doing now");
            }
            pause = (begun.elapsed() * LOOK_SELDOM).clamp(least, most);
        }
    }

    async fn look_round(self: &Arc<Self>) -> Result<(), StoreError> {
        if self.store.look_after_hosts().await? {
            let pending = self.store.open_work().await?.pending;
            tracing::info!(messages = pending.len(), "another host is stopping or gone; taking over what it left");
            self.enter_all(pending);
        }
        let elsewhere = queues::lock(&self.queues).elsewhere();
        for UnleasedConversation { key, is_anothers_next } in self.store.free_among(elsewhere).await? {
            let least = if is_anothers_next { STAND_BACK } else { Duration::ZERO };
            queues::lock(&self.queues).go_on(&key, least);
        }
        if !self.store.peers_may_have_work() {
            return Ok(());
        }
        for UnderWay { pending, revision } in self.store.under_way().await? {
            queues::lock(&self.queues).stands_at(&pending.key, revision);
            self.enter(pending);
        }
        Ok(())
    }
}
