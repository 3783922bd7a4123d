//! Looking for a message that nobody knows: one that was posted just now, perhaps before a crash, is known for what it is
//! once its delivery goes on.

use std::time::Duration;

use pmk_system::error::Failure;

use crate::{
    chat::Reaction,
    services::Services,
    store::{Store, StoreError},
};

/// How often it is looked for again, and the wait before. Together about a second: Slack gives three.
const LOOKS: usize = 20;
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// The looks for one message.
pub(super) struct Looks<'a> {
    store: &'a Store,
    channel: &'a str,
    /// Whether it may yet turn out to be one of ours.
    may_be_ours: bool,
    left: usize,
}

impl<'a> Looks<'a> {
    /// Before the first look for the message of a reaction.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn at(services: &'a Services, reaction: &'a Reaction) -> Result<Looks<'a>, StoreError> {
        let may_be_ours = !reaction.of_another && services.store.is_delivering_to(&reaction.channel).await?;
        Ok(Looks { store: &services.store, channel: &reaction.channel, may_be_ours, left: LOOKS })
    }

    /// Whether to look once more, a moment later.
    ///
    /// # Errors
    /// That was often enough, and it is still not known whether it is such a message.
    pub async fn again(&mut self) -> Result<bool, Failure> {
        if !self.may_be_ours {
            return Ok(false);
        }
        self.left = self
            .left
            .checked_sub(1)
            .ok_or_else(|| Failure::new("this message may still be on its way").hint("send it again"))?;
        tokio::time::sleep(LOOK_AGAIN).await;
        self.may_be_ours = self.store.is_delivering_to(self.channel).await?;
        Ok(true)
    }
}
