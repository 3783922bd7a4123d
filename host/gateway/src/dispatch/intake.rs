//! Intake: stores messages and queues them, even if the caller has stopped waiting.

use std::sync::Arc;

use super::Dispatcher;
use crate::{
    chat::{Accepted, Addressing, AnsweredBy, Inbound, ThreadMessage},
    store::{Pending, StoreError},
};

/// How a message has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// As news.
    Fresh,
    /// By reading back: it may have arrived before, longer ago than event ids are remembered.
    ReadBack,
}

impl Dispatcher {
    /// Stores a message and has it processed. When this returns, the message survives a crash. If the caller goes
    /// away meanwhile because its socket closed, the message is still stored and processed.
    ///
    /// # Errors
    /// The message was not stored.
    pub async fn take_in(self: &Arc<Self>, message: Inbound, arrival: Arrival) -> Result<Accepted, StoreError> {
        let dispatcher = Arc::clone(self);
        let taken = self.tasks.spawn(async move { dispatcher.store_and_enter(message, arrival).await });
        // The task only fails if it panicked; then nothing is known to be stored.
        taken.await.unwrap_or(Err(StoreError::Closed))
    }

    /// Takes in a message of a channel thread if it is for the bot; `None` if it is not. The work goes on if the caller
    /// goes away.
    ///
    /// # Errors
    /// The message was not stored, or it could not be determined whether it is for the bot.
    pub async fn hear(self: &Arc<Self>, word: ThreadMessage, arrival: Arrival) -> Result<Option<Accepted>, StoreError> {
        let dispatcher = Arc::clone(self);
        let heard = self.tasks.spawn(async move { dispatcher.rule_on(word, arrival).await });
        heard.await.unwrap_or(Err(StoreError::Closed))
    }

    async fn rule_on(self: &Arc<Self>, word: ThreadMessage, arrival: Arrival) -> Result<Option<Accepted>, StoreError> {
        let ThreadMessage { message, manner } = word;
        let (key, user, ts) = (message.key.clone(), message.user.clone(), message.ts.clone());
        match manner {
            Addressing::Mention { alone } => {
                let accepted = self.store_and_enter(message, arrival).await?;
                // Repeated on a redelivery, in case the first call was interrupted.
                self.store.mentioned(&key, &user, &ts, alone).await?;
                Ok(Some(accepted))
            }
            Addressing::Plain { ref names, answered } => {
                let is_followed = self.store.overheard(&key, &user, &ts).await?;
                let message = match is_followed && manner.goes_on() {
                    true => message,
                    false if answered == Some(AnsweredBy::Bot) => return Ok(None),
                    false if !self.store.is_expected(&message, names).await? => return Ok(None),
                    false => Inbound { if_awaited: true, ..message },
                };
                self.store_and_enter(message, arrival).await.map(Some)
            }
        }
    }

    async fn store_and_enter(self: &Arc<Self>, message: Inbound, arrival: Arrival) -> Result<Accepted, StoreError> {
        let accepted = match arrival {
            Arrival::Fresh => self.store.accept(&message, self.clock.now_ms()).await,
            Arrival::ReadBack => self.store.accept_missed(&message, self.clock.now_ms()).await,
        };
        match accepted {
            Ok(Some(inbox)) => {
                self.enter(Pending { inbox, key: message.key, ts: message.ts });
                Ok(Accepted::New)
            }
            Ok(None) => {
                // It may still be open; then it is processed, whatever happened before.
                self.enter_all(self.store.open_in(&message.key).await?);
                Ok(Accepted::Duplicate)
            }
            Err(error) => Err(error),
        }
    }
}
