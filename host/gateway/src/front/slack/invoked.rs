//! Slash commands and clicks: who uses them, where, and what is said by them.
//!
//! A slash command goes through the inbox as a message does: Slack sends it once, so that one which is acknowledged
//! must not get lost. It is answered by an ordinary message, and not at its `response_url`: a message can be looked for after
//! a crash, there is no end to the time in which it can be sent, and it needs no address from outside.

use pmk_core::{FrontName, Place, SessionKey};
use pmk_system::json;
use serde::Deserialize;
use serde_json::Value;

use super::{app::COMMAND, mrkdwn};
use crate::{
    front::malformed,
    talk::{Attached, Inbound, Invocation, ReplyTo},
};

/// What the event id of a slash command begins with. No id from outside has a colon: nobody can send one first, and
/// have the command taken for a duplicate.
const SLASH: &str = ":slash:";

/// An envelope of type `slash_commands` or `interactive`. Of a view nobody says in which channel it is.
#[derive(Deserialize)]
struct Envelope {
    #[serde(rename = "type", default)]
    kind: Value,
    #[serde(default)]
    envelope_id: Value,
    #[serde(deserialize_with = "json::object")]
    payload: Payload,
}

/// What says who and where: texts of a slash command, objects with an id of a click.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Payload {
    user_id: Value,
    channel_id: Value,
    text: Value,
    trigger_id: Value,
    user: Value,
    channel: Value,
}

/// What somebody has used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Invoked {
    Command(Box<Inbound>),
    Click(Invocation),
}

/// Reads one.
///
/// # Errors
/// An id is none; or it names nobody.
pub(super) fn read(text: &str) -> Result<Invoked, &'static str> {
    let Envelope { kind, envelope_id, payload } = json::read_object(text).map_err(|_| "payload")?;
    if kind == "slash_commands" {
        let user = payload.user_id.as_str().ok_or("user")?;
        let channel = payload.channel_id.as_str().ok_or("channel")?;
        let id = payload.trigger_id.as_str().or(envelope_id.as_str()).ok_or("trigger_id")?;
        return command(user, channel, id, payload.text.as_str().unwrap_or_default());
    }
    let user = payload.user["id"].as_str().ok_or("user")?;
    let channel = match &payload.channel {
        Value::Null => None,
        channel => Some(channel["id"].as_str().ok_or("channel")?),
    };
    check([("user", Some(user)), ("channel", channel)])?;
    Ok(Invoked::Click(Invocation { user: user.to_owned(), channel: channel.map(str::to_owned) }))
}

fn command(user: &str, channel: &str, id: &str, text: &str) -> Result<Invoked, &'static str> {
    check([("user", Some(user)), ("channel", Some(channel)), ("trigger_id", Some(id))])?;
    let place = if channel.starts_with('D') { Place::Dm(user.to_owned()) } else { Place::Channel(channel.to_owned()) };
    Ok(Invoked::Command(Box::new(Inbound {
        event_id: format!("{SLASH}{id}"),
        aliases: vec![],
        key: SessionKey { front: FrontName::Slack, place, thread: None },
        user: user.to_owned(),
        reply_to: ReplyTo { channel: channel.to_owned(), thread_ts: None },
        // The bot is not spoken to by name here.
        text: format!("{COMMAND} {}", mrkdwn::with_ids(text, "")).trim_end().to_owned(),
        attached: Attached::default(),
        ts: String::new(),
    })))
}

fn check<'a>(ids: impl IntoIterator<Item = (&'static str, Option<&'a str>)>) -> Result<(), &'static str> {
    malformed(ids.into_iter().filter_map(|(name, id)| Some((name, id?)))).map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn slash(payload: Value) -> Result<Invoked, &'static str> {
        read(&json!({"type": "slash_commands", "envelope_id": "e1", "payload": payload}).to_string())
    }

    #[test]
    fn a_slash_command_is_a_message_with_the_ids_in_it() {
        let payload = json!({"user_id": "U1", "channel_id": "D1", "trigger_id": "1.2.3a", "command": "/pmk",
            "text": "  admin admins add <@U2|han> "});
        let Ok(Invoked::Command(message)) = slash(payload) else { panic!("no command") };
        assert_eq!(message.text, "/pmk admin admins add <@U2|han>");
        assert_eq!((message.event_id.as_str(), message.key.to_string().as_str()), (":slash:1.2.3a", "slack:dm:U1"));
        assert!(message.is_command());
    }

    #[test]
    fn without_a_text_it_is_the_command_alone_and_without_a_trigger_the_envelope_names_it() {
        for text in [json!(""), json!("  "), Value::Null] {
            let payload = json!({"user_id": "U1", "channel_id": "C1", "text": text});
            let Ok(Invoked::Command(message)) = slash(payload) else { panic!("no command") };
            assert_eq!((message.text.as_str(), message.event_id.as_str()), ("/pmk", ":slash:e1"));
            assert_eq!(message.key.to_string(), "slack:channel:C1");
        }
    }

    #[test]
    fn without_a_user_or_a_channel_it_is_nothing() {
        assert_eq!(slash(json!({"channel_id": "C1", "text": "help"})), Err("user"));
        assert_eq!(slash(json!({"user_id": "U1", "text": "help"})), Err("channel"));
        for (field, id) in [("user_id", "U 1"), ("channel_id", "C:1"), ("trigger_id", "1:2")] {
            let mut payload = json!({"user_id": "U1", "channel_id": "C1", "trigger_id": "1", "text": "help"});
            payload[field] = id.into();
            assert!(slash(payload).is_err(), "{field}");
        }
    }
}
