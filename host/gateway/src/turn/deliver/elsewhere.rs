//! Parts that are sent elsewhere than to the question's conversation, or that are not messages.

use super::{
    super::TurnError,
    post::{UncertainDelivery, post},
};
use crate::{
    chat::{Inbound, MessageBody, ReplyTo},
    front::{Delivery, Front, FrontError},
    services::Services,
    store::Outgoing,
};

/// Returns where a part is sent.
pub(super) async fn place(front: &dyn Front, inbound: &Inbound, outgoing: &Outgoing) -> Result<ReplyTo, FrontError> {
    let thread_ts = outgoing.thread_ts.clone();
    Ok(match (&outgoing.to, thread_ts) {
        (Some(person), thread_ts) => ReplyTo { channel: front.direct(person).await?, thread_ts },
        (None, Some(thread_ts)) => ReplyTo { thread_ts: Some(thread_ts), ..inbound.reply_to.clone() },
        (None, None) => inbound.reply_to.clone(),
    })
}

/// Reacts to the question, or posts the replacement text if that is refused.
pub(super) async fn mark(
    services: &Services,
    inbound: &Inbound,
    emoji: &str,
    (number, otherwise): (u32, &MessageBody),
    doubt: Option<UncertainDelivery<'_>>,
) -> Result<Option<String>, TurnError> {
    match services.front.mark(&inbound.event_id, &inbound.reply_to, &inbound.ts, emoji).await {
        Err(FrontError::Refused { what, .. }) => {
            tracing::warn!(what, "cannot react to a message; writing text instead");
            let said = Delivery::notice(&inbound.event_id, &inbound.reply_to, otherwise);
            Ok(post(services, Delivery { number, ..said }, doubt).await?)
        }
        marked => Ok(marked.map(|()| None)?),
    }
}
