//! Slack's events about messages that were sent before: edits and deletions.
//!
//! A link preview causes the same event as an edit, and so do the deletion of a file and the bot's own `chat.update`;
//! none of these counts as one. The deletion of a message with replies also arrives as an edit, which leaves a tombstone.
//! In channels, an edit of a mention arrives as another mention, and other edits only if the app is subscribed to the
//! channel's messages.

use pmk_core::{FrontName, Place, SessionKey};
use pmk_system::json;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, value::RawValue};

use super::{
    identity::Identity,
    mrkdwn,
    places::Places,
    said::{MessageEvent, message},
};
use crate::{
    chat::{Addressing, Change, DeletedAuthor, Deletion, Edit, MessageRef, Reattached},
    front::malformed,
};

/// What remains of a deleted message with replies, or of a deleted file.
const TOMBSTONE: &str = "tombstone";

/// What is read of a message before or after a change, until it is clear that more is needed: most are the bot's own.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Told {
    #[serde(deserialize_with = "text_or_nothing")]
    subtype: Option<String>,
    #[serde(deserialize_with = "text_or_nothing")]
    user: Option<String>,
    #[serde(deserialize_with = "text_or_nothing")]
    bot_id: Option<String>,
    #[serde(deserialize_with = "text_or_nothing")]
    ts: Option<String>,
    #[serde(deserialize_with = "text_or_nothing")]
    thread_ts: Option<String>,
    #[serde(deserialize_with = "text_or_nothing")]
    text: Option<String>,
}

/// What comes with a message before or after a change.
#[derive(Default, Deserialize)]
#[serde(default)]
struct With {
    attachments: Value,
    files: Value,
}

impl With {
    fn read(message: Option<&RawValue>) -> With {
        message.and_then(|message| json::read_object(message.get()).ok()).unwrap_or_default()
    }

    fn previews(&self) -> usize {
        self.attachments.as_array().map_or(0, Vec::len)
    }

    /// The ids of the files that are still there.
    fn files(&self) -> impl Iterator<Item = &str> {
        let is_there = |file: &&Value| file["mode"] != TOMBSTONE;
        self.files.as_array().into_iter().flatten().filter(is_there).filter_map(|file| file["id"].as_str())
    }
}

fn text_or_nothing<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::String(text) => Some(text),
        _ => None,
    })
}

impl Told {
    fn read(message: &RawValue) -> Option<Told> {
        json::read_object(message.get()).ok()
    }

    fn is_own(&self, me: &Identity) -> bool {
        me.wrote(self.user.as_deref(), self.bot_id.as_deref())
    }
}

/// Returns whether an event is about a message that was sent before.
pub(super) fn is_change(said: &MessageEvent, mentioned: bool) -> bool {
    matches!(said.subtype.as_deref(), Some("message_changed" | "message_deleted")) || mentioned && said.edited.is_some()
}

/// Returns the change; `None` if nothing has changed that counts, or if the bot made the change.
pub(super) fn change(
    team_id: String,
    event_id: String,
    said: MessageEvent,
    mentioned: bool,
    me: &Identity,
    places: Places,
) -> Option<Change> {
    if mentioned {
        let at = edited_at(said.edited.as_ref())?;
        let (message, manner) = message(team_id, event_id, said, true, me, places)?;
        let edit = Edit { message, at, is_for_us: true, comes_alone: true, manner, lost_files: false };
        return Some(Change::Edited(Box::new(edit)));
    }
    let is_group = said.is_group();
    let MessageEvent { channel, channel_type, ts, subtype, message: now, previous_message: before, deleted_ts, .. } =
        said;
    let had = before.as_deref();
    let before = had.and_then(Told::read);
    if subtype.as_deref() == Some("message_deleted") {
        let thread = before.as_ref().and_then(|before| before.thread_ts.as_deref());
        return deleted(channel, deleted_ts.as_ref()?.as_str()?, thread, before.as_ref(), me);
    }
    let now = now?;
    let is = Told::read(&now)?;
    if is.subtype.as_deref() == Some(TOMBSTONE) {
        let ts = is.ts?;
        return deleted(channel, &ts, Some(&ts), before.as_ref(), me);
    }
    if is.is_own(me) {
        return None;
    }
    let (had, has) = (With::read(had), With::read(Some(&*now)));
    let lost_files = had.files().any(|file| has.files().all(|other| other != file));
    let has_other_text = before.is_none_or(|before| before.text != is.text);
    if !has_other_text && !lost_files && has.previews() <= had.previews() {
        return None;
    }
    let mut now: Map<String, Value> = serde_json::from_str(now.get()).ok()?;
    now.insert("channel".into(), channel.into());
    now.insert("channel_type".into(), channel_type.map_or(Value::Null, Value::from));
    let said = MessageEvent::deserialize(Value::Object(now)).ok()?;
    if malformed(said.ids()).is_some() {
        return None;
    }
    let at = edited_at(said.edited.as_ref()).unwrap_or(ts);
    let is_mentioned = said.text.as_deref().is_some_and(|text| mrkdwn::is_mentioned(text, &me.user));
    let is_for_us = is_mentioned || said.is_direct();
    let names = said.text.as_deref().map(|text| mrkdwn::others_named(text, &me.user)).unwrap_or_default();
    // For a known question, whether or not it still mentions the bot.
    let (message, manner) = message(team_id, event_id, said, true, me, places)?;
    if !has_other_text {
        return Some(Change::Reattached(Box::new(Reattached { message, lost_files })));
    }
    let plain = Addressing::Plain { names, answered: None };
    let manner = manner.map(|mention| if is_mentioned { mention } else { plain });
    // In such a group, it is uncertain whether the mention arrives as another event.
    let comes_alone = is_mentioned && is_group;
    Some(Change::Edited(Box::new(Edit { message, at, is_for_us, comes_alone, manner, lost_files })))
}

/// Returns the deletion of a message that was `before`, in that thread or at its beginning.
fn deleted(channel: String, ts: &str, thread: Option<&str>, before: Option<&Told>, me: &Identity) -> Option<Change> {
    let person = before.and_then(|before| before.user.as_deref()).filter(|user| *user != me.user);
    let more = [("thread_ts", thread), ("user", person)].into_iter().filter_map(|(name, id)| Some((name, id?)));
    if malformed([("channel", &*channel), ("ts", ts)].into_iter().chain(more)).is_some() {
        return None;
    }
    let is_for_us = |before: &Told| {
        channel.starts_with('D') || before.text.as_deref().is_some_and(|text| mrkdwn::is_mentioned(text, &me.user))
    };
    let of = match before {
        Some(before) if before.is_own(me) => DeletedAuthor::Own,
        Some(before) if !is_for_us(before) => DeletedAuthor::Others,
        Some(_) | None => DeletedAuthor::Us,
    };
    let place = match channel.starts_with('D') {
        false => Some(Place::Channel(channel.clone())),
        true => person.map(|person| Place::Dm(person.to_owned())),
    };
    let key = |(place, thread)| SessionKey { front: FrontName::Slack, place, thread: Some(String::from(thread)) };
    let thread = place.zip(thread).map(key);
    Some(Change::Deleted(Deletion { message: MessageRef::new(channel, ts), thread, of }))
}

fn edited_at(edited: Option<&Value>) -> Option<String> {
    let at = edited?.get("ts")?.as_str()?;
    malformed([("ts", at)]).is_none().then(|| at.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::front::slack::inbound::{InboundEvent, news};

    fn read(event: Value) -> Option<InboundEvent> {
        let me = Identity::of_a_bot();
        let callback = json!({"team_id": "T1", "event_id": "Ev1", "event": event});
        news(serde_json::from_value(callback).expect("a callback"), &me, Places::default())
    }

    fn said(user: &str, text: &str) -> Value {
        json!({"type": "message", "user": user, "ts": "1.1", "text": text})
    }

    fn changed(channel: &str, before: Value, now: Value) -> Value {
        json!({"type": "message", "subtype": "message_changed", "channel": channel, "ts": "1.3", "hidden": true,
               "message": now, "previous_message": before})
    }

    fn edit(event: Value) -> Edit {
        match read(event) {
            Some(InboundEvent::Change(Change::Edited(edit))) => *edit,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_edit_is_the_message_as_it_is_now() {
        let mut now = said("U1", "1 &lt; 3?");
        now["edited"] = json!({"user": "U1", "ts": "1.2"});
        let Edit { message, at, is_for_us, comes_alone, .. } =
            edit(changed("D1", said("U1", "1 &lt; 2?"), now.clone()));
        assert_eq!((&*message.text, &*message.ts, &*message.key.to_string()), ("1 < 3?", "1.1", "slack:dm:U1"));
        assert_eq!((&*at, is_for_us, comes_alone), ("1.2", true, false));
        let Edit { message, at, is_for_us, .. } = edit(changed("C1", said("U1", "x"), said("U1", "y")));
        assert_eq!((&*message.key.to_string(), &*at, is_for_us), ("slack:channel:C1", "1.3", false));
        assert!(edit(changed("C1", said("U1", "x"), said("U1", "<@UBOT> y"))).is_for_us);
        let mention = json!({"type": "app_mention", "channel": "C1", "user": "U1", "ts": "1.1", "text": "<@UBOT> z",
                             "edited": {"user": "U1", "ts": "1.4"}});
        let Edit { message, at, comes_alone, .. } = edit(mention);
        assert_eq!((&*message.text, &*at, comes_alone), ("z", "1.4", true));
    }

    #[test]
    fn what_is_no_edit_of_a_person_is_nothing() {
        let mut own = said("UBOT", "done");
        own["bot_id"] = json!("BBOT");
        for (why, event) in [
            ("the same text", changed("D1", said("U1", "x"), said("U1", "x"))),
            ("the bot's own", changed("D1", said("UBOT", "Thinking…"), said("UBOT", "done"))),
            ("the bot's own, by its bot id", changed("D1", said("UBOT", "Thinking…"), own)),
            ("no message", json!({"type": "message", "subtype": "message_changed", "channel": "D1", "ts": "1.3"})),
            ("an id that is none", changed("D1", said("U1", "x"), said("U 1", "y"))),
            ("nobody's", json!({"type": "message", "subtype": "message_deleted", "channel": "D1", "ts": "1.3"})),
        ] {
            assert_eq!(read(event), None, "{why}");
        }
    }

    /// Regression: these were nothing, because the text is the same.
    #[test]
    fn the_deletion_of_a_file_and_the_preview_of_a_link_were_not_noticed() {
        let mut unfolded = said("U1", "see https://example.com");
        unfolded["attachments"] = json!([{"title": "Example"}]);
        let with = |text: &str, files: Value| {
            let mut message = said("U1", text);
            message["files"] = files;
            message
        };
        let file = json!({"id": "F1", "name": "a.log", "mimetype": "text/plain", "mode": "hosted",
                          "url_private": "https://files.slack.com/a"});
        let (there, gone) = (json!([file]), json!([{"id": "F1", "mode": "tombstone"}]));
        let reattached = |event: Value| match read(event) {
            Some(InboundEvent::Change(Change::Reattached(reattached))) => {
                let Reattached { message, lost_files } = *reattached;
                (message.attached.quotes.len(), message.attached.files.len(), lost_files)
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(reattached(changed("D1", said("U1", "see https://example.com"), unfolded)), (1, 0, false));
        for text in ["see", ""] {
            assert_eq!(reattached(changed("D1", with(text, there.clone()), with(text, gone.clone()))), (0, 1, true));
            assert_eq!(reattached(changed("D1", with(text, there.clone()), said("U1", text))), (0, 0, true));
        }
        for files in [&there, &gone] {
            assert_eq!(read(changed("D1", with("see", files.clone()), with("see", files.clone()))), None, "as before");
        }
        let both = edit(changed("D1", with("see", there.clone()), with("look", gone)));
        assert!(both.lost_files && !edit(changed("D1", with("see", there.clone()), with("look", there))).lost_files);
    }

    #[test]
    fn a_deletion_is_read_and_a_tombstone_is_one() {
        let deleted = |user: &str| {
            json!({"type": "message", "subtype": "message_deleted", "channel": "D1", "ts": "1.3", "deleted_ts": "1.1",
                   "previous_message": said(user, "x")})
        };
        let gone = |of, thread: Option<&str>| {
            let (message, thread) = (MessageRef::new("D1", "1.1"), thread.map(|key| key.parse().expect("a key")));
            Some(InboundEvent::Change(Change::Deleted(Deletion { message, thread, of })))
        };
        assert_eq!(read(deleted("U1")), gone(DeletedAuthor::Us, None));
        assert_eq!(read(deleted("UBOT")), gone(DeletedAuthor::Own, None));
        let mut tombstone = said("USLACKBOT", "This message was deleted.");
        tombstone["subtype"] = json!("tombstone");
        // Whatever replaced one of them began a thread.
        assert_eq!(read(changed("D1", said("U1", "x"), tombstone)), gone(DeletedAuthor::Us, Some("slack:dm:U1:1.1")));
    }

    #[test]
    fn a_deletion_in_a_channel_says_whose_it_may_be() {
        for (before, thread, of) in [
            (json!({}), None, DeletedAuthor::Others),
            (json!({"thread_ts": "1.1"}), Some("slack:channel:C1:1.1"), DeletedAuthor::Others),
            (json!({"thread_ts": "0.9"}), Some("slack:channel:C1:0.9"), DeletedAuthor::Others),
            (json!({"text": "<@UBOT> x"}), None, DeletedAuthor::Us),
            (Value::Null, None, DeletedAuthor::Us),
        ] {
            let mut event = json!({"type": "message", "subtype": "message_deleted", "channel": "C1", "ts": "1.3",
                                   "deleted_ts": "1.1"});
            if let Value::Object(more) = before.clone() {
                event["previous_message"] = said("U1", "x");
                event["previous_message"].as_object_mut().expect("an object").extend(more);
            }
            let Some(InboundEvent::Change(Change::Deleted(deletion))) = read(event) else { panic!("{before}") };
            let key = deletion.thread.map(|key| key.to_string());
            assert_eq!((key.as_deref(), deletion.of), (thread, of), "{before}");
        }
    }

    #[test]
    fn a_deletion_in_a_direct_message_says_whose_thread_it_is() {
        for (user, thread, of) in
            [("U1", Some("slack:dm:U1:0.9"), DeletedAuthor::Us), ("UBOT", None, DeletedAuthor::Own)]
        {
            let mut before = said(user, "x");
            before["thread_ts"] = json!("0.9");
            let event = json!({"type": "message", "subtype": "message_deleted", "channel": "D1", "ts": "1.3",
                               "deleted_ts": "1.1", "previous_message": before});
            let Some(InboundEvent::Change(Change::Deleted(deletion))) = read(event) else { panic!("{user}") };
            assert_eq!((deletion.thread.map(|key| key.to_string()).as_deref(), deletion.of), (thread, of));
        }
    }

    #[test]
    fn an_edit_in_a_group_that_mentions_the_bot_comes_alone() {
        for (kind, text, alone) in [("mpim", "<@UBOT> y", true), ("mpim", "y", false), ("channel", "<@UBOT> y", false)]
        {
            let mut event = changed("C1", said("U1", "x"), said("U1", text));
            event["channel_type"] = json!(kind);
            assert_eq!(edit(event).comes_alone, alone, "{kind} {text}");
        }
    }
}
