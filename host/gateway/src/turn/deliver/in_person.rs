//! An answer that the place of its question does not take goes to who asked, in a direct message. That quotes the question, for
//! it stands elsewhere; a command is known by its answer.

use super::post::{Doubt, post};
use crate::{
    front::{Delivery, FrontError, Kind},
    services::Services,
    store::{self, Answered, Part, Purpose},
    talk::{ReplyTo, Speech},
    turn::{TurnError, placeholder},
};

/// Delivers a part of an answer that its place has refused; the id of the message, if there is one now.
pub(super) async fn deliver(
    services: &Services,
    answered: &Answered,
    part: &Part,
    doubt: Option<Doubt<'_>>,
) -> Result<Option<String>, TurnError> {
    let Answered { inbound, report, .. } = answered;
    // An answer that others gave is not who gave it to be told.
    let is_to_asker = part.outgoing.purpose == Purpose::Reply && !store::is_handed_on(inbound);
    if !is_to_asker || !services.people.may_hear(&inbound.user) {
        return Ok(None);
    }
    let channel = services.front.direct(&inbound.user).await?;
    if channel == inbound.reply_to.channel {
        return Ok(None);
    }
    let reply_to = ReplyTo { channel, thread_ts: None };
    let Speech { text, pings } = part.outgoing.speech.clone();
    let text = match report.question() {
        Some(_) if part.number == 0 => services.messages.in_person(&inbound.text) + &text,
        _ => text,
    };
    let speech = Speech { text, pings };
    let delivery =
        Delivery { number: part.number, kind: Kind::Reply, ..Delivery::notice(&inbound.event_id, &reply_to, &speech) };
    match post(services, delivery, doubt).await {
        Err(FrontError::Refused { what, .. }) => {
            tracing::warn!(what, "cannot send an answer as a direct message either");
            Ok(None)
        }
        posted => {
            let id = posted?;
            tracing::warn!(session = %inbound.key, "an answer is sent as a direct message to the person who asked: its place does not accept it");
            if part.number == 0
                && let Some(waits) = &answered.placeholder
            {
                placeholder::withdraw(services, &inbound.reply_to, waits).await?;
            }
            Ok(id)
        }
    }
}
