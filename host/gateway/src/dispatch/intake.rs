//! Taking messages in: stored, then queued, whoever has stopped waiting for it.

use std::sync::Arc;

use super::Dispatcher;
use crate::{
    clock,
    front::{Accepted, Inbound},
    store::{Pending, StoreError},
};

impl Dispatcher {
    /// Stores a message and has it worked on. When this returns, the message survives a crash. A caller that goes
    /// away meanwhile, because its socket died, changes nothing: whatever gets stored is worked on.
    ///
    /// # Errors
    /// The message was not stored.
    pub async fn take_in(self: &Arc<Self>, message: Inbound) -> Result<Accepted, StoreError> {
        let dispatcher = Arc::clone(self);
        let taken = self.tasks.spawn(async move { dispatcher.store_and_enter(message).await });
        // It only fails when it panicked; then nothing is known to be stored.
        taken.await.unwrap_or(Err(StoreError::Closed))
    }

    async fn store_and_enter(self: &Arc<Self>, message: Inbound) -> Result<Accepted, StoreError> {
        match self.store.accept(&message, clock::now_ms()).await {
            Ok(Some(inbox)) => {
                self.enter(Pending { inbox, key: message.key, ts: message.ts });
                Ok(Accepted::New)
            }
            Ok(None) => {
                // It may be open still: then it is worked on, whatever became of it before.
                for pending in self.store.open_in(&message.key).await? {
                    self.enter(pending);
                }
                Ok(Accepted::Duplicate)
            }
            Err(error) => Err(error),
        }
    }
}
