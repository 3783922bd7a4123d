//! Decides which of Slack's events are for the bot, and parses them.
//!
//! A direct message is for the bot, and so is a mention in a channel. If the app is subscribed to messages, a mention
//! also arrives as a plain `message`; that one is ignored, so that it cannot take the mention's place in the
//! deduplication by `ts`. In a direct message of several people it is accepted, because it is uncertain whether
//! mentions arrive as such there. Other messages in a thread of a channel are passed on to the code that knows which
//! threads are followed; other messages in a channel are ignored. Reactions are taken in whoever wrote the message:
//! only some ask for anything.
//!
//! Events about messages that were sent before are handled by [`changed`].
//!
//! An event with a malformed id is refused here and gets no further.
//!
//! Only the relevant fields are read. slack-morphism models events completely, and if a file or attachment has a shape
//! that it does not know, it silently drops the text of the message. Files and attachments are read
//! [separately](super::attached).

use std::borrow::Cow;

use pmk_system::json;
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::{Map, Value, value::RawValue};

use super::{
    changed,
    identity::Identity,
    mrkdwn,
    places::Places,
    said::{self, MessageEvent, message},
};
use crate::{
    chat::{Addressing, Change, Inbound, MessageRef, ReactedAuthor, Reaction, ThreadMessage},
    front::malformed,
};

/// The payload of an envelope of type `events_api`.
#[derive(Debug, Deserialize)]
pub(super) struct Callback {
    team_id: String,
    /// A redelivery has the same one.
    pub(super) event_id: String,
    /// When it happened, in seconds; a redelivery has the same time.
    pub(super) event_time: Option<i64>,
    pub(super) event: Event,
}

#[derive(Debug)]
pub(super) enum Event {
    Message(MessageEvent),
    AppMention(MessageEvent),
    ReactionAdded(Reacted),
    HomeOpened(Opened),
    Other,
}

/// The type of an event, or of an item that somebody has reacted to.
#[derive(Deserialize)]
struct Kind<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
}

/// Written by hand, because a derived deserializer accepts the number of a variant in place of its name. It reads the
/// event from its text: of most events only the type is read, and of the others only the relevant fields are built.
impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Event::read(Box::<RawValue>::deserialize(deserializer)?.get()).map_err(D::Error::custom)
    }
}

impl Event {
    fn read(event: &str) -> serde_json::Result<Self> {
        match &*json::read_object::<Kind<'_>>(event)?.kind {
            "message" => json::read_object(event).map(Event::Message),
            "app_mention" => json::read_object(event).map(Event::AppMention),
            "reaction_added" => json::read_object(event).map(Event::ReactionAdded),
            "app_home_opened" => json::read_object(event).map(Event::HomeOpened),
            _ => Ok(Event::Other),
        }
    }
}

impl Event {
    /// Returns the channel, if the event is from a direct message of several people.
    pub(super) fn of_group(&self) -> Option<&str> {
        match self {
            Event::Message(said) | Event::AppMention(said) => said.is_group().then_some(&*said.channel),
            _ => None,
        }
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Reacted {
    user: String,
    reaction: String,
    item: Item,
    /// Who has written the message, if Slack knows.
    item_user: Option<Value>,
}

/// Somebody opens the bot's own pages, one of which is their direct message with it.
#[derive(Debug, Deserialize)]
pub(super) struct Opened {
    user: String,
    channel: String,
    tab: Option<String>,
}

#[derive(Debug)]
enum Item {
    Message(Reactable),
    Other,
}

#[derive(Debug, Deserialize)]
struct Reactable {
    channel: String,
    ts: String,
}

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let item = Box::<RawValue>::deserialize(deserializer)?;
        let kind = json::read_object::<Kind<'_>>(item.get()).map_err(D::Error::custom)?;
        match &*kind.kind {
            "message" => json::read_object(item.get()).map(Item::Message).map_err(D::Error::custom),
            _ => Ok(Item::Other),
        }
    }
}

impl Event {
    /// Returns the ids that would be stored, with their names.
    fn ids(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let said = match self {
            Event::Message(said) | Event::AppMention(said) => Some(said),
            Event::ReactionAdded(_) | Event::HomeOpened(_) | Event::Other => None,
        };
        let reacted = match self {
            Event::ReactionAdded(Reacted { user, item: Item::Message(Reactable { channel, ts }), .. }) => {
                [("user", user.as_str()), ("channel", channel), ("ts", ts)].to_vec()
            }
            Event::HomeOpened(Opened { user, channel, .. }) => [("user", user.as_str()), ("channel", channel)].to_vec(),
            Event::ReactionAdded(_) | Event::Message(_) | Event::AppMention(_) | Event::Other => vec![],
        };
        said.into_iter().flat_map(MessageEvent::ids).chain(reacted)
    }
}

/// The content of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum InboundEvent {
    Message(Box<Inbound>),
    /// A message in a thread of a channel.
    ThreadMessage(Box<ThreadMessage>),
    /// A change of a message that was sent before.
    Change(Change),
    Reaction(Reaction),
    /// Somebody has opened their direct message with the bot.
    Opened {
        user: String,
        channel: String,
    },
    /// An event that cannot be taken in: this id is malformed.
    Malformed(&'static str),
}

impl From<(Inbound, Option<Addressing>)> for InboundEvent {
    fn from((message, manner): (Inbound, Option<Addressing>)) -> Self {
        match manner {
            Some(manner) => InboundEvent::ThreadMessage(Box::new(ThreadMessage { message, manner })),
            None => InboundEvent::Message(Box::new(message)),
        }
    }
}

/// Returns the content of an event; `None` if it is not for the bot.
pub(super) fn news(callback: Callback, me: &Identity, places: Places) -> Option<InboundEvent> {
    let Callback { team_id, event_id, event, .. } = callback;
    if let Some(field) = malformed([("team_id", &*team_id), ("event_id", &*event_id)].into_iter().chain(event.ids())) {
        return Some(InboundEvent::Malformed(field));
    }
    let names_bot = |said: &MessageEvent| said.text.as_deref().is_some_and(|text| mrkdwn::is_mentioned(text, &me.user));
    match event {
        Event::Message(said) if changed::is_change(&said, false) => {
            changed::change(team_id, event_id, said, false, me, places).map(InboundEvent::Change)
        }
        Event::AppMention(said) if changed::is_change(&said, true) => {
            changed::change(team_id, event_id, said, true, me, places).map(InboundEvent::Change)
        }
        Event::Message(said) => {
            let is_named = names_bot(&said);
            // The same message arrives as a mention.
            if is_named && !said.is_direct() && !said.is_group() {
                return None;
            }
            message(team_id, event_id, said, is_named, me, places).map(InboundEvent::from)
        }
        Event::AppMention(said) if said.user.is_none() => {
            tracing::info!(
                channel = said.channel,
                "a mention by a workflow or an app that names no person is not answered"
            );
            None
        }
        Event::AppMention(said) => message(team_id, event_id, said, true, me, places).map(InboundEvent::from),
        Event::ReactionAdded(Reacted { user, reaction, item: Item::Message(Reactable { channel, ts }), item_user })
            if user != me.user =>
        {
            let author = match item_user.as_ref().and_then(Value::as_str) {
                None => ReactedAuthor::Unknown,
                Some(author) if author == me.user => ReactedAuthor::Bot,
                Some(author) if author == user => ReactedAuthor::Themselves,
                Some(_) => ReactedAuthor::Another,
            };
            let (event_id, message) = (Some(event_id), MessageRef { channel, ts });
            Some(InboundEvent::Reaction(Reaction { event_id, user, message, reaction, author }))
        }
        Event::HomeOpened(Opened { user, channel, tab }) if tab.as_deref() == Some("messages") => {
            Some(InboundEvent::Opened { user, channel })
        }
        Event::ReactionAdded(_) | Event::HomeOpened(_) | Event::Other => None,
    }
}

/// Returns the content of a message in the history, as its event would have had it; `None` if there would have been
/// none for the bot, or if it cannot be read.
pub(super) fn of_past(
    mut message: Map<String, Value>,
    channel: &str,
    me: &Identity,
    places: Places,
) -> Option<InboundEvent> {
    if message.get("type").and_then(Value::as_str) != Some("message") {
        return None;
    }
    message.insert("channel".into(), channel.into());
    let said = MessageEvent::deserialize(Value::Object(message)).ok()?;
    if malformed(said.ids()).is_some() {
        return None;
    }
    let event_id = format!("missed-{channel}-{}", said.ts);
    let mentioned = said.text.as_deref().is_some_and(|text| mrkdwn::is_mentioned(text, &me.user));
    said::message(me.team_id.clone(), event_id, said, mentioned, me, places).map(InboundEvent::from)
}

#[cfg(test)]
mod tests;
