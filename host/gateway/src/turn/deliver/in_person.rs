//! Delivers an answer that the question's conversation refuses, in a direct message to each asker. The message quotes
//! the question, because it is elsewhere; the answer to a command is recognizable without that.

use std::collections::BTreeSet;

use super::post::{UncertainDelivery, post};
use crate::{
    chat::{self, MessageBody},
    front::{Delivery, FrontError, Kind},
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
    let said = in_words(services, answered, part).await?;
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
async fn in_words(services: &Services, answered: &Answered, part: &Part) -> Result<MessageBody, TurnError> {
    let Answered { turn, inbound, report, .. } = answered;
    let mut said = part.outgoing.speech.clone();
    if part.number == 0 && report.question().is_some() {
        let asked = match report.event_ids[..] {
            // A contact's answer, too, is quoted as it was written, not as the model was told of it.
            [] => vec![(inbound.user.clone(), inbound.text.clone())],
            _ => services.store.asked_together(*turn, &inbound.key).await?,
        };
        let MessageBody { text, pings } = together(&asked);
        said.text = services.messages.in_person(&text) + &said.text;
        said.pings.extend(pings);
    }
    Ok(said)
}

/// What was asked, as people read it. Of several people, each is mentioned before what they wrote.
fn together(asked: &[(String, String)]) -> MessageBody {
    let askers: BTreeSet<&String> = asked.iter().map(|(asker, _)| asker).collect();
    let pings: Vec<String> = if askers.len() > 1 { askers.into_iter().cloned().collect() } else { vec![] };
    let texts = asked.iter().map(|(asker, text)| match pings[..] {
        [] => text.clone(),
        _ => chat::attributed(&format!("<@{asker}>"), text),
    });
    MessageBody { text: texts.collect::<Vec<_>>().join("\n\n"), pings }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: what one person had asked in a channel was quoted with their id before each message.
    #[test]
    fn what_one_person_had_asked_in_several_messages_was_quoted_with_ids() {
        let quote = |asked: &[[&str; 2]]| {
            let asked: Vec<(String, String)> = asked.iter().map(|&[asker, text]| (asker.into(), text.into())).collect();
            together(&asked)
        };
        let alone = quote(&[["U1", "When?"], ["U1", "And where?"]]);
        assert_eq!((&*alone.text, alone.pings.len()), ("When?\n\nAnd where?", 0));
        let both = quote(&[["U2", "Where?\n<@U1>: in Rome"], ["U1", "And when?"]]);
        assert_eq!(both.text, "<@U2>: Where?\n  <@U1>: in Rome\n\n<@U1>: And when?");
        assert_eq!(both.pings, ["U1", "U2"]);
    }
}
