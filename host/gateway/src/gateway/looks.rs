//! Looks up the message of a reaction repeatedly: a message that was just posted, perhaps before a crash, becomes known
//! only once its delivery continues. One that another host has posted is known here once its atom is.

use std::time::Duration;

use pmk_system::error::Failure;

use super::presses::Patience;
use crate::{
    chat::{ReactedAuthor, Reaction},
    store::{Store, StoreError, Verdict},
};

/// The number of further lookups, and the pause before each. Together about one second; Slack allows
/// three.
const LOOKS: usize = 20;
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// The lookups for one message.
pub(super) struct Looks<'a> {
    store: &'a Store,
    channel: &'a str,
    /// Whether it may still turn out to be a message of the gateway.
    may_be_ours: bool,
    left: usize,
}

impl<'a> Looks<'a> {
    /// Prepares the lookups for the message of a reaction.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn at(store: &'a Store, reaction: &'a Reaction) -> Result<Looks<'a>, StoreError> {
        let may_be_ours = is_to_bot(reaction) && store.is_delivering_to(&reaction.message.channel).await?;
        Ok(Looks { store, channel: &reaction.message.channel, may_be_ours, left: LOOKS })
    }

    /// Returns whether to look again; waits for a moment before that.
    ///
    /// # Errors
    /// The lookups are used up, and it is still unknown whether it is such a message.
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

/// Returns the verdict that a reaction may be on the notice of an atom that only another host knows of so far.
pub(super) fn verdict_elsewhere(store: &Store, reaction: &Reaction) -> Option<Verdict> {
    let may_be_shared = is_to_bot(reaction) && Patience::of(store).is_left();
    Verdict::of_reaction(reaction).filter(|_| may_be_shared)
}

/// Whether somebody has reacted to what may be a message of the bot.
fn is_to_bot(reaction: &Reaction) -> bool {
    matches!(reaction.author, ReactedAuthor::Bot | ReactedAuthor::Unknown)
}
