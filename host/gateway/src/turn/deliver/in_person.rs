//! A slash command can be given where the bot may not post. Its answer then goes to who gave it, in a direct message.

use super::{Doubt, TurnError, post};
use crate::{
    front::{Delivery, FrontError},
    services::Services,
    store::{Answered, Part},
    talk::ReplyTo,
};

/// Delivers a part of an answer that its place has refused, where that is the answer to a command; the id of the message,
/// if there is one now.
pub(super) async fn deliver(
    services: &Services,
    answered: &Answered,
    part: &Part,
    doubt: Option<Doubt<'_>>,
) -> Result<Option<String>, TurnError> {
    let Answered { inbound, report, .. } = answered;
    if report.question().is_some() || !services.people.may_hear(&inbound.user) {
        return Ok(None);
    }
    // Slack takes a person's id for the channel.
    let reply_to = ReplyTo { channel: inbound.user.clone(), thread_ts: None };
    let speech = &part.outgoing.speech;
    let delivery = Delivery { number: part.number, ..Delivery::notice(&inbound.event_id, &reply_to, speech) };
    match post(services, delivery, doubt).await {
        Err(FrontError::Refused { what }) => {
            tracing::warn!(what, "the answer to a command does not go in a direct message either");
            Ok(None)
        }
        posted => Ok(posted?),
    }
}
