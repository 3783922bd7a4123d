//! Other hosts on the same database: what one that is gone was at is worked on here, and what others have taken in, or changed,
//! of a conversation that is worked on here is seen. Looking is enough: a hint of the database's would save a quarter of a
//! second at most, and does not come through a pooler.

use std::{sync::Arc, time::Duration};

use super::{Dispatcher, queues};
use crate::store::{StoreError, UnderWay};

const LOOK_EVERY: Duration = Duration::from_millis(250);

impl Dispatcher {
    /// Looks until the gateway stops.
    pub(super) async fn look_after_hosts(self: Arc<Self>) {
        loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            if let Err(error) = self.look_round().await {
                tracing::debug!(%error, "what other hosts do is not known now");
            }
        }
    }

    async fn look_round(self: &Arc<Self>) -> Result<(), StoreError> {
        if self.store.look_after_hosts().await? {
            let pending = self.store.open_work().await?.pending;
            tracing::info!(messages = pending.len(), "another host goes or is gone; this one sees to what it has left");
            self.enter_all(pending);
        }
        if !self.store.others_have_some() {
            return Ok(());
        }
        for UnderWay { pending, revision } in self.store.under_way().await? {
            queues::lock(&self.queues).stands_at(&pending.key, revision);
            self.enter(pending);
        }
        Ok(())
    }
}
