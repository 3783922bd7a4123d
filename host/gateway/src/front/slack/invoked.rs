//! Slash commands and clicks: who uses them, where, and what they mean.
//!
//! A slash command goes through the inbox like a message: Slack sends it once, so an acknowledged one must not get
//! lost. It is answered by an ordinary message, not at its `response_url`: a message can be searched for after a crash,
//! it can be sent at any later time, and it needs no address from outside.

use pmk_core::{FrontName, Place, SessionKey};
use pmk_system::json;
use serde::Deserialize;
use serde_json::Value;

use super::{app::COMMAND, blocks, mrkdwn};
use crate::{
    chat::{Attachments, Choice, Inbound, Invocation, MessageRef, Press, ReplyTo, SLASH},
    front::malformed,
};

/// An envelope of type `slash_commands` or `interactive`. For a view, it does not name the channel.
#[derive(Deserialize)]
struct Envelope {
    #[serde(rename = "type", default)]
    kind: Value,
    #[serde(default)]
    envelope_id: Value,
    #[serde(deserialize_with = "json::object")]
    payload: Payload,
}

/// Who and where: texts for a slash command, objects with an id for a click.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Payload {
    user_id: Value,
    channel_id: Value,
    text: Value,
    trigger_id: Value,
    user: Value,
    channel: Value,
    #[serde(rename = "type")]
    kind: Value,
    container: Value,
    message: Value,
    actions: Value,
}

/// What somebody has used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Invoked {
    Command(Box<Inbound>),
    Press(Box<Press>),
    Click(Invocation),
}

/// Parses an envelope.
///
/// # Errors
/// An id is malformed, or the user is missing.
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
    if let (Some(channel), Some(choice)) = (channel, payload.choice()) {
        return press(&payload, user, channel, choice);
    }
    Ok(Invoked::Click(Invocation { user: user.to_owned(), channel: channel.map(str::to_owned) }))
}

impl Payload {
    /// Returns the choice, if one of the bot's buttons in a message was pressed.
    fn choice(&self) -> Option<Choice> {
        let of_a_message = self.kind == "block_actions" && self.container["type"] == "message";
        let actions = self.actions.as_array().filter(|_| of_a_message)?;
        actions.iter().find_map(|action| blocks::choice(action["action_id"].as_str()?, action["value"].as_str()?))
    }
}

fn press(payload: &Payload, user: &str, channel: &str, choice: Choice) -> Result<Invoked, &'static str> {
    let ts = payload.container["message_ts"].as_str().or(payload.message["ts"].as_str()).ok_or("message_ts")?;
    let id = payload.trigger_id.as_str().ok_or("trigger_id")?;
    let thread_ts = match &payload.message["thread_ts"] {
        Value::Null => None,
        thread_ts => Some(thread_ts.as_str().ok_or("thread_ts")?),
    };
    check([("message_ts", Some(ts)), ("trigger_id", Some(id)), ("thread_ts", thread_ts)])?;
    Ok(Invoked::Press(Box::new(Press {
        id: id.to_owned(),
        user: user.to_owned(),
        message: MessageRef::new(channel, ts),
        thread_ts: thread_ts.map(str::to_owned),
        choice,
    })))
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
        // Here, the bot is not addressed by name.
        text: format!("{COMMAND} {}", mrkdwn::with_ids(text, "")).trim_end().to_owned(),
        attached: Attachments::default(),
        if_awaited: false,
        by_app: false,
        team: None,
        in_group: false,
        asked_at: None,
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

    fn click(change: impl FnOnce(&mut Value)) -> Result<Invoked, &'static str> {
        let mut payload = json!({
            "type": "block_actions", "user": {"id": "U1"}, "channel": {"id": "C1"}, "trigger_id": "1.2.3a",
            "container": {"type": "message", "message_ts": "17.1", "channel_id": "C1", "is_ephemeral": false},
            "message": {"type": "message", "ts": "17.1", "thread_ts": "16.1", "text": "is it?"},
            "actions": [{"type": "button", "action_id": "pmk_word_yes", "value": "yes", "action_ts": "18.1"}],
        });
        change(&mut payload);
        read(&json!({"type": "interactive", "envelope_id": "e1", "payload": payload}).to_string())
    }

    #[test]
    fn a_button_of_ours_says_who_where_and_what() {
        let expected = Press {
            id: "1.2.3a".into(),
            user: "U1".into(),
            message: MessageRef::new("C1", "17.1"),
            thread_ts: Some("16.1".into()),
            choice: Choice::Yes,
        };
        assert_eq!(click(|_| {}), Ok(Invoked::Press(expected.clone().into())));
        let alone = click(|payload| payload["message"] = Value::Null);
        assert_eq!(alone, Ok(Invoked::Press(Press { thread_ts: None, ..expected }.into())));
    }

    #[test]
    fn every_other_click_is_a_click() {
        let clicked = |change: fn(&mut Value)| match click(change) {
            Ok(Invoked::Click(Invocation { user, .. })) => assert_eq!(user, "U1"),
            other => panic!("{other:?}"),
        };
        clicked(|payload| payload["actions"][0]["action_id"] = "approve".into());
        clicked(|payload| payload["actions"][0]["value"] = "no".into());
        clicked(|payload| payload["actions"] = json!({"action_id": "pmk_word_yes", "value": "yes"}));
        clicked(|payload| payload["container"]["type"] = "view".into());
        clicked(|payload| payload["type"] = "view_submission".into());
        clicked(|payload| payload["channel"] = Value::Null);
    }

    #[test]
    fn a_click_with_an_id_that_is_none_is_refused() {
        assert_eq!(click(|payload| payload["container"]["message_ts"] = "1 2".into()), Err("message_ts"));
        assert_eq!(click(|payload| payload["message"]["thread_ts"] = 7.into()), Err("thread_ts"));
        assert_eq!(click(|payload| payload["message"]["thread_ts"] = "1:2".into()), Err("thread_ts"));
        assert_eq!(click(|payload| payload["trigger_id"] = Value::Null), Err("trigger_id"));
        assert_eq!(click(|payload| payload["user"]["id"] = "U 1".into()), Err("user"));
        assert_eq!(click(|payload| payload["channel"]["id"] = "".into()), Err("channel"));
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
