//! Takes in messages, wherever they come from. What else people do is handled by the methods in the other files.

use std::sync::Arc;

use async_trait::async_trait;

use crate::{
    chat::{Accepted, Inbound, ThreadMessage},
    dispatch::{Arrival, Dispatcher},
    presence::FoundIntake,
    services::Services,
    store::StoreError,
};

/// Handles what people say and do.
#[derive(Clone)]
pub(super) struct Handler {
    pub services: Arc<Services>,
    pub dispatcher: Arc<Dispatcher>,
}

impl Handler {
    /// Handles a message to the bot: a stop word, or any other.
    ///
    /// # Errors
    /// The message was not stored.
    pub async fn take_in(&self, message: Inbound, arrival: Arrival) -> Result<Accepted, StoreError> {
        if self.stop_by_word(&message).await? {
            return Ok(Accepted::New);
        }
        self.dispatcher.take_in(message, arrival).await
    }

    /// Handles what somebody says in a thread of a channel: a stop word that is for the bot, or a message; `None` if it
    /// is not for the bot.
    ///
    /// # Errors
    /// The message was not stored, or it could not be determined whether it is for the bot.
    pub async fn take_in_thread(&self, word: ThreadMessage, arrival: Arrival) -> Result<Option<Accepted>, StoreError> {
        if self.stop_by_word_in_thread(&word).await? {
            return Ok(Some(Accepted::New));
        }
        self.dispatcher.hear(word, arrival).await
    }

    /// Runs `doing` to its end even if the caller stops waiting, because what is stored must be acted on.
    pub async fn whole<T: Send + 'static>(
        &self,
        doing: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.services.tasks.spawn(doing).await.unwrap_or(Err(StoreError::Closed))
    }
}

#[async_trait]
impl FoundIntake for Handler {
    async fn accept(&self, message: Inbound) -> Result<Accepted, StoreError> {
        self.take_in(message, Arrival::ReadBack).await
    }

    async fn hear(&self, word: ThreadMessage) -> Result<Option<Accepted>, StoreError> {
        self.take_in_thread(word, Arrival::ReadBack).await
    }
}
