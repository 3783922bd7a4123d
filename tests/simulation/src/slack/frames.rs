//! What Slack sends on its sockets, in worlds over calls: the events of what people say and do, as Slack writes them.

use pmk_host::chat::{Choice, Content, Edit, Inbound, Press, ReactedAuthor, Reaction};
use serde_json::{Value, json};

use super::{BOT, Done, News, Question, State};
use crate::world::EPOCH_MS;

/// Where files are fetched from.
pub(super) const FILES: &str = "http://127.0.0.1:9/files/";

/// The text of a message as its author has written it: in a channel, it mentions the bot.
fn written(inbound: &Inbound) -> String {
    let text = inbound.text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    if inbound.reply_to.channel.starts_with('D') { text } else { format!("<@{}> {text}", BOT[0]) }
}

fn message(inbound: &Inbound) -> Value {
    let files: Vec<Value> = inbound
        .attached
        .files
        .iter()
        .map(|file| {
            let kind = if file.content == Content::AwaitedImage { "image/png" } else { "text/plain" };
            let address = format!("{FILES}{}", file.address.as_deref().unwrap_or_default());
            json!({"id": "F1", "name": file.name, "mimetype": kind, "mode": "hosted", "url_private_download": address})
        })
        .collect();
    let mut message = json!({
        "type": "message", "user": inbound.user, "ts": inbound.ts, "text": written(inbound),
    });
    if let Some(thread_ts) = &inbound.reply_to.thread_ts {
        message["thread_ts"] = json!(thread_ts);
    }
    if !files.is_empty() {
        (message["files"], message["subtype"]) = (json!(files), json!("file_share"));
    }
    message
}

/// The event of a message, or of its edit at this time.
fn said(inbound: &Inbound, edited_at: Option<&str>) -> Value {
    let mut event = message(inbound);
    event["channel"] = json!(inbound.reply_to.channel);
    if inbound.reply_to.channel.starts_with('D') {
        event["channel_type"] = json!("im");
    } else {
        event["type"] = json!("app_mention");
    }
    if let Some(at) = edited_at {
        event["edited"] = json!({"user": inbound.user, "ts": at});
    }
    event
}

fn edited(Edit { message: now, at, .. }: &Edit, before: &Inbound) -> Value {
    if !now.reply_to.channel.starts_with('D') {
        return said(now, Some(at));
    }
    json!({
        "type": "message", "subtype": "message_changed", "channel": now.reply_to.channel, "channel_type": "im", "ts": at,
        "hidden": true, "message": said(now, Some(at)), "previous_message": message(before),
    })
}

fn deleted(channel: &str, ts: &str, before: &Value) -> Value {
    json!({
        "type": "message", "subtype": "message_deleted", "channel": channel, "ts": ts, "deleted_ts": ts, "hidden": true,
        "previous_message": before,
    })
}

fn reacted(Reaction { user, message, reaction, author, .. }: &Reaction) -> Value {
    let author = if *author == ReactedAuthor::Bot { BOT[0] } else { user };
    let item = json!({"type": "message", "channel": message.channel, "ts": message.ts});
    json!({"type": "reaction_added", "user": user, "reaction": reaction, "item": item, "item_user": author})
}

/// An envelope with an event.
fn of_event(event_id: &str, at: u64, tries: usize, event: Value) -> Value {
    let seconds = (EPOCH_MS as u64 + at) / 1_000;
    let payload = json!({"team_id": "T1", "event_id": event_id, "event_time": seconds, "event": event});
    json!({"type": "events_api", "payload": payload, "retry_attempt": tries})
}

/// An envelope with the press of a button.
fn of_press(press: &Press, action_id: &str) -> Value {
    let Press { id, user, message, thread_ts, choice } = press;
    let container = json!({"type": "message", "message_ts": message.ts, "channel_id": message.channel});
    let mut shown = json!({"type": "message", "ts": message.ts});
    if let Some(thread_ts) = thread_ts {
        shown["thread_ts"] = json!(thread_ts);
    }
    let action = json!({"type": "button", "action_id": action_id, "value": choice.name(), "action_ts": message.ts});
    let payload = json!({
        "type": "block_actions", "user": {"id": user}, "channel": {"id": message.channel}, "trigger_id": id,
        "container": container, "message": shown, "actions": [action],
    });
    json!({"type": "interactive", "payload": payload})
}

/// The buttons of a message: what each is called, and what it says.
pub(super) fn buttons(blocks: &Value) -> Vec<(String, Choice)> {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let elements = blocks
        .as_array()
        .into_iter()
        .flatten()
        .filter(|block| matches!(block["type"].as_str(), Some("actions" | "context_actions")));
    let all = elements.flat_map(|block| block["elements"].as_array().into_iter().flatten()).flat_map(|element| {
        let values = [&element["value"], &element["positive_button"]["value"], &element["negative_button"]["value"]];
        let choices = values.into_iter().filter_map(|value| Choice::from_name(value.as_str()?));
        choices.map(|choice| (word(&element["action_id"]), choice)).collect::<Vec<_>>()
    });
    all.collect()
}

impl State {
    /// The envelope of a question, in the version that its author wrote first.
    pub(super) fn frame_of_question(&self, question: usize, event_id: &str, tries: usize) -> Value {
        let Question { inbound, said_at, .. } = &self.questions[question];
        of_event(event_id, *said_at, tries, said(inbound, None))
    }

    /// The envelope of what somebody did.
    pub(super) fn frame_of_done(&self, done: usize, event_id: &str, now: u64, tries: usize) -> Value {
        let Done { news, .. } = &self.done[done];
        let of_event = |event_id: &str, event: Value| of_event(event_id, now, tries, event);
        let asked = |ts: &str| self.questions.iter().find(|question| question.inbound.ts == ts);
        match news {
            News::Edited { edit, .. } => {
                let before = asked(&edit.message.ts).map_or(&edit.message, |question| &question.inbound);
                of_event(&edit.message.event_id, edited(edit, before))
            }
            News::Deleted { channel, ts } => {
                let before = asked(ts).map_or(Value::Null, |question| message(&question.inbound));
                of_event(event_id, deleted(channel, ts, &before))
            }
            News::AnswerDeleted { channel, ts, .. } => {
                let post = self.posts.iter().find(|post| post.ts == *ts);
                let thread_ts = post.and_then(|post| post.place.thread_ts.clone());
                let text = post.map_or("", |post| &post.text);
                let [user, bot_id] = BOT;
                let mut before = json!({"type": "message", "user": user, "bot_id": bot_id, "ts": ts, "text": text});
                if let Some(thread_ts) = thread_ts {
                    before["thread_ts"] = json!(thread_ts);
                }
                of_event(event_id, deleted(channel, ts, &before))
            }
            News::Stop(reaction) | News::Again(reaction) | News::Thumb(reaction) => {
                of_event(event_id, reacted(reaction))
            }
            News::Press(press) => {
                let post = self.posts.iter().find(|post| post.ts == press.message.ts);
                let named = post.into_iter().flat_map(|post| &post.named_buttons);
                let button = named.into_iter().find(|(_, choice)| *choice == press.choice);
                of_press(press, button.map_or("", |(action_id, _)| action_id))
            }
        }
    }
}
