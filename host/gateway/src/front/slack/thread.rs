//! The messages of a thread before the first one for the bot.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    attached,
    backfill::Cursor,
    block_text,
    failure::CallFailure,
    identity::Identity,
    limiter::Priority,
    mrkdwn,
    web::{Slot, Web},
};
use crate::{
    chat::{ReplyTo, Thread, ThreadPost},
    front::IsHeard,
};

/// The largest page that Slack gives: it gives a thread from its beginning only, and the newest messages matter most.
const PAGE: &str = "999";

/// A thread of more pages is not read to its end.
const MAX_PAGES: usize = 10;

/// The most characters of a thread that are kept: its first message, and the newest ones.
const MAX_CHARS: usize = 60_000;

#[derive(Deserialize)]
struct Page {
    messages: Vec<Value>,
    response_metadata: Option<Cursor>,
}

/// What the model reads in place of its own id.
const ITSELF: &str = "you";

/// Returns what others than the bot who are heard have written in a thread before the message of that `ts`; and the
/// message of the bot under which they have, if the thread begins with one.
pub(super) async fn before(
    web: &Web,
    me: &Identity,
    place: &ReplyTo,
    before: &str,
    is_heard: IsHeard<'_>,
) -> Result<Thread, CallFailure> {
    let (mut said, mut people) = (Vec::new(), Vec::new());
    let mut cursor: Option<String> = None;
    let mut is_cut = false;
    for _ in 0..MAX_PAGES {
        let parameters = [
            ("channel", Some(place.channel.as_str())),
            ("ts", place.thread_ts.as_deref()),
            ("latest", Some(before)),
            ("limit", Some(PAGE)),
            ("cursor", cursor.as_deref()),
        ];
        let page: Page = match web.read(&Slot::of("conversations.replies", Priority::Progress), &parameters).await {
            Err(failure) if !said.is_empty() => {
                tracing::debug!(%failure, "the rest of a long thread is not read");
                break;
            }
            page => page?,
        };
        let objects = page.messages.iter().filter_map(Value::as_object);
        for message in objects.filter(|message| ts(message) < before) {
            let Some(one) = read(message, me, place.thread_ts.as_deref()).filter(|one| is_heard(&one.by)) else {
                continue;
            };
            if is_of_a_person(message) && one.by != ITSELF && !people.contains(&one.by) {
                people.push(one.by.clone());
            }
            said.push(one);
        }
        is_cut |= bound(&mut said, MAX_CHARS);
        cursor = Cursor::next(page.response_metadata);
        if cursor.is_none() {
            break;
        }
    }
    Ok(Thread { said, people, is_cut: is_cut || cursor.is_some() })
}

fn is_of_a_person(message: &Map<String, Value>) -> bool {
    message.get("user").is_some_and(Value::is_string) && !message.contains_key("bot_id")
}

fn ts(message: &Map<String, Value>) -> &str {
    message.get("ts").and_then(Value::as_str).unwrap_or_default()
}

/// Returns a message that has content, with its attachments, of the thread of that `root`.
fn read(message: &Map<String, Value>, me: &Identity, root: Option<&str>) -> Option<ThreadPost> {
    let word = |key: &str| message.get(key).and_then(Value::as_str);
    let says = matches!(word("subtype"), None | Some("file_share" | "thread_broadcast" | "bot_message" | "me_message"));
    let is_ours = me.wrote(word("user"), word("bot_id"));
    if !says || is_ours && root.is_none_or(|root| ts(message) != root) {
        return None;
    }
    let text = mrkdwn::plain(word("text").unwrap_or_default(), &me.user);
    let mut lines = vec![block_text::said(text, message.get("blocks").unwrap_or(&Value::Null), &me.user)];
    lines.extend(message.get("attachments").into_iter().flat_map(|attachments| attached::words(attachments, &me.user)));
    lines.extend(message.get("files").into_iter().flat_map(attached::names).map(|name| format!("[{name}]")));
    lines.retain(|line| !line.trim().is_empty());
    let by = if is_ours { ITSELF } else { attached::writer(message)? }.to_owned();
    (!lines.is_empty()).then(|| ThreadPost { by, text: lines.join("\n") })
}

/// Removes the oldest messages except the first until the rest has at most this many characters.
/// Returns whether any were removed.
fn bound(said: &mut Vec<ThreadPost>, most: usize) -> bool {
    let chars = |said: &ThreadPost| said.text.chars().count();
    let mut left = most.saturating_sub(said.first().map_or(0, chars));
    let newest = said.iter().skip(1).rev().take_while(|said| match left.checked_sub(chars(said)) {
        Some(rest) => {
            left = rest;
            true
        }
        None => false,
    });
    let stays = newest.count();
    let goes = 1..said.len().saturating_sub(stays);
    !goes.is_empty() && said.drain(goes).count() > 0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn everybody_is_heard_but_the_bot_itself_and_what_begins_the_thread() {
        let me = Identity::of_a_bot();
        let root = Some("1700000000.000100");
        let read = |message: Value| super::read(message.as_object()?, &me, root).map(|said| (said.by, said.text));
        let said = |by: &str, text: &str| Some((by.to_owned(), text.to_owned()));
        assert_eq!(read(json!({"user": "U1", "text": "<@UBOT> why &lt; 3?"})), said("U1", "why < 3?"));
        let alert =
            json!({"subtype": "bot_message", "bot_id": "B7", "text": "", "attachments": [{"text": "disk full"}]});
        assert_eq!(read(alert), said("B7", "disk full"));
        let file = json!({"user": "U1", "subtype": "file_share", "text": "", "files": [{"name": "a.log"}]});
        assert_eq!(read(file), said("U1", "[a.log]"));
        // What they have written under is what they write about.
        let mine = json!({"user": "UBOT", "bot_id": "BBOT", "ts": root, "text": "Two points."});
        assert_eq!(read(mine), said("you", "Two points."));
        for nothing in [
            json!({"user": "UBOT", "text": "mine"}),
            json!({"bot_id": "BBOT", "text": "mine"}),
            json!({"user": "U1", "subtype": "channel_join", "text": "joined"}),
            json!({"user": "U1", "text": " "}),
            json!({"user": "U 1", "text": "no id"}),
            json!({"text": "nobody's"}),
        ] {
            assert_eq!(read(nothing.clone()), None, "{nothing}");
        }
    }

    /// Regression: of an alert made of blocks, the model was told nothing.
    #[test]
    fn a_message_of_an_app_reads_as_people_see_it() {
        let me = Identity::of_a_bot();
        let read = |message: Value| super::read(message.as_object()?, &me, None).map(|said| said.text);
        let blocks = json!([
            {"type": "header", "text": {"type": "plain_text", "text": "CPU high on db1"}},
            {"type": "section", "text": {"type": "mrkdwn", "text": "*97 %* for 10 min"}},
        ]);
        let seen = Some("CPU high on db1\n*97 %* for 10 min".to_owned());
        let by_app = |text: &str, blocks: &Value| json!({"subtype": "bot_message", "bot_id": "B7", "text": text, "blocks": blocks});
        assert_eq!(read(by_app("", &blocks)), seen);
        assert_eq!(read(by_app("This content can't be displayed.", &blocks)), seen);
        assert_eq!(read(by_app("An alert has fired", &blocks)), seen, "the text is for notifications");
        let picture = json!([{"type": "image", "image_url": "https://a.b/c.png", "alt_text": ""}]);
        assert_eq!(read(by_app("An alert has fired", &picture)), Some("An alert has fired".to_owned()));
        let reply = json!({"bot_id": "B7", "text": "", "attachments": [
            {"color": "#f00", "fallback": "[no preview available]", "blocks": blocks}]});
        assert_eq!(read(reply), seen);
        // What a person has written is the same in both, and its text keeps its format.
        let rich = json!([{"type": "rich_text", "elements": [
            {"type": "rich_text_preformatted", "elements": [{"type": "text", "text": "ls"}]}]}]);
        assert_eq!(read(json!({"user": "U1", "text": "```ls```", "blocks": rich})), Some("```ls```".to_owned()));
        assert_eq!(read(json!({"user": "U1", "text": "", "blocks": rich})), Some("ls".to_owned()));
    }

    #[test]
    fn of_a_long_thread_its_beginning_stays_and_the_newest() {
        let thread = |lengths: &[usize]| -> Vec<ThreadPost> {
            let said = |(at, length): (usize, &usize)| ThreadPost { by: format!("U{at}"), text: "x".repeat(*length) };
            lengths.iter().enumerate().map(said).collect()
        };
        for (lengths, most, left) in [
            (&[5, 5, 5][..], 15, &["U0", "U1", "U2"][..]),
            (&[5, 5, 5], 14, &["U0", "U2"]),
            (&[5, 1, 9, 1], 8, &["U0", "U3"]),
            (&[9], 3, &["U0"]),
            (&[9, 1], 3, &["U0"]),
            (&[], 3, &[]),
        ] {
            let mut said = thread(lengths);
            assert_eq!(bound(&mut said, most), left.len() < lengths.len(), "{lengths:?}");
            assert_eq!(said.iter().map(|said| said.by.as_str()).collect::<Vec<_>>(), left, "{lengths:?}");
        }
    }
}
