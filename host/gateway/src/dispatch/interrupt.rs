//! Interruption: people have changed something about a running turn, and the change is stored. The current attempt is
//! given up at its next await, and the turn is tried again with the stored state.

use pmk_core::SessionKey;

use super::{Dispatcher, queues};
use crate::ids::InboxId;

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
    pub async fn look_at(self: &std::sync::Arc<Self>, key: &SessionKey) -> Result<(), crate::store::StoreError> {
        self.enter_all(self.store.open_in(key).await?);
        Ok(())
    }
}
