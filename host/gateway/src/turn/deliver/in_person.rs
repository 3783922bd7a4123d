//! Delivers an answer that the question's conversation refuses, in a direct message to each asker. The message quotes
//! the question, because it is elsewhere; the answer to a command is recognizable without that.

use super::post::{UncertainDelivery, post};
use crate::{
    chat::{MessageBody, ReplyTo},
    front::{Delivery, FrontError, Kind},
    services::Services,
    store::{self, Answered, Part, Purpose},
    turn::{TurnError, placeholder},
};

/// Delivers a refused part and returns the id of the message, if one was posted. Of several askers, it is enough that
/// one gets it.
pub(super) async fn deliver(
    services: &Services,
    answered: &Answered,
    part: &Part,
    doubt: Option<UncertainDelivery<'_>>,
) -> Result<Option<String>, TurnError> {
    let Answered { inbound, .. } = answered;
    // A contact's answer is not sent back to the contact who gave it.
    if part.outgoing.purpose != Purpose::Reply || store::is_handed_on(inbound) {
        return Ok(None);
    }
    let mut askers = services.store.asked_along(answered.turn).await?;
    askers.retain(|asker| *asker != inbound.user);
    askers.insert(0, inbound.user.clone());
    let mut id = None;
    for asker in askers.iter().filter(|asker| services.people.may_hear(asker)) {
        match tell(services, answered, part, doubt, asker).await {
            Err(TurnError::Front(FrontError::Refused { what, .. })) => {
                tracing::warn!(what, "cannot send an answer as a direct message either");
            }
            told => id = id.or(told?),
        }
    }
    if id.is_none() {
        return Ok(None);
    }
    tracing::warn!(session = %inbound.key, "an answer is sent as a direct message to the person who asked: its place does not accept it");
    if part.number == 0
        && let Some(waits) = &answered.placeholder
    {
        placeholder::withdraw(services, &inbound.reply_to, waits).await?;
    }
    Ok(id)
}

/// Sends a part to one person; `None` if the conversation that refused it is their direct message.
async fn tell(
    services: &Services,
    Answered { inbound, report, .. }: &Answered,
    part: &Part,
    doubt: Option<UncertainDelivery<'_>>,
    asker: &str,
) -> Result<Option<String>, TurnError> {
    let channel = services.front.direct(asker).await?;
    if channel == inbound.reply_to.channel {
        return Ok(None);
    }
    let reply_to = ReplyTo { channel, thread_ts: None };
    let MessageBody { text, pings } = part.outgoing.speech.clone();
    let text = match report.question() {
        Some(_) if part.number == 0 => services.messages.in_person(&inbound.text) + &text,
        _ => text,
    };
    let speech = MessageBody { text, pings };
    let delivery =
        Delivery { number: part.number, kind: Kind::Reply, ..Delivery::notice(&inbound.event_id, &reply_to, &speech) };
    Ok(post(services, delivery, doubt).await?)
}
