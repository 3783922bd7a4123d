//! Splits replies and questions to people into as many messages as the front requires.

use pmk_core::SessionKey;

use crate::{
    chat::MessageBody,
    front::{Front, Kind},
    messages::Messages,
    store::{Outgoing, Purpose},
};

/// Returns the parts of a reply. A very long reply is also sent as a file, with its first parts as
/// a fallback.
pub(super) fn of_reply(front: &dyn Front, messages: &Messages, key: &SessionKey, reply: MessageBody) -> Vec<Outgoing> {
    let pieces = front.split(&reply.text, Kind::Reply);
    let too_many = pieces.len() > front.most_parts();
    let pieces = bounded(front, messages, key, pieces);
    let of_text = |text| Outgoing { speech: MessageBody { text, pings: reply.pings.clone() }, ..Outgoing::default() };
    let mut parts: Vec<Outgoing> = pieces.into_iter().map(of_text).collect();
    if too_many {
        parts.insert(1, Outgoing { speech: reply, purpose: Purpose::Document, ..Outgoing::default() });
    }
    parts
}

/// Limits the pieces to the number of parts the front allows for one text. The last one says where the rest is: the
/// archive has all of it.
fn bounded(front: &dyn Front, messages: &Messages, key: &SessionKey, mut pieces: Vec<String>) -> Vec<String> {
    let most = front.most_parts();
    if pieces.len() > most {
        let rest = pieces.split_off(most.saturating_sub(1));
        let chars: usize = rest.iter().map(|piece| piece.chars().count()).sum();
        pieces.push(messages.cut_short(chars, key));
    }
    pieces
}

/// Returns a question to people, in as many messages as it takes.
pub(super) fn of_question(
    front: &dyn Front,
    messages: &Messages,
    key: &SessionKey,
    asking: &Outgoing,
) -> impl Iterator<Item = Outgoing> {
    let pieces = bounded(front, messages, key, front.split(&asking.speech.text, Kind::Notice));
    pieces.into_iter().map(|text| {
        let mut piece = asking.clone();
        piece.speech.text = text;
        piece
    })
}
