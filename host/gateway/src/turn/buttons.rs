//! The buttons under messages. For every button there is a reaction with the same effect.

use crate::{
    chat::Button,
    messages::Messages,
    store::{Offers, Outgoing, Part, Purpose},
};

/// Marks the last message of an answer as the one whose readers are asked for their opinion.
pub(super) fn ask_opinion(parts: &mut [Outgoing]) {
    let ends = match parts.iter().any(|part| part.purpose == Purpose::Document) {
        // A file has no buttons.
        true => parts.first_mut(),
        false => parts.iter_mut().rfind(|part| part.purpose == Purpose::Reply),
    };
    if let Some(part) = ends {
        part.offers = Offers::Opinion;
    }
}

/// Offers a retry to the asker if the model could not be reached.
pub(super) fn offer_again(parts: &mut [Outgoing]) {
    if let Some(part) = parts.iter_mut().rfind(|part| part.purpose == Purpose::Reply) {
        part.offers = Offers::Again;
    }
}

/// Returns the buttons of a message: one of these sets.
pub(super) fn under(messages: &Messages, parts: &[Part], part: &Part) -> Vec<Button> {
    let later = |other: &&Part| other.number > part.number && other.outgoing.purpose == Purpose::Proposal;
    match &part.outgoing.purpose {
        Purpose::Notice { .. } => messages.verdict_buttons(),
        // Of a proposal in several pieces, the last one has the buttons.
        Purpose::Proposal if parts.iter().find(later).is_none() => messages.yes_and_no_buttons(),
        Purpose::Reply => match part.outgoing.offers {
            Offers::Opinion => messages.opinion_buttons(),
            Offers::Again => messages.again_button(),
            Offers::Nothing => vec![],
        },
        _ => vec![],
    }
}

#[cfg(test)]
mod tests {
    use pmk_core::Language;

    use super::*;

    #[test]
    fn of_several_pieces_of_a_proposal_the_last_asks_for_the_word() {
        let messages = Messages::new(Language::English);
        let purposes = [Purpose::Proposal, Purpose::Proposal, Purpose::Reply];
        let outgoing = |purpose| Outgoing { purpose, ..Outgoing::reply("may I?") };
        let parts: Vec<Part> =
            (0..).zip(purposes.map(outgoing)).map(|(number, outgoing)| Part { number, outgoing }).collect();
        let offered = parts.iter().map(|part| under(&messages, &parts, part));
        assert_eq!(offered.collect::<Vec<_>>(), [vec![], messages.yes_and_no_buttons(), vec![]]);
    }
}
