//! A yes or no to a message, by reaction or button: what it leads to, and how the message shows that.

use std::{sync::Arc, time::Duration};

use pmk_knowledge::reaction::ReactionVerdict;
use pmk_system::error::Failure;

use super::{judged::VerdictOutcome, proposal, verdict};
use crate::{
    chat::{MessageBody, Reaction, ReplyTo},
    dispatch::Dispatcher,
    front::{Delivery, FrontError},
    services::Services,
    store::VerdictSource,
};

/// The pause before changing a message is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(5);

/// Does what a yes or no asks for, if the message awaits one and it is from the person who is asked. Harmless if
/// repeated.
///
/// # Errors
/// It could not be done; it may be retried.
pub(super) async fn judge(
    services: &Arc<Services>,
    dispatcher: &Arc<Dispatcher>,
    reaction: &Reaction,
    said_by: VerdictSource,
) -> Result<VerdictOutcome, Failure> {
    let Some(said) = ReactionVerdict::of_reaction(&reaction.reaction) else { return Ok(VerdictOutcome::NotAwaited) };
    match proposal::judge(services, dispatcher, reaction, (said, said_by)).await? {
        VerdictOutcome::NotAwaited => verdict::judge(services, reaction, said_by).await,
        judged => Ok(judged),
    }
}

/// Tells only this person, in a task of its own, that their verdict has no effect, and why.
pub(super) fn whisper(services: &Arc<Services>, person: String, place: ReplyTo, text: String) {
    let telling = Arc::clone(services);
    services.tasks.spawn(async move {
        match telling.front.whisper(&person, &place, &text).await {
            Ok(()) | Err(FrontError::Closed) => {}
            Err(error) => tracing::warn!(%error, "cannot tell somebody that a button or a reaction has no effect"),
        }
    });
}

/// Replaces a message by the result, without its buttons. Returns false if the gateway ends before that is done.
pub(super) async fn show(services: &Services, place: &ReplyTo, ts: &str, text: String) -> bool {
    let speech = MessageBody { text, pings: vec![] };
    loop {
        let shown = Delivery { replaces: Some(ts), ..Delivery::notice("", place, &speech) };
        let wait = match services.front.deliver(shown).await {
            Ok(_) => return true,
            Err(FrontError::Transient { what, retry_after, .. }) => {
                tracing::debug!(what, "a message does not show its result yet");
                retry_after.unwrap_or(TRY_AGAIN)
            }
            Err(FrontError::Refused { what, .. }) => {
                tracing::warn!(what, "a message does not show its result, which takes effect all the same");
                return true;
            }
            Err(error) => {
                tracing::warn!(%error, "a message will not show its result until the next start");
                return false;
            }
        };
        tokio::select! {
            biased;
            () = services.stop.cancelled() => return false,
            () = tokio::time::sleep(wait) => {}
        }
    }
}
