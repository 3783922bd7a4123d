//! Somebody's word on a message, said by a reaction or by a button: what came of it, and how the message shows that.

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
    said_by: VerdictSource,
) -> Result<VerdictOutcome, Failure> {
    let Some(said) = ReactionVerdict::of_reaction(&reaction.reaction) else { return Ok(VerdictOutcome::NotAwaited) };
    match proposal::judge(services, dispatcher, reaction, (said, said_by)).await? {
        VerdictOutcome::NotAwaited => verdict::judge(services, reaction, said_by).await,
        judged => Ok(judged),
    }
}

/// Puts what became of it in a message's place, and takes its buttons away. False where that is still to be done when
/// the gateway ends.
pub(super) async fn show(services: &Services, place: &ReplyTo, ts: &str, text: String) -> bool {
    let speech = MessageBody { text, pings: vec![] };
    loop {
        let shown = Delivery { replaces: Some(ts), ..Delivery::notice("", place, &speech) };
        let wait = match services.front.deliver(shown).await {
            Ok(_) => return true,
            Err(FrontError::Transient { what, retry_after }) => {
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
