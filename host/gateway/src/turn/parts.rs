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
    // Only what pings nobody is delivered as a block, which holds more than a text.
    let kind = if reply.pings.is_empty() { Kind::Reply } else { Kind::Notice };
    let pieces = front.split(&reply.text, kind);
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

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use pmk_core::Language;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::{
        chat::Inbound,
        front::{Delivery, FrontError, Intake, Progress},
        ledger::report::TurnReport,
    };

    /// A front whose limits for Chinese texts are those of Slack.
    struct Limited;

    #[async_trait]
    impl Front for Limited {
        async fn listen(&self, _intake: &dyn Intake, _stop: CancellationToken) -> Result<(), FrontError> {
            Ok(())
        }

        async fn placeholder(&self, _question: &Inbound, _text: &str) -> Result<Option<String>, FrontError> {
            Ok(None)
        }

        async fn progress(&self, _progress: &Progress) -> Result<(), FrontError> {
            Ok(())
        }

        fn split(&self, text: &str, kind: Kind) -> Vec<String> {
            let most = if kind == Kind::Reply { 11_000 } else { 1_300 };
            let chars: Vec<char> = text.chars().collect();
            chars.chunks(most).map(|piece| piece.iter().collect()).collect()
        }

        fn most_parts(&self) -> usize {
            5
        }

        async fn deliver(&self, _part: Delivery<'_>) -> Result<Option<String>, FrontError> {
            Ok(None)
        }

        async fn report(&self, _event_id: &str, _report: &TurnReport) -> Result<(), FrontError> {
            Ok(())
        }
    }

    /// Regression: it was measured as a block, in which nobody is pinged, and became eight messages.
    #[test]
    fn a_long_answer_that_pings_somebody_was_in_more_messages_than_an_answer_may_have() {
        let key = "slack:channel:C1".parse().expect("a key");
        let parts = |pings: Vec<String>| {
            let reply = MessageBody { text: "預".repeat(10_000), pings };
            of_reply(&Limited, &Messages::new(Language::English), &key, reply)
        };
        assert_eq!(parts(vec![]).len(), 1);
        let parts = parts(vec!["U1".into()]);
        assert_eq!((parts.len(), &parts[1].purpose), (6, &Purpose::Document));
        assert_eq!((&*parts[1].speech.text, &*parts[0].speech.text), (&*"預".repeat(10_000), &*"預".repeat(1_300)));
    }
}
