//! Interruption: people have changed something about a running turn, and the change is stored. The current attempt is
//! given up at its next await, and the turn is tried again with the stored state.

use std::sync::Arc;

use pmk_core::SessionKey;

use super::{Dispatcher, queues};
use crate::{ids::InboxId, store::StoreError};

impl Dispatcher {
    /// Gives up a conversation's running attempt, if there is one, and has it tried again.
    pub fn interrupt(&self, key: &SessionKey) {
        queues::lock(&self.queues).interrupt(key);
    }

    /// Returns the messages of a conversation that are being processed, in the order in which they
    /// were written.
    pub fn working(&self, key: &SessionKey) -> Vec<InboxId> {
        queues::lock(&self.queues).working(key)
    }

    /// Queues the open messages of a conversation that are not processed yet.
    ///
    /// # Errors
    /// The store cannot be read; the next sweep finds them.
    pub async fn look_at(self: &Arc<Self>, key: &SessionKey) -> Result<(), StoreError> {
        self.enter_all(self.store.open_in(key).await?);
        Ok(())
    }

    /// Does the same for a conversation in which a parked message may have been reopened, once nobody is being told of
    /// a parked message any more: the notice must not replace what the message gets now. In a task of its own, because
    /// telling people takes as long as Slack does.
    pub fn look_at_once_told(self: &Arc<Self>, key: &SessionKey) {
        let (dispatcher, key) = (Arc::clone(self), key.clone());
        self.tasks.spawn(async move {
            let _telling = dispatcher.telling.lock().await;
            if let Err(error) = dispatcher.look_at(&key).await {
                tracing::debug!(session = %key, %error, "what was reopened there will be found later");
            }
        });
    }
}
