//! The frames of a Socket Mode WebSocket, and how they are handled.

use pmk_system::{error::Failure, json};
use serde::Deserialize;
use serde_json::Value;

use super::{
    connectivity::Connectivity,
    identity::Identity,
    inbound::{Callback, InboundEvent, news},
    invoked::{self, Invoked},
    places::Places,
    prompts::Prompts,
    statuses::Statuses,
    streams::Streams,
    unstored::Unstored,
};
use crate::{
    chat::{Accepted, Inbound, Invocation, Notice, Press, says_stop},
    front::Intake,
};

/// The longest envelope id, which is sent back: Slack's have 36 bytes.
const MAX_ENVELOPE_ID: usize = 256;

/// One text frame.
pub(super) enum Frame {
    /// The connection is established.
    Hello,
    /// Slack is about to close the connection.
    Disconnect { reason: String },
    /// An event, to be acknowledged once it is stored. Slack may have sent it before.
    Event { envelope: String, callback: Box<Callback>, again: bool },
    /// A slash command, to be acknowledged once it is stored. Slack sends it once, and tells the person if it is not
    /// acknowledged.
    Command { envelope: String, message: Box<Inbound> },
    /// A press of one of the bot's buttons, to be acknowledged once it is stored. Slack sends it once, and shows the
    /// person if it is not acknowledged.
    Press { envelope: String, press: Box<Press> },
    /// Any other click. Slack sends it once.
    Click { envelope: String, invocation: Invocation },
    /// A frame that this program does not handle. It is acknowledged if possible, since a second
    /// delivery would be no more useful.
    Other { envelope: Option<String> },
    /// A frame that Slack never sends: this part of it has the wrong shape. It is acknowledged like the above.
    Malformed { part: &'static str, envelope: Option<String> },
}

/// The relevant fields of every frame. They may have any type, so that an envelope with another error is still
/// acknowledged.
#[derive(Deserialize)]
struct Head {
    #[serde(rename = "type", default)]
    kind: Value,
    #[serde(default)]
    reason: Value,
    #[serde(default)]
    envelope_id: Value,
    #[serde(default)]
    retry_attempt: Value,
}

impl Head {
    /// Returns the id, or the error of a frame without a valid one.
    fn envelope(&self) -> Result<Option<String>, Frame> {
        match &self.envelope_id {
            Value::Null => Ok(None),
            Value::String(id) if (1..=MAX_ENVELOPE_ID).contains(&id.len()) => Ok(Some(id.clone())),
            _ => Err(Frame::Malformed { part: "envelope_id", envelope: None }),
        }
    }
}

/// An envelope of type `events_api`.
#[derive(Deserialize)]
struct EventEnvelope {
    #[serde(deserialize_with = "json::object")]
    payload: Box<Callback>,
}

impl Frame {
    /// Parses a frame. Its content is not logged: it is what people wrote.
    pub(super) fn read(text: &str) -> Self {
        let Ok(head) = json::read_object::<Head>(text) else {
            return Frame::Malformed { part: "frame", envelope: None };
        };
        let envelope = match head.envelope() {
            Ok(envelope) => envelope,
            Err(malformed) => return malformed,
        };
        match head.kind.as_str() {
            None => Frame::Malformed { part: "type", envelope },
            Some("hello") => Frame::Hello,
            Some("disconnect") => Frame::Disconnect { reason: head.reason.as_str().unwrap_or_default().to_owned() },
            Some("events_api") => Frame::event(text, envelope, &head.retry_attempt),
            Some("slash_commands" | "interactive") => Frame::invoked(text, envelope),
            Some(_) => {
                // Nor is its type logged, which may be of any length.
                tracing::debug!("Slack sent a kind of envelope that nothing here handles");
                Frame::Other { envelope }
            }
        }
    }

    fn event(text: &str, envelope: Option<String>, retry_attempt: &Value) -> Self {
        let Some(envelope) = envelope else { return Frame::Malformed { part: "envelope_id", envelope: None } };
        let Ok(EventEnvelope { payload }) = json::read_object(text) else {
            return Frame::Malformed { part: "payload", envelope: Some(envelope) };
        };
        let again = retry_attempt.as_u64().is_some_and(|attempt| attempt > 0);
        if again {
            tracing::debug!(event = payload.event_id, %retry_attempt, "redelivered");
        }
        Frame::Event { envelope, callback: payload, again }
    }

    fn invoked(text: &str, envelope: Option<String>) -> Self {
        let Some(envelope) = envelope else { return Frame::Malformed { part: "envelope_id", envelope: None } };
        match invoked::read(text) {
            Ok(Invoked::Command(message)) => Frame::Command { envelope, message },
            Ok(Invoked::Press(press)) => Frame::Press { envelope, press },
            Ok(Invoked::Click(invocation)) => Frame::Click { envelope, invocation },
            Err(part) => Frame::Malformed { part, envelope: Some(envelope) },
        }
    }
}

/// Returns the frame that acknowledges an envelope.
pub(super) fn acknowledgement(envelope: &str) -> String {
    serde_json::json!({ "envelope_id": envelope }).to_string()
}

/// Where received frames are passed on.
#[derive(Clone, Copy)]
pub(super) struct InboundContext<'a> {
    pub(super) me: &'a Identity,
    pub(super) places: Places,
    pub(super) prompts: &'a Prompts,
    pub(super) intake: &'a dyn Intake,
    pub(super) hearing: &'a Connectivity,
    pub(super) unstored: &'a Unstored,
    pub(super) statuses: &'a Statuses,
    pub(super) streams: &'a Streams,
}

impl InboundContext<'_> {
    /// Takes in an event if it is for the bot. Returns the acknowledgement only if a redelivery
    /// would not be useful.
    pub(super) async fn take(self, envelope: String, callback: Box<Callback>, again: bool) -> Option<String> {
        let (event, sent_s) = (callback.event_id.clone(), callback.event_time);
        if let Some(channel) = callback.event.of_group() {
            self.statuses.is_group(channel);
        }
        match news(*callback, self.me, self.places) {
            Some(InboundEvent::Message(message)) => {
                let taken = self.intake.accept(*message).await;
                if !self.is_taken(taken.map(Some), &event, again, sent_s) {
                    return None;
                }
            }
            Some(InboundEvent::ThreadMessage(word)) => {
                let taken = self.intake.hear(*word).await;
                if !self.is_taken(taken, &event, again, sent_s) {
                    return None;
                }
            }
            Some(InboundEvent::Opened { user, channel }) if self.intake.may_hear(&user) => {
                self.prompts.opened(user, channel)
            }
            None | Some(InboundEvent::Opened { .. }) => {}
            // Acknowledged: a second delivery would have the same error.
            Some(InboundEvent::Malformed(field)) => self.refuse(field),
            Some(InboundEvent::Change(change)) => {
                self.known(self.intake.change(change).await, |error| {
                    tracing::error!(event, error, "cannot store a change of a message; Slack will send it again");
                })?;
            }
            Some(InboundEvent::Reaction(mut reaction)) => {
                // A stop reaction to a streamed answer refers to its question.
                if says_stop(&reaction.reaction)
                    && let Some(question) = self.streams.question_of(&reaction.message)
                {
                    reaction.message.ts = question;
                }
                self.known(self.intake.react(reaction).await, |error| {
                    tracing::error!(event, error, "a reaction had no effect; Slack will send it again");
                })?;
            }
        }
        Some(acknowledgement(&envelope))
    }

    /// Returns whether a message is taken in, so that a redelivery would not be useful.
    fn is_taken(self, taken: Result<Option<Accepted>, Failure>, event: &str, again: bool, sent_s: Option<i64>) -> bool {
        let tell = |error: &str| tracing::error!(event, error, "cannot store a message; Slack will send it again");
        match self.known(taken, tell) {
            Some(Some(Accepted::New)) => {
                tracing::debug!(event, "stored");
                self.stored();
                self.hearing.came(again, sent_s);
            }
            Some(Some(Accepted::Duplicate)) => tracing::debug!(event, "was stored before"),
            // Messages among people are not even logged.
            Some(None) => {}
            None => {
                self.unstored.message_failed();
                return false;
            }
        }
        true
    }

    /// Returns the result of storing something; `None` if that failed, which is logged if it is new.
    fn known<T>(self, stored: Result<T, Failure>, tell: impl FnOnce(&str)) -> Option<T> {
        stored.inspect_err(|error| self.unstored.failed(error, tell)).ok()
    }

    /// Notes that a message was stored.
    fn stored(self) {
        if let Some(since) = self.unstored.stored() {
            self.intake.notice(Notice::MayHaveMissed { since });
        }
    }

    /// Takes in a slash command. Without an acknowledgement, Slack tells the person that it has
    /// failed.
    pub(super) async fn obey(self, envelope: String, message: Box<Inbound>) -> Option<String> {
        let tell = |error: &str| tracing::error!(error, "cannot store a slash command; Slack tells the person");
        if self.known(self.intake.accept(*message).await, tell)? == Accepted::New {
            self.stored();
        }
        Some(acknowledgement(&envelope))
    }

    /// Takes in the press of a button.
    pub(super) async fn press(self, envelope: String, press: Box<Press>) -> Option<String> {
        let tell = |error: &str| tracing::error!(error, "cannot store a click; Slack shows this to the person");
        self.known(self.intake.press(*press).await, tell).map(|()| acknowledgement(&envelope))
    }

    /// Notes something that cannot be taken in, because of this part of it.
    pub(super) fn refuse(self, part: &'static str) {
        tracing::warn!(part, "Slack sent a malformed event; it is refused");
        self.intake.notice(Notice::Malformed { field: part });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_not_for_us_is_acknowledged() {
        for (frame, expected) in
            [(r#"{"type":"views","envelope_id":"e2","payload":{}}"#, Some("e2")), (r#"{"type":"something_new"}"#, None)]
        {
            let Frame::Other { envelope } = Frame::read(frame) else { panic!("{frame} was read") };
            assert_eq!(envelope.as_deref(), expected, "{frame}");
        }
    }

    /// Regression: frames with the wrong shape were not counted, and were not acknowledged if another field was
    /// wrong, too.
    #[test]
    fn what_cannot_be_read_is_refused_and_acknowledged_where_it_can_be() {
        let long = format!(r#"{{"type":"events_api","envelope_id":"{}","payload":{{}}}}"#, "e".repeat(1_000));
        for (frame, part, expected) in [
            (r#"{"type":"events_api","envelope_id":"e1","payload":{"surprise":1}}"#, "payload", Some("e1")),
            (r#"{"type":"events_api","envelope_id":"e1"}"#, "payload", Some("e1")),
            (r#"{"type":7,"envelope_id":"e1"}"#, "type", Some("e1")),
            (r#"{"envelope_id":"e1","payload":{}}"#, "type", Some("e1")),
            (r#"{"type":"events_api","envelope_id":7,"payload":{}}"#, "envelope_id", None),
            (r#"{"type":"events_api","envelope_id":"","payload":{}}"#, "envelope_id", None),
            (&long, "envelope_id", None),
            (r#"{"type":"events_api","payload":{}}"#, "envelope_id", None),
            (r#"{"type":"hello","type":"hello"}"#, "frame", None),
            (r#"["hello",null,null,null]"#, "frame", None),
            ("not json", "frame", None),
        ] {
            let Frame::Malformed { part: found, envelope } = Frame::read(frame) else { panic!("{frame} was read") };
            assert_eq!((found, envelope.as_deref()), (part, expected), "{frame}");
        }
    }

    /// Regression: a list of the fields' values, in the order of their declaration, was taken for
    /// an event.
    #[test]
    fn a_list_of_values_is_no_event() {
        let event = serde_json::json!({"type": "message", "channel": "D1", "user": "U1", "ts": "1.2", "text": "q"});
        let said = serde_json::json!(["message", {"channel": "D1", "user": "U1", "ts": "1.2", "text": "q"}]);
        let callback = |event: &Value| serde_json::json!({"team_id": "T1", "event_id": "Ev1", "event": event});
        let read = |payload: Value| {
            let frame = serde_json::json!({"type": "events_api", "envelope_id": "e1", "payload": payload});
            matches!(Frame::read(&frame.to_string()), Frame::Event { .. })
        };
        assert!(read(callback(&event)));
        assert!(!read(serde_json::json!(["T1", "Ev1", null, event])));
        assert!(!read(callback(&said)));
    }

    /// Regression: `"type": 0` was a message, 1 a mention and 2 a reaction.
    #[test]
    fn a_number_is_no_type_of_an_event() {
        let event = |kind: Value, item: Value| {
            let event = serde_json::json!({
                "type": kind, "channel": "D1", "user": "U1", "ts": "1.2", "text": "q", "reaction": "x",
                "item": {"type": item, "channel": "D1", "ts": "1.2"},
            });
            let payload = serde_json::json!({"team_id": "T1", "event_id": "Ev1", "event": event});
            Frame::read(&serde_json::json!({"type": "events_api", "envelope_id": "e1", "payload": payload}).to_string())
        };
        for number in 0..4 {
            for (kind, item) in [(number.into(), "message".into()), ("reaction_added".into(), number.into())] {
                assert!(matches!(event(kind, item), Frame::Malformed { part: "payload", .. }), "{number}");
            }
        }
    }

    #[test]
    fn an_odd_count_of_retries_keeps_no_event_out() {
        let event = serde_json::json!({"type": "message", "channel": "D1", "user": "U1", "ts": "1.2", "text": "q"});
        for attempt in [Value::Null, 1.into(), "1".into(), (-1).into(), 1.5.into()] {
            let frame = serde_json::json!({
                "type": "events_api", "envelope_id": "e1", "retry_attempt": attempt,
                "payload": {"team_id": "T1", "event_id": "Ev1", "event": event},
            });
            let Frame::Event { again, .. } = Frame::read(&frame.to_string()) else { panic!("{frame} was not read") };
            assert_eq!(again, attempt == 1, "{attempt}");
        }
    }

    fn one_of(words: &'static str) -> impl Strategy<Value = &'static str> + Clone {
        prop::sample::select(words.split(' ').collect::<Vec<_>>())
    }

    fn piece() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i64>().prop_map(Value::from),
            one_of("message app_mention reaction_added app_home_opened messages 1.2 U1 C1 D1 1:2")
                .prop_map(Value::from),
            ".{0,5}".prop_map(Value::from),
        ];
        let name =
            one_of("type user channel channel_type ts thread_ts parent_user_id tab item text files reaction subtype");
        leaf.prop_recursive(3, 40, 12, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::hash_map(name.clone().prop_map(str::to_owned), inner, 0..12)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in ".{0,200}") {
            Frame::read(&text);
        }

        #[test]
        fn what_is_taken_in_can_be_read_back(event in piece()) {
            let me = Identity::of_a_bot();
            let payload = serde_json::json!({"team_id": "T1", "event_id": "Ev1", "event": event});
            let frame = serde_json::json!({"type": "events_api", "envelope_id": "e1", "payload": payload});
            if let Frame::Event { callback, .. } = Frame::read(&frame.to_string())
            {
                let key = match news(*callback, &me, Places::default()) {
                    Some(InboundEvent::Message(message)) => Some(message.key),
                    Some(InboundEvent::ThreadMessage(word)) => Some(word.message.key),
                    _ => None,
                };
                prop_assert_eq!(key.as_ref().map(|key| key.to_string().parse()), key.clone().map(Ok));
            }
        }
    }

    #[test]
    fn an_acknowledgement_is_the_envelope_id() {
        assert_eq!(acknowledgement("e1"), r#"{"envelope_id":"e1"}"#);
    }
}
