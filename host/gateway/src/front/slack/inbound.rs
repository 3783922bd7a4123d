//! Which of Slack's events are for the bot, and what they say.
//!
//! A direct message is one, and so is a mention in a channel. A mention also arrives as a plain `message`
//! where the app is subscribed to those; that one is ignored, so that it cannot take the mention's place
//! in the deduplication by `ts`. Reactions to messages are taken in, whoever wrote the message: only some
//! ask for anything.
//!
//! An event in which an id is none is refused here: nothing of it gets any further.
//!
//! Only what counts is read. slack-morphism models events whole, and when one file or attachment has a
//! shape that it does not know, it leaves out the text of the message without a word. Those are read
//! [apart](super::attached).

use pmk_core::{FrontName, Place, SessionKey};
use serde::{Deserialize, de::Error as _};
use serde_json::{Map, Value};

use super::{attached, mrkdwn, web::Identity};
use crate::{
    front::malformed,
    talk::{Inbound, Reaction, ReplyTo, after_command},
};

/// The payload of an envelope of type `events_api`.
#[derive(Debug, Deserialize)]
pub(super) struct Callback {
    team_id: String,
    /// A redelivery carries the same one.
    pub(super) event_id: String,
    /// When it happened, in seconds; of a redelivery the same.
    pub(super) event_time: Option<i64>,
    event: Event,
}

#[derive(Debug, Deserialize)]
#[serde(try_from = "Map<String, Value>")]
enum Event {
    Message(Said),
    AppMention(Said),
    ReactionAdded(Reacted),
    Other,
}

/// By hand: a derived reader takes the number of a variant for its name.
impl TryFrom<Map<String, Value>> for Event {
    type Error = serde_json::Error;

    fn try_from(event: Map<String, Value>) -> Result<Self, Self::Error> {
        match kind(&event)? {
            "message" => Said::deserialize(Value::Object(event)).map(Event::Message),
            "app_mention" => Said::deserialize(Value::Object(event)).map(Event::AppMention),
            "reaction_added" => Reacted::deserialize(Value::Object(event)).map(Event::ReactionAdded),
            _ => Ok(Event::Other),
        }
    }
}

fn kind(object: &Map<String, Value>) -> Result<&str, serde_json::Error> {
    object.get("type").and_then(Value::as_str).ok_or_else(|| serde_json::Error::missing_field("type"))
}

#[derive(Debug, Deserialize)]
struct Said {
    user: Option<String>,
    bot_id: Option<String>,
    channel: String,
    channel_type: Option<String>,
    ts: String,
    thread_ts: Option<String>,
    subtype: Option<String>,
    text: Option<String>,
    #[serde(default)]
    attachments: Value,
    #[serde(default)]
    files: Value,
}

#[derive(Debug, Deserialize)]
struct Reacted {
    user: String,
    reaction: String,
    item: Item,
}

#[derive(Debug, Deserialize)]
#[serde(try_from = "Map<String, Value>")]
enum Item {
    Message(Reactable),
    Other,
}

#[derive(Debug, Deserialize)]
struct Reactable {
    channel: String,
    ts: String,
}

impl TryFrom<Map<String, Value>> for Item {
    type Error = serde_json::Error;

    fn try_from(item: Map<String, Value>) -> Result<Self, Self::Error> {
        match kind(&item)? {
            "message" => Reactable::deserialize(Value::Object(item)).map(Item::Message),
            _ => Ok(Item::Other),
        }
    }
}

impl Event {
    /// The ids that would be stored, with their names.
    fn ids(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let (user, channel, ts, thread_ts) = match self {
            Event::Message(said) | Event::AppMention(said) => {
                (said.user.as_ref(), Some(&said.channel), Some(&said.ts), said.thread_ts.as_ref())
            }
            Event::ReactionAdded(Reacted { user, item: Item::Message(Reactable { channel, ts }), .. }) => {
                (Some(user), Some(channel), Some(ts), None)
            }
            Event::ReactionAdded(_) | Event::Other => (None, None, None, None),
        };
        [("user", user), ("channel", channel), ("ts", ts), ("thread_ts", thread_ts)]
            .into_iter()
            .filter_map(|(name, id)| Some((name, id?.as_str())))
    }
}

/// What an event brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum News {
    Message(Box<Inbound>),
    Reaction(Reaction),
    /// Nothing that can be taken in: this id is none.
    Malformed(&'static str),
}

/// What an event brings; `None` when it is not for the bot.
pub(super) fn news(callback: Callback, me: &Identity) -> Option<News> {
    let Callback { team_id, event_id, event, .. } = callback;
    if let Some(field) = malformed([("team_id", &*team_id), ("event_id", &*event_id)].into_iter().chain(event.ids())) {
        return Some(News::Malformed(field));
    }
    match event {
        Event::Message(said) => message(team_id, event_id, said, false, me),
        Event::AppMention(said) => message(team_id, event_id, said, true, me),
        Event::ReactionAdded(Reacted { user, reaction, item: Item::Message(Reactable { channel, ts }) })
            if user != me.user =>
        {
            return Some(News::Reaction(Reaction { user, channel, ts, reaction }));
        }
        Event::ReactionAdded(_) | Event::Other => None,
    }
    .map(|message| News::Message(Box::new(message)))
}

fn message(team_id: String, event_id: String, said: Said, mentioned: bool, me: &Identity) -> Option<Inbound> {
    let user = said.user.filter(|user| *user != me.user)?;
    if said.bot_id.is_some() && said.bot_id == me.bot {
        return None;
    }
    if !matches!(said.subtype.as_deref(), None | Some("file_share" | "thread_broadcast")) {
        return None;
    }
    let channel = said.channel;
    let place = if said.channel_type.as_deref() == Some("im") || channel.starts_with('D') {
        Place::Dm(user.clone())
    } else if mentioned {
        Place::Channel(channel.clone())
    } else {
        return None;
    };
    let written = said.text.unwrap_or_default();
    let mut text = mrkdwn::plain(&written, &me.user);
    if after_command(&text).is_some() {
        // A command is about the people and channels that it names.
        text = mrkdwn::with_ids(&written, &me.user);
    }
    Some(Inbound {
        event_id,
        aliases: vec![format!("ts:{team_id}:{channel}:{ts}", ts = said.ts)],
        key: SessionKey { front: FrontName::Slack, place, thread: said.thread_ts.clone() },
        user,
        reply_to: ReplyTo { channel, thread_ts: said.thread_ts },
        text,
        attached: attached::read(&said.attachments, &said.files, &me.user),
        ts: said.ts,
    })
}

/// A message of a channel's past, as the event of it would have brought it: `None` where there would have been none for
/// the bot, or where it cannot be read.
pub(super) fn of_past(mut message: Map<String, Value>, channel: &str, me: &Identity) -> Option<Inbound> {
    message.insert("channel".into(), channel.into());
    let event = Event::try_from(message).ok()?;
    if malformed(event.ids()).is_some() {
        return None;
    }
    let Event::Message(said) = event else { return None };
    let event_id = format!("missed-{channel}-{}", said.ts);
    let mentioned = said.text.as_deref().is_some_and(|text| mrkdwn::is_mentioned(text, &me.user));
    self::message(me.team_id.clone(), event_id, said, mentioned, me)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(event: Value) -> Option<Inbound> {
        let callback = json!({
            "team_id": "T1", "api_app_id": "A1", "event_id": "Ev1", "event_time": 1_700_000_000, "event": event,
        });
        let me = Identity {
            user: "UBOT".into(),
            bot: Some("BBOT".into()),
            name: "pmk".into(),
            team: "Acme".into(),
            team_id: "T1".into(),
        };
        match news(serde_json::from_value(callback).expect("a callback"), &me) {
            Some(News::Message(message)) => Some(*message),
            Some(other) => panic!("{other:?}"),
            None => None,
        }
    }

    #[test]
    fn reactions_of_people_are_read() {
        let me =
            Identity { user: "UBOT".into(), bot: None, name: "pmk".into(), team: "Acme".into(), team_id: "T1".into() };
        let read = |event: Value| {
            let callback = json!({"team_id": "T1", "event_id": "Ev1", "event": event});
            news(serde_json::from_value(callback).expect("a callback"), &me)
        };
        let reacted = |user: &str, item: Value| {
            json!({"type": "reaction_added", "user": user, "reaction": "x", "item_user": "UBOT", "item": item,
                   "event_ts": "1.2"})
        };
        let message = json!({"type": "message", "channel": "C1", "ts": "1.1"});
        let expected = Reaction { user: "U2".into(), channel: "C1".into(), ts: "1.1".into(), reaction: "x".into() };
        assert_eq!(read(reacted("U2", message.clone())), Some(News::Reaction(expected)));
        assert_eq!(read(reacted("UBOT", message)), None);
        assert_eq!(read(reacted("U2", json!({"type": "file", "file": "F1"}))), None);
    }

    fn dm(more: Value) -> Value {
        let mut event = json!({
            "type": "message", "channel": "D1", "channel_type": "im", "user": "U1", "ts": "1700000000.000100",
            "text": "1 &lt; 2?",
        });
        event.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        event
    }

    fn mention(more: Value) -> Value {
        let mut event = dm(json!({"type": "app_mention", "channel": "C1", "text": "<@UBOT> hello"}));
        let event_map = event.as_object_mut().expect("an object");
        event_map.remove("channel_type");
        event_map.extend(more.as_object().expect("an object").clone());
        event
    }

    #[test]
    fn a_direct_message_is_read() {
        let message = read(dm(json!({}))).expect("a message");
        assert_eq!(message.event_id, "Ev1");
        assert_eq!(message.aliases, ["ts:T1:D1:1700000000.000100"]);
        assert_eq!(message.key.to_string(), "slack:dm:U1");
        assert_eq!(message.reply_to, ReplyTo { channel: "D1".into(), thread_ts: None });
        assert_eq!((message.user.as_str(), message.text.as_str()), ("U1", "1 < 2?"));
        assert!(message.attached.is_empty());
        assert_eq!(message.ts, "1700000000.000100");
    }

    #[test]
    fn every_place_has_its_own_key() {
        let thread = json!({"thread_ts": "1699.000100"});
        for (event, key) in [
            (dm(json!({})), "slack:dm:U1"),
            (dm(thread.clone()), "slack:dm:U1:1699.000100"),
            (mention(json!({})), "slack:channel:C1"),
            (mention(thread), "slack:channel:C1:1699.000100"),
        ] {
            let message = read(event).expect("a message");
            assert_eq!(message.key.to_string(), key);
            assert_eq!(message.reply_to.thread_ts, message.key.thread);
        }
        assert_eq!(read(mention(json!({}))).map(|message| message.text).as_deref(), Some("hello"));
    }

    #[test]
    fn a_command_keeps_the_ids_that_it_names_and_a_question_the_names() {
        let text = |text: &str| read(mention(json!({"text": format!("<@UBOT> {text}")}))).expect("a message").text;
        assert_eq!(text("/pmk admin admins add <@U2|han>"), "/pmk admin admins add <@U2|han>");
        assert_eq!(text("/pmk open R&amp;D in <#C2|lab>"), "/pmk open R&D in <#C2|lab>");
        assert_eq!(text("is <@U2|han> in?"), "is @han in?");
    }

    #[test]
    fn what_is_not_for_the_bot_is_ignored() {
        for (why, event) in [
            ("the bot's own", dm(json!({"user": "UBOT"}))),
            ("the bot's own", dm(json!({"bot_id": "BBOT"}))),
            ("a bot's", dm(json!({"subtype": "bot_message", "bot_id": "B2", "user": null}))),
            ("an edit", dm(json!({"subtype": "message_changed", "message": dm(json!({}))}))),
            ("a deletion", dm(json!({"subtype": "message_deleted", "deleted_ts": "1.0"}))),
            ("a new subtype", dm(json!({"subtype": "something_new"}))),
            ("channel talk", dm(json!({"channel": "C1", "channel_type": "channel"}))),
            ("group talk", dm(json!({"channel": "G1", "channel_type": "mpim"}))),
            ("another event", json!({"type": "channel_created", "channel": {"id": "C1"}})),
        ] {
            assert_eq!(read(event), None, "{why}");
        }
    }

    /// Once, `thread_ts: "1 2"` was stored under a key that nobody could read back.
    #[test]
    fn an_id_that_is_none_is_refused() {
        let me =
            Identity { user: "UBOT".into(), bot: None, name: "pmk".into(), team: "Acme".into(), team_id: "T1".into() };
        let callback = |team: &str, id: &str, event: Value| {
            news(serde_json::from_value(json!({"team_id": team, "event_id": id, "event": event})).expect("one"), &me)
        };
        let long = "1".repeat(1_000);
        for id in ["", "1 2", "1:2", "1\n2", "\u{1b}[2J", "\u{202e}1", "\u{200b}1", long.as_str()] {
            for field in ["user", "channel", "ts", "thread_ts"] {
                for event in [dm(json!({field: id})), mention(json!({field: id}))] {
                    assert_eq!(callback("T1", "Ev1", event), Some(News::Malformed(field)), "{id:?}");
                }
            }
            for (field, item) in [("channel", json!([id, "1.1"])), ("ts", json!(["C1", id]))] {
                let item = json!({"type": "message", "channel": item[0], "ts": item[1]});
                let reacted = json!({"type": "reaction_added", "user": "U1", "reaction": "x", "item": item});
                assert_eq!(callback("T1", "Ev1", reacted), Some(News::Malformed(field)), "{id:?}");
            }
            assert_eq!(callback(id, "Ev1", dm(json!({}))), Some(News::Malformed("team_id")), "{id:?}");
            assert_eq!(callback("T1", id, dm(json!({}))), Some(News::Malformed("event_id")), "{id:?}");
        }
    }

    #[test]
    fn files_come_with_their_message() {
        let shared = json!({"subtype": "file_share", "files": [{"id": "F1"}, {"id": "F2"}], "text": ""});
        assert_eq!(
            read(dm(shared)).map(|message| (message.attached.files.len(), message.text)),
            Some((2, String::new()))
        );
        let broadcast = json!({"subtype": "thread_broadcast", "thread_ts": "1699.000100"});
        assert!(read(dm(broadcast)).is_some());
    }

    #[test]
    fn a_message_in_an_unknown_shape_is_still_read() {
        let odd = json!({"files": [{"no_id": true}], "attachments": "none", "blocks": 1});
        let message = read(dm(odd)).expect("a message");
        assert_eq!((message.attached.files.len(), message.text.as_str()), (1, "1 < 2?"));
    }
}
