//! Edits and deletions of messages by people.
//!
//! As in Slack, an edit is reported as `message_changed`, with the message after and before, and a time in whole
//! seconds; where it mentions the bot in a channel, the mention is sent again, with `edited`. A message with replies
//! leaves a tombstone, which is reported as an edit by Slackbot. In channels the app is told only if it is subscribed
//! to their messages.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    BOT_USER, Inner, TEAM,
    events::{self, send},
    methods::as_json,
    places::Kind,
    state::Message,
};

/// A person edits a message; returns the ids of the events, the mention's last.
pub(super) fn edit(inner: &Arc<Inner>, channel: &str, ts: &str, text: &str) -> Vec<String> {
    let (before, after) = {
        let mut state = inner.state();
        let message = state.message_mut(channel, ts).expect("the message is there");
        let before = message.clone();
        message.history.push(std::mem::replace(&mut message.text, text.to_owned()));
        (before, message.clone())
    };
    let at = inner.state().ts();
    let second = at.split_once('.').map_or(&*at, |(second, _)| second);
    let edited = json!({"user": after.user, "ts": format!("{second}.000000")});
    let mut ids = vec![];
    if hears(inner, channel) {
        let mut message = as_json(&after);
        message["edited"] = edited.clone();
        ids.push(changed(inner, channel, &at, message, as_json(&before)));
    }
    if Kind::of(inner, channel).tells_mentions(inner) && text.contains(&format!("<@{BOT_USER}>")) {
        let mut mention = as_json(&after);
        mention["type"] = json!("app_mention");
        mention["channel"] = json!(channel);
        mention["team"] = json!(TEAM);
        mention["edited"] = edited;
        mention["event_ts"] = json!(ts);
        ids.push(send(inner, mention));
    }
    ids
}

/// A link in a message unfolds: nobody has edited anything.
pub(super) fn unfold(inner: &Arc<Inner>, channel: &str, ts: &str) -> String {
    let message = inner.state().message_mut(channel, ts).expect("the message is there").clone();
    let at = inner.state().ts();
    let mut now = as_json(&message);
    now["attachments"] = json!([{"from_url": "https://example.com", "title": "Example Domain", "id": 1}]);
    changed(inner, channel, &at, now, as_json(&message))
}

/// Somebody deletes a message; returns the id of the event, if the app gets one.
pub(super) fn delete(inner: &Arc<Inner>, channel: &str, ts: &str) -> Option<String> {
    let has_replies = inner.state().channel(channel).iter().any(|other| other.thread_ts.as_deref() == Some(ts));
    if !has_replies {
        let message = inner.state().remove(channel, ts)?;
        return events::deleted(inner, &message);
    }
    let before = {
        let mut state = inner.state();
        let message = state.message_mut(channel, ts)?;
        let before = message.clone();
        message.text = "This message was deleted.".into();
        before
    };
    let tombstone = json!({
        "type": "message", "subtype": "tombstone", "text": "This message was deleted.", "user": "USLACKBOT",
        "hidden": true, "ts": ts, "thread_ts": ts, "parent_user_id": "USLACKBOT",
    });
    let at = inner.state().ts();
    hears(inner, channel).then(|| changed(inner, channel, &at, tombstone, as_json(&before)))
}

fn hears(inner: &Inner, channel: &str) -> bool {
    channel.starts_with('D') || inner.rules.channel_messages
}

fn changed(inner: &Arc<Inner>, channel: &str, at: &str, message: Value, before: Value) -> String {
    let kind = Kind::of(inner, channel).name();
    send(
        inner,
        json!({
            "type": "message", "subtype": "message_changed", "hidden": true, "message": message,
            "previous_message": before, "channel": channel, "channel_type": kind, "ts": at, "event_ts": at,
        }),
    )
}

/// The message with this `ts`.
pub(super) fn message(inner: &Inner, channel: &str, ts: &str) -> Option<Message> {
    inner.state().message_mut(channel, ts).map(|message| message.clone())
}
