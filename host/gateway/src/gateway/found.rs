//! Takes in messages that were found by reading back, as if they had just arrived. One may have arrived before, longer
//! ago than event ids are remembered.

use std::sync::Arc;

use async_trait::async_trait;

use super::changes;
use crate::{
    chat::{Accepted, Inbound, ThreadMessage},
    dispatch::{Arrival, Dispatcher},
    presence::FoundIntake,
    services::Services,
    store::StoreError,
};

pub(super) struct Found {
    pub services: Arc<Services>,
    pub dispatcher: Arc<Dispatcher>,
}

#[async_trait]
impl FoundIntake for Found {
    async fn accept(&self, message: Inbound) -> Result<Accepted, StoreError> {
        if changes::stop_by_word(&self.services, &self.dispatcher, &message).await? {
            return Ok(Accepted::New);
        }
        self.dispatcher.take_in(message, Arrival::ReadBack).await
    }

    async fn hear(&self, word: ThreadMessage) -> Result<Option<Accepted>, StoreError> {
        if changes::stop_by_word_in_thread(&self.services, &self.dispatcher, &word).await? {
            return Ok(Some(Accepted::New));
        }
        self.dispatcher.hear(word, Arrival::ReadBack).await
    }
}
