//! What arrives over a WebSocket of Socket Mode, and what becomes of it.

use serde::Deserialize;

use super::{
    hearing::Hearing,
    inbound::{Callback, News, news},
    invoked,
    web::Identity,
};
use crate::front::{Accepted, Intake, Invocation, Notice};

/// One text frame.
pub(super) enum Frame {
    /// The connection stands.
    Hello,
    /// Slack is about to close the connection.
    Disconnect { reason: String },
    /// An event, to be acknowledged once it is stored. Slack may have sent it before.
    Event { envelope: String, callback: Box<Callback>, again: bool },
    /// A slash command or a click; or which id of it is none. Slack sends it once.
    Invoked { envelope: String, invocation: Result<Invocation, &'static str> },
    /// Something this program does nothing with. It is acknowledged, where it can be, for it would be no
    /// more use the second time.
    Other { envelope: Option<String> },
}

/// What every frame has, as far as it matters.
#[derive(Deserialize)]
struct Head {
    #[serde(rename = "type")]
    kind: String,
    reason: Option<String>,
    envelope_id: Option<String>,
    retry_attempt: Option<u32>,
}

/// An envelope of type `events_api`.
#[derive(Deserialize)]
struct EventEnvelope {
    envelope_id: String,
    payload: Box<Callback>,
}

impl Frame {
    /// Reads a frame. What it says is not logged: it is what people wrote.
    pub(super) fn read(text: &str) -> Self {
        let head: Head = match serde_json::from_str(text) {
            Ok(head) => head,
            Err(error) => {
                tracing::warn!(column = error.column(), "Slack sent a frame that cannot be read");
                return Frame::Other { envelope: None };
            }
        };
        match head.kind.as_str() {
            "hello" => Frame::Hello,
            "disconnect" => Frame::Disconnect { reason: head.reason.unwrap_or_default() },
            "events_api" => match serde_json::from_str(text) {
                Ok(EventEnvelope { envelope_id, payload }) => {
                    let again = head.retry_attempt.is_some_and(|attempt| attempt > 0);
                    if again {
                        tracing::debug!(event = payload.event_id, attempt = head.retry_attempt, "redelivered");
                    }
                    Frame::Event { envelope: envelope_id, callback: payload, again }
                }
                Err(error) => {
                    tracing::warn!(column = error.column(), "Slack sent an event that cannot be read");
                    Frame::Other { envelope: head.envelope_id }
                }
            },
            "slash_commands" | "interactive" if head.envelope_id.is_some() => {
                Frame::Invoked { envelope: head.envelope_id.unwrap_or_default(), invocation: invoked::read(text) }
            }
            kind => {
                tracing::debug!(kind, "Slack sent a kind of envelope that nothing here handles");
                Frame::Other { envelope: head.envelope_id }
            }
        }
    }
}

/// The frame that acknowledges an envelope.
pub(super) fn acknowledgement(envelope: &str) -> String {
    serde_json::json!({ "envelope_id": envelope }).to_string()
}

/// Where messages are handed in.
#[derive(Clone, Copy)]
pub(super) struct Desk<'a> {
    pub(super) me: &'a Identity,
    pub(super) intake: &'a dyn Intake,
    pub(super) hearing: &'a Hearing,
}

impl Desk<'_> {
    /// Takes in what an event brings, if it is for the bot. The acknowledgement comes back only
    /// when nothing is left that a redelivery could save.
    pub(super) async fn take(self, envelope: String, callback: Box<Callback>, again: bool) -> Option<String> {
        let (event, sent_s) = (callback.event_id.clone(), callback.event_time);
        match news(*callback, self.me) {
            None => {}
            Some(News::Message(message)) => match self.intake.accept(*message).await {
                Ok(Accepted::New) => {
                    tracing::debug!(event, "stored");
                    self.hearing.came(again, sent_s);
                }
                Ok(Accepted::Duplicate) => tracing::debug!(event, "was stored before"),
                Err(error) => {
                    tracing::error!(event, %error, "a message could not be stored; Slack will send it again");
                    return None;
                }
            },
            Some(News::Malformed(field)) => self.refuse(field),
            Some(News::Reaction(reaction)) => {
                if let Err(error) = self.intake.react(reaction).await {
                    tracing::error!(event, %error, "a reaction had no effect; Slack will send it again");
                    return None;
                }
            }
        }
        Some(acknowledgement(&envelope))
    }

    /// Takes in a slash command or a click, and says how it is acknowledged.
    pub(super) fn take_invocation(self, envelope: &str, invocation: Result<Invocation, &'static str>) -> String {
        match invocation {
            Ok(invocation) => self.intake.invoke(invocation),
            Err(field) => self.refuse(field),
        }
        acknowledgement(envelope)
    }

    /// It is acknowledged all the same: it would be no better the second time.
    fn refuse(self, field: &'static str) {
        tracing::warn!(field, "Slack sent something with an id that is none; it is refused");
        self.intake.notice(Notice::Malformed { field });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_acknowledged_where_it_can_be() {
        for (frame, expected) in [
            (r#"{"type":"events_api","envelope_id":"e1","payload":{"surprise":1}}"#, Some("e1")),
            (r#"{"type":"views","envelope_id":"e2","payload":{}}"#, Some("e2")),
            (r#"{"type":"something_new"}"#, None),
            ("not json", None),
        ] {
            let Frame::Other { envelope } = Frame::read(frame) else { panic!("{frame} was read") };
            assert_eq!(envelope.as_deref(), expected, "{frame}");
        }
    }

    #[test]
    fn an_acknowledgement_is_the_envelope_id() {
        assert_eq!(acknowledgement("e1"), r#"{"envelope_id":"e1"}"#);
    }
}
