//! Interrupting: people have changed something about what is under way, and the store knows. What is being tried is given
//! up where it waits, and tried anew with what is stored now.

use pmk_core::SessionKey;

use super::{Dispatcher, queues};
use crate::ids::InboxId;

impl Dispatcher {
    /// Has what is under way in a conversation given up and begun anew, where anything is.
    pub fn interrupt(&self, key: &SessionKey) {
        queues::lock(&self.queues).interrupt(key);
    }

    /// The messages of a conversation that are just being worked on, in the order they were written.
    pub fn working(&self, key: &SessionKey) -> Vec<InboxId> {
        queues::lock(&self.queues).working(key)
    }

    /// Has the open messages of a conversation worked on that nobody works on yet.
    ///
    /// # Errors
    /// The store cannot be read; the next sweep finds them.
    pub async fn look_at(self: &std::sync::Arc<Self>, key: &SessionKey) -> Result<(), crate::store::StoreError> {
        self.enter_all(self.store.open_in(key).await?);
        Ok(())
    }
}
