//! What an answer goes out as: the parts of a reply, and questions to people, in as many messages as the front takes.

use pmk_core::SessionKey;

use crate::{
    chat::MessageBody,
    front::Kind,
    services::Services,
    store::{Outgoing, Purpose},
};

/// The parts of a reply; a very long one is a file as well, with its first parts in reserve.
pub(super) fn of_reply(services: &Services, key: &SessionKey, reply: MessageBody) -> Vec<Outgoing> {
    let pieces = services.front.split(&reply.text, Kind::Reply);
    let too_many = pieces.len() > services.front.most_parts();
    let pieces = bounded(services, key, pieces);
    let of_text = |text| Outgoing { speech: MessageBody { text, pings: reply.pings.clone() }, ..Outgoing::default() };
    let mut parts: Vec<Outgoing> = pieces.into_iter().map(of_text).collect();
    if too_many {
        parts.insert(1, Outgoing { speech: reply, purpose: Purpose::Document, ..Outgoing::default() });
    }
    parts
}

/// At most as many parts as the front takes of one text. In place of the others one says where they are: the archive
/// has all of it.
fn bounded(services: &Services, key: &SessionKey, mut pieces: Vec<String>) -> Vec<String> {
    let most = services.front.most_parts();
    if pieces.len() > most {
        let rest = pieces.split_off(most.saturating_sub(1));
        let chars: usize = rest.iter().map(|piece| piece.chars().count()).sum();
        pieces.push(services.messages.cut_short(chars, key));
    }
    pieces
}

/// A question to people, in as many messages as it takes.
pub(super) fn of_question(services: &Services, key: &SessionKey, asking: &Outgoing) -> impl Iterator<Item = Outgoing> {
    let pieces = bounded(services, key, services.front.split(&asking.speech.text, Kind::Notice));
    pieces.into_iter().map(|text| {
        let mut piece = asking.clone();
        piece.speech.text = text;
        piece
    })
}
