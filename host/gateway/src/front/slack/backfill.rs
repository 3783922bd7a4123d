//! Reads back what people wrote while no gateway was running, by `conversations.history` and `conversations.replies`.
//!
//! These calls wait behind all calls that answers need, and are repeated after a rate limit. Of what is found, only
//! what an event would have brought counts: everything in a direct message, mentions elsewhere, and messages in
//! threads, of which some are followed. A question that somebody has answered since is not asked any more; neither is
//! one that the bot has answered, which it does not know where its store is older than that.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::time::sleep;

use super::{
    failure::{CallFailure, Cause},
    history,
    identity::Identity,
    inbound::{self, InboundEvent},
    mrkdwn,
    places::Places,
    web::{Slot, Web},
};
use crate::{
    chat::{Addressing, AnsweredBy, ThreadMessage},
    front::{BackfillRequest, Past},
};

/// The largest page that Slack recommends.
pub(super) const PAGE: &str = "200";

/// A conversation with more pages is not read to its end.
const MAX_PAGES: usize = 10;

/// How often a rate-limited page is requested again.
const MAX_WAITS: usize = 5;

#[derive(Deserialize)]
struct Page {
    messages: Vec<Map<String, Value>>,
    response_metadata: Option<Cursor>,
}

/// The beginning of the next page.
#[derive(Deserialize)]
pub(super) struct Cursor {
    next_cursor: Option<String>,
}

impl Cursor {
    /// Returns `None` after the last page.
    pub(super) fn next(cursor: Option<Cursor>) -> Option<String> {
        cursor.and_then(|cursor| cursor.next_cursor).filter(|cursor| !cursor.is_empty())
    }
}

/// Returns what is still unanswered in a conversation.
pub(super) async fn look_back(
    web: &Web,
    me: &Identity,
    places: Places,
    place: &BackfillRequest,
) -> Result<Past, CallFailure> {
    let mut found = Vec::new();
    let mut cursor: Option<String> = None;
    let mut is_whole = false;
    for _ in 0..MAX_PAGES {
        let page = page(web, place, cursor.as_deref()).await?;
        found.extend(page.messages);
        cursor = Cursor::next(page.response_metadata);
        if cursor.is_none() {
            is_whole = true;
            break;
        }
    }
    Ok(Past { is_whole, ..open(found, me, places, place) })
}

async fn page(web: &Web, place: &BackfillRequest, cursor: Option<&str>) -> Result<Page, CallFailure> {
    let (method, thread_ts) = match &place.thread_ts {
        Some(thread_ts) => ("conversations.replies", Some(thread_ts.as_str())),
        None => ("conversations.history", None),
    };
    let parameters = [
        ("channel", Some(place.channel.as_str())),
        ("ts", thread_ts),
        ("oldest", Some(place.after.as_str())),
        ("limit", Some(PAGE)),
        ("include_all_metadata", Some("true")),
        ("cursor", cursor),
    ];
    let mut waits = 0;
    loop {
        match web.read(&Slot::courtesy(method), &parameters).await {
            Err(CallFailure { cause: Cause::RateLimited { retry_after }, .. }) if waits < MAX_WAITS => {
                waits += 1;
                sleep(retry_after).await;
            }
            page => return page,
        }
    }
}

/// Returns what is for the bot and unanswered, and what may be for it, oldest first.
fn open(mut found: Vec<Map<String, Value>>, me: &Identity, places: Places, place: &BackfillRequest) -> Past {
    // Slack returns a channel newest first, a thread oldest first.
    found.sort_by(|one, other| text(one, "ts").cmp(text(other, "ts")));
    let answered: HashSet<&str> =
        found.iter().filter(|message| is_by(me, message)).flat_map(history::answered_by).collect();
    let mut past = Past::default();
    for (at, message) in found.iter().enumerate() {
        // The first message of a thread is always returned, however old it is.
        if text(message, "ts") <= place.after.as_str() {
            continue;
        }
        let answered = match answered.contains(text(message, "ts")) {
            true => Some(AnsweredBy::Bot),
            false => is_answered_by_others(message, &found[at + 1..], (place, me)).then_some(AnsweredBy::Others),
        };
        match inbound::of_past(message.clone(), &place.channel, me, places) {
            Some(InboundEvent::ThreadMessage(word)) => {
                let ThreadMessage { message, manner } = *word;
                // Who has written in the thread matters even for answered messages.
                let manner = match manner {
                    Addressing::Mention { .. } if answered.is_some() => continue,
                    Addressing::Plain { names, .. } => Addressing::Plain { names, answered },
                    Addressing::Mention { alone } => Addressing::Mention { alone },
                };
                past.in_threads.push(ThreadMessage { message, manner });
            }
            Some(InboundEvent::Message(message)) if answered.is_none() => past.messages.push(*message),
            _ => {}
        }
    }
    past
}

/// Returns whether somebody else has answered the message. In a direct message that could only be the bot, whose answers
/// say what they answer. Who asks the bot answers nobody.
fn is_answered_by_others(
    message: &Map<String, Value>,
    later: &[Map<String, Value>],
    (place, me): (&BackfillRequest, &Identity),
) -> bool {
    if place.channel.starts_with('D') {
        return false;
    }
    let asker = text(message, "user");
    if place.thread_ts.is_some() {
        let is_answer = |reply: &Map<String, Value>| {
            text(reply, "user") != asker && !is_by(me, reply) && !mrkdwn::is_mentioned(text(reply, "text"), &me.user)
        };
        return later.iter().any(is_answer);
    }
    let repliers = message.get("reply_users").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    repliers.iter().filter_map(Value::as_str).any(|user| user != asker)
        || later.iter().any(|other| text(other, "user") != asker && mrkdwn::is_mentioned(text(other, "text"), asker))
}

fn is_by(me: &Identity, message: &Map<String, Value>) -> bool {
    me.wrote(Some(text(message, "user")), Some(text(message, "bot_id")))
}

fn text<'a>(message: &'a Map<String, Value>, key: &str) -> &'a str {
    message.get(key).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::front::slack::places::ReplyIn;

    fn me() -> Identity {
        Identity::of_a_bot()
    }

    fn said(user: &str, ts: &str, text: &str) -> Value {
        json!({"type": "message", "user": user, "ts": ts, "text": text})
    }

    fn past_of(channel: &str, thread: Option<&str>, places: Places, messages: Vec<Value>) -> Past {
        let place = BackfillRequest {
            channel: channel.into(),
            thread_ts: thread.map(str::to_owned),
            after: "100.000000".into(),
        };
        let messages = messages.into_iter().filter_map(|message| message.as_object().cloned()).collect();
        open(messages, &me(), places, &place)
    }

    fn open_at(channel: &str, messages: Vec<Value>) -> Vec<(String, String)> {
        let past = past_of(channel, None, Places::default(), messages);
        past.messages.into_iter().map(|message| (message.ts, message.text)).collect()
    }

    /// Returns the texts of messages in threads, and whom they address.
    fn words(past: Past) -> Vec<(String, Addressing)> {
        let word = |word: ThreadMessage| (word.message.text, word.manner);
        past.in_threads.into_iter().map(word).collect()
    }

    #[test]
    fn in_a_direct_message_everything_of_the_person_is_open_and_in_order() {
        let bots = json!({"type": "message", "user": "UBOT", "bot_id": "BBOT", "ts": "103.000000", "text": "hi"});
        let others =
            json!({"type": "message", "subtype": "bot_message", "bot_id": "B9", "ts": "104.000000", "text": "x"});
        let joined =
            json!({"type": "message", "subtype": "channel_join", "user": "U1", "ts": "105.000000", "text": "x"});
        let messages = vec![
            joined,
            others,
            bots,
            said("U1", "102.000000", "two"),
            said("U1", "101.000000", "one"),
            said("U1", "100.000000", "known"),
        ];
        let expected = [("101.000000", "one"), ("102.000000", "two")].map(|(ts, text)| (ts.into(), text.into()));
        assert_eq!(open_at("D1", messages), expected);
    }

    /// Regression: what was answered after the backup that a store was restored from was answered again in direct
    /// messages, as nothing says there to whom an answer is.
    #[test]
    fn what_the_bot_itself_has_answered_is_not_open_even_if_its_store_does_not_know() {
        let answers = |bot: &str, ts: &str, event_type: &str, answers: &str| {
            let (user, subtype) = if bot == "BBOT" { ("UBOT", None) } else { ("U9", Some("bot_message")) };
            json!({
                "type": "message", "subtype": subtype, "user": user, "bot_id": bot, "ts": ts, "text": "an answer",
                "metadata": {"event_type": event_type, "event_payload": {"answers": answers, "part": "0"}},
            })
        };
        let messages = vec![
            said("U1", "101.000000", "one"),
            said("U1", "102.000000", "two"),
            said("U1", "103.000000", "three"),
            said("U1", "104.000000", "four"),
            said("U1", "105.000000", "five"),
            answers("BBOT", "106.000000", "pmk_host_part", "101.000000 103.000000"),
            answers("B2", "107.000000", "pmk_host_part", "104.000000"),
            answers("BBOT", "108.000000", "other", "105.000000"),
        ];
        let open: Vec<String> = open_at("D1", messages).into_iter().map(|(_, text)| text).collect();
        assert_eq!(open, ["two", "four", "five"]);
    }

    #[test]
    fn in_a_channel_only_mentions_count_that_nobody_has_answered() {
        let mut in_thread = said("U1", "103.000000", "<@UBOT> answered in its thread");
        in_thread["reply_users"] = json!(["U2"]);
        let mut own_thread = said("U4", "104.000000", "<@UBOT> only the asker wrote there");
        own_thread["reply_users"] = json!(["U4"]);
        let messages = vec![
            said("U1", "101.000000", "talk"),
            said("U1", "102.000000", "<@UBOT> answered by name"),
            in_thread,
            own_thread,
            said("U2", "105.000000", "<@U1> it is Friday"),
            said("U3", "106.000000", "<@UBOT> and when is lunch?"),
        ];
        let texts: Vec<String> = open_at("C1", messages).into_iter().map(|(_, text)| text).collect();
        assert_eq!(texts, ["only the asker wrote there", "and when is lunch?"]);
    }

    #[test]
    fn a_mention_that_began_a_thread_has_the_key_that_its_event_had() {
        let mut began = said("U1", "101.000000", "<@UBOT> hello");
        (began["thread_ts"], began["reply_users"]) = (json!("101.000000"), json!(["U1"]));
        let in_channel = past_of("C1", None, Places::default(), vec![began.clone()]);
        assert_eq!(in_channel.messages[0].key.to_string(), "slack:channel:C1");
        let places = Places { reply_in: ReplyIn::Thread, ..Places::default() };
        let in_thread = past_of("C1", None, places, vec![began]);
        assert_eq!(in_thread.in_threads[0].message.key.to_string(), "slack:channel:C1:101.000000");
        assert_eq!(in_thread.in_threads[0].manner, Addressing::Mention { alone: true });
    }

    #[test]
    fn in_a_thread_a_later_word_of_somebody_else_is_an_answer() {
        let parent = said("U1", "099.000000", "<@UBOT> old");
        let in_thread = |user: &str, ts: &str, text: &str| {
            let mut said = said(user, ts, text);
            (said["thread_ts"], said["parent_user_id"]) = (json!("099.000000"), json!("U1"));
            said
        };
        let thread = |last: Value| {
            let asked = in_thread("U1", "101.000000", "<@UBOT> well?");
            let messages = vec![parent.clone(), asked, in_thread("U1", "102.000000", "anybody?"), last];
            words(past_of("C1", Some("099.000000"), Places::default(), messages))
        };
        let plain = |text: &str, answered| (text.to_owned(), Addressing::Plain { names: vec![], answered });
        let answered = thread(in_thread("U2", "103.000000", "yes"));
        assert_eq!(answered, [plain("anybody?", Some(AnsweredBy::Others)), plain("yes", None)]);
        let open = thread(in_thread("U1", "103.000000", "nobody?"));
        let asked = || ("well?".to_owned(), Addressing::Mention { alone: true });
        assert_eq!(open, [asked(), plain("anybody?", None), plain("nobody?", None)]);
        // Regression: of two people who had asked the bot in a thread during an outage, only the last was answered.
        let also_asks = thread(in_thread("U2", "103.000000", "<@UBOT> and Q2?"));
        let also_asked = ("and Q2?".to_owned(), Addressing::Mention { alone: false });
        assert_eq!(also_asks, [asked(), plain("anybody?", None), also_asked]);
        let says = thread(in_thread("UBOT", "103.000000", "something else"));
        assert_eq!(says[..2], [asked(), plain("anybody?", None)]);
    }
}
