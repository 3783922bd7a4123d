//! Delivers an answer that the question's conversation refuses, in a direct message to each asker. The message quotes
//! the question, because it is elsewhere; the answer to a command is recognizable without that.

use super::post::{UncertainDelivery, post};
use crate::{
    chat::MessageBody,
    front::{Delivery, FrontError, Kind},
    messages::Messages,
    services::Services,
    store::{self, Answered, Part, Purpose},
    turn::{TurnError, placeholder},
};

/// Delivers a refused part and returns the id of the first message, if one was posted; the store knows them all. It is
/// enough if one of several askers gets it.
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
    let mut askers = vec![inbound.user.clone()];
    for (asker, _) in services.store.asked_along(answered.turn).await? {
        if !askers.contains(&asker) {
            askers.push(asker);
        }
    }
    let said = in_words(&services.messages, answered, part, &askers);
    let mut id = None;
    for asker in askers.iter().filter(|asker| services.people.may_hear(asker)) {
        match tell(services, answered, (part.number, &said), doubt, asker).await {
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
        placeholder::withdraw(&*services.front, &inbound.reply_to, waits).await?;
    }
    Ok(id)
}

/// Sends a part to one person; `None` if the conversation that refused it is their direct message.
async fn tell(
    services: &Services,
    answered: &Answered,
    (number, said): (u32, &MessageBody),
    doubt: Option<UncertainDelivery<'_>>,
    asker: &str,
) -> Result<Option<String>, TurnError> {
    let Answered { inbound, report, .. } = answered;
    let Some(reply_to) = services.front.direct_instead_of(&inbound.reply_to, asker).await? else { return Ok(None) };
    let delivery = Delivery {
        event_ids: &report.event_ids,
        number,
        kind: Kind::Reply,
        ..Delivery::notice(&inbound.event_id, &reply_to, said)
    };
    // Stored before it is posted: somebody may react to it at once.
    services.store.goes_in_person(answered.turn, number, &reply_to.channel).await?;
    let id = post(services, delivery, doubt).await?;
    if let Some(id) = &id {
        services.store.went_in_person(answered.turn, number, &reply_to.channel, id).await?;
    }
    Ok(id)
}

/// The part with the question in front of it, if it is the first part of an answer.
fn in_words(messages: &Messages, answered: &Answered, part: &Part, askers: &[String]) -> MessageBody {
    let mut said = part.outgoing.speech.clone();
    if part.number == 0 && answered.report.question().is_some() {
        let question = match askers {
            [_] => answered.inbound.text.clone(),
            several => {
                said.pings.extend_from_slice(several);
                with_mentions(&answered.inbound.text, several)
            }
        };
        said.text = messages.in_person(&question) + &said.text;
    }
    said
}

/// What several people asked, as people read it: each begins with a mention of who wrote it, which for the model is an id.
fn with_mentions(question: &str, askers: &[String]) -> String {
    let lines = question.lines().map(|line| match line.split_once(": ") {
        Some((user, words)) if askers.iter().any(|asker| asker == user) => format!("<@{user}>: {words}"),
        _ => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}
