//! Somebody's word on a message, said by a reaction or by a button: what came of it, and how the message shows that.

use std::{sync::Arc, time::Duration};

use pmk_knowledge::reaction::ReactionVerdict;
use pmk_system::error::Failure;

use super::{judged::Judged, proposal, verdict};
use crate::{
    dispatch::Dispatcher,
    front::{Delivery, FrontError},
    services::Services,
    store::{Store, StoreError},
    talk::{Reaction, ReplyTo, Speech},
};

/// How often a message that nobody knows is looked for again while something is being delivered, and the wait before: well
/// within the three seconds that Slack gives.
const LOOKS: usize = 20;
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// The wait before a message is tried again that could not be changed.
const TRY_AGAIN: Duration = Duration::from_secs(5);

/// Does what a yes or a no asks for, if it is on a message that waits for one, and by who is asked. Taken in twice it
/// does no harm.
///
/// # Errors
/// It could not be done and may be tried again.
pub(super) async fn judge(
    services: &Services,
    dispatcher: &Arc<Dispatcher>,
    reaction: &Reaction,
) -> Result<Judged, Failure> {
    let Some(said) = ReactionVerdict::of_reaction(&reaction.reaction) else { return Ok(Judged::NotAwaited) };
    let mut looks = Looks::at(services, &reaction.channel).await?;
    loop {
        let judged = match proposal::judge(services, dispatcher, reaction, said).await? {
            Judged::NotAwaited => verdict::judge(services, reaction).await.map_err(Failure::new)?,
            judged => judged,
        };
        if !matches!(judged, Judged::NotAwaited) || !looks.again().await? {
            return Ok(judged);
        }
    }
}

/// Looks for a message that nobody knows: one that was posted just now, perhaps before a crash, is known for what it is
/// once its delivery goes on.
pub(super) struct Looks<'a> {
    store: &'a Store,
    channel: &'a str,
    is_delivering: bool,
    left: usize,
}

impl<'a> Looks<'a> {
    /// Before the first look in this channel.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn at(services: &'a Services, channel: &'a str) -> Result<Looks<'a>, StoreError> {
        let is_delivering = services.store.is_delivering_to(channel).await?;
        Ok(Looks { store: &services.store, channel, is_delivering, left: LOOKS })
    }

    /// Whether to look once more, a moment later.
    ///
    /// # Errors
    /// That was often enough, and it is still not known whether it is such a message.
    pub async fn again(&mut self) -> Result<bool, Failure> {
        if !self.is_delivering {
            return Ok(false);
        }
        self.left = self.left.checked_sub(1).ok_or_else(|| {
            Failure::new("this message may be one that is still being delivered").hint("send it again")
        })?;
        tokio::time::sleep(LOOK_AGAIN).await;
        self.is_delivering = self.store.is_delivering_to(self.channel).await?;
        Ok(true)
    }
}

/// Puts what became of it in a message's place, and takes its buttons away. False where that is still to be done when
/// the gateway ends.
pub(super) async fn show(services: &Services, place: &ReplyTo, ts: &str, text: String) -> bool {
    let speech = Speech { text, pings: vec![] };
    loop {
        let shown = Delivery { replaces: Some(ts), ..Delivery::notice("", place, &speech) };
        let wait = match services.front.deliver(shown).await {
            Ok(_) => return true,
            Err(FrontError::Transient { what, retry_after }) => {
                tracing::debug!(what, "a message does not show yet what became of it");
                retry_after.unwrap_or(TRY_AGAIN)
            }
            Err(FrontError::Refused { what }) => {
                tracing::warn!(what, "a message does not show what became of it, which holds all the same");
                return true;
            }
            Err(error) => {
                tracing::warn!(%error, "a message does not show what became of it before the next start");
                return false;
            }
        };
        tokio::select! {
            () = services.stop.cancelled() => return false,
            () = tokio::time::sleep(wait) => {}
        }
    }
}
