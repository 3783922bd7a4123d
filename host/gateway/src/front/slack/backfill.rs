//! Reads back what people wrote while no gateway was running, by `conversations.history` and `conversations.replies`.
//!
//! These calls wait behind all calls that answers need, and are repeated after a rate limit. Of what is found, only
//! what an event would have brought counts: everything in a direct message, mentions elsewhere, and messages in
//! threads, of which some are followed. A conversation is read with those of its threads in which something was written
//! since; they are found by the messages that they begin with, which may be a day older. A question that somebody has
//! answered since is not asked any more; neither is one that the bot has answered, which it does not know where its
//! store is older than that.

use std::collections::{BTreeMap, HashSet};

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

/// A thread with more pages is not read to its end.
const MAX_PAGES: usize = 10;

/// Nor is a channel or direct message with more, with the day before. The newest are read first.
const MAX_PAGES_OF_PLACE: usize = 2 * MAX_PAGES;

/// How often a rate-limited page is requested again.
const MAX_WAITS: usize = 5;

/// How many threads are read with a conversation: those with the newest replies.
const MAX_THREADS: usize = 50;

/// After how many failures in a row no more of them are read until they are tried again: it is not about one thread.
const MAX_FAILURES: usize = 3;

/// How much older than what is read back the first message of such a thread may be: a day, in seconds.
const ROOTS_BEFORE_S: u64 = 24 * 60 * 60;

/// The replies that were read with a conversation, by the `ts` of the message that begins their thread.
type Threads = BTreeMap<String, Vec<Map<String, Value>>>;

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
    if place.thread_ts.is_some() {
        let (found, is_whole) = read(web, place).await?;
        return Ok(Past { is_whole, ..open(found, &Threads::new(), me, places, place) });
    }
    let with_roots = BackfillRequest { after: roots_after(&place.after), ..place.clone() };
    let (mut found, is_all) = read(web, &with_roots).await?;
    let ReadThreads { threads, is_whole, unread } = read_threads(web, place, threads_to_read(&found, place)).await?;
    let (count, is_whole, has_failed) = (threads.len(), is_all && is_whole, !unread.is_empty());
    if !place.is_last {
        // Whether they are answered is known once their threads are read.
        found.retain(|message| !unread.contains(text(message, "ts")));
    }
    let mut past = open(found, &threads, me, places, place);
    for (root, replies) in threads {
        let in_it = open(replies, &Threads::new(), me, places, &thread_of(place, &root));
        past.messages.extend(in_it.messages);
        past.in_threads.extend(in_it.in_threads);
    }
    past.messages.sort_by(|one, other| one.ts.cmp(&other.ts));
    past.in_threads.sort_by(|one, other| one.message.ts.cmp(&other.message.ts));
    Ok(Past { threads: count, is_whole, has_failed, ..past })
}

/// What was written in threads.
struct ReadThreads {
    threads: Threads,
    /// Whether that is all of them, except for those that could not be read now.
    is_whole: bool,
    /// The messages that begin those.
    unread: HashSet<String>,
}

/// Reads the first of these threads.
async fn read_threads(web: &Web, place: &BackfillRequest, roots: Vec<String>) -> Result<ReadThreads, CallFailure> {
    let most = MAX_THREADS.min(place.most_threads);
    let mut found = ReadThreads { threads: Threads::new(), is_whole: roots.len() <= most, unread: HashSet::new() };
    let mut failures = 0;
    for root in roots.into_iter().take(most) {
        if failures == MAX_FAILURES && !place.is_last {
            found.unread.insert(root);
            continue;
        }
        match read(web, &thread_of(place, &root)).await {
            Ok((mut replies, is_all)) => {
                // Its first message is part of the conversation.
                replies.retain(|reply| text(reply, "ts") != root);
                found.is_whole &= is_all;
                found.threads.insert(root, replies);
                failures = 0;
            }
            // It was deleted meanwhile.
            Err(failure) if failure.is_about_the_thread() => {}
            Err(failure) if failure.was_not_made() || failure.is_about_the_app() => return Err(failure),
            Err(failure) => {
                tracing::warn!(channel = place.channel, %failure, "cannot read what was missed in a thread");
                found.unread.insert(root);
                failures += 1;
            }
        }
    }
    Ok(found)
}

/// Returns the threads in which something was written since and that are not read on their own, those with the newest
/// replies first.
fn threads_to_read(found: &[Map<String, Value>], place: &BackfillRequest) -> Vec<String> {
    let is_new = |latest: &str| latest > place.after.as_str();
    let is_apart = |root: &str| place.read_apart.iter().any(|thread| thread == root);
    let mut threads: Vec<(&str, &str)> = found
        .iter()
        .map(|message| (text(message, "latest_reply"), text(message, "ts")))
        .filter(|(latest, root)| is_new(latest) && !is_apart(root))
        .collect();
    threads.sort_unstable();
    threads.into_iter().rev().map(|(_, root)| root.to_owned()).collect()
}

fn thread_of(place: &BackfillRequest, root: &str) -> BackfillRequest {
    BackfillRequest { thread_ts: Some(root.to_owned()), read_apart: Vec::new(), ..place.clone() }
}

/// Returns the `ts` after which the messages are read that may begin a thread.
fn roots_after(after: &str) -> String {
    let seconds = after.split_once('.').and_then(|(seconds, _)| seconds.parse::<u64>().ok());
    match seconds {
        Some(seconds) => format!("{}.000000", seconds.saturating_sub(ROOTS_BEFORE_S)),
        None => after.to_owned(),
    }
}

/// Returns what was written there since, and whether that is all of it.
async fn read(web: &Web, place: &BackfillRequest) -> Result<(Vec<Map<String, Value>>, bool), CallFailure> {
    let mut found = Vec::new();
    let mut cursor: Option<String> = None;
    let most = if place.thread_ts.is_some() { MAX_PAGES } else { MAX_PAGES_OF_PLACE };
    for _ in 0..most {
        let page = page(web, place, cursor.as_deref()).await?;
        found.extend(page.messages);
        cursor = Cursor::next(page.response_metadata);
        if cursor.is_none() {
            break;
        }
    }
    Ok((found, cursor.is_none()))
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
fn open(
    mut found: Vec<Map<String, Value>>,
    threads: &Threads,
    me: &Identity,
    places: Places,
    place: &BackfillRequest,
) -> Past {
    // Slack returns a channel newest first, a thread oldest first.
    found.sort_by(|one, other| text(one, "ts").cmp(text(other, "ts")));
    let all = found.iter().chain(threads.values().flatten());
    let answered: HashSet<&str> = all.filter(|message| is_by(me, message)).flat_map(history::answered_by).collect();
    let mut past = Past::default();
    for (at, message) in found.iter().enumerate() {
        // The first message of a thread is returned, however old it is.
        if text(message, "ts") <= place.after.as_str() {
            continue;
        }
        if is_judged_in_its_thread(message, threads, place) {
            continue;
        }
        let answered = match answered.contains(text(message, "ts")) {
            true => Some(AnsweredBy::Bot),
            false => {
                let below = threads.get(text(message, "ts")).map(Vec::as_slice);
                let later = Later { there: &found[at + 1..], below };
                is_answered_by_others(message, later, (place, me)).then_some(AnsweredBy::Others)
            }
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

/// Returns whether a message was said in a thread that is read, too, and is only shown in its channel.
fn is_judged_in_its_thread(message: &Map<String, Value>, threads: &Threads, place: &BackfillRequest) -> bool {
    let thread = text(message, "thread_ts");
    let is_apart = || place.thread_ts.is_none() && place.read_apart.iter().any(|apart| apart == thread);
    thread != text(message, "ts") && (threads.contains_key(thread) || is_apart())
}

/// What was written after a message.
struct Later<'a> {
    /// In the same place.
    there: &'a [Map<String, Value>],
    /// In the thread that it begins, if that was read with it.
    below: Option<&'a [Map<String, Value>]>,
}

/// Returns whether somebody else has answered the message. In a direct message that could only be the bot, whose answers
/// say what they answer. Who asks the bot answers nobody.
fn is_answered_by_others(
    message: &Map<String, Value>,
    later: Later<'_>,
    (place, me): (&BackfillRequest, &Identity),
) -> bool {
    if place.channel.starts_with('D') {
        return false;
    }
    let asker = text(message, "user");
    let is_answer = |reply: &Map<String, Value>| {
        text(reply, "user") != asker && !is_by(me, reply) && !mrkdwn::is_mentioned(text(reply, "text"), &me.user)
    };
    if place.thread_ts.is_some() {
        return later.there.iter().any(is_answer);
    }
    let is_answered_below = match later.below {
        Some(replies) => replies.iter().any(is_answer),
        None => {
            let repliers = message.get("reply_users").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let mut repliers = repliers.iter().filter_map(Value::as_str);
            // The bot is among them by either of its ids.
            repliers.any(|user| user != asker && !me.wrote(Some(user), Some(user)))
        }
    };
    let names_asker = |other: &Map<String, Value>| is_answer(other) && mrkdwn::is_mentioned(text(other, "text"), asker);
    is_answered_below || later.there.iter().any(names_asker)
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

    fn asked(channel: &str, thread: Option<&str>) -> BackfillRequest {
        BackfillRequest {
            channel: channel.into(),
            thread_ts: thread.map(str::to_owned),
            after: "100.000000".into(),
            read_apart: Vec::new(),
            most_threads: MAX_THREADS,
            is_last: false,
        }
    }

    fn past_of(channel: &str, thread: Option<&str>, places: Places, messages: Vec<Value>) -> Past {
        let place = asked(channel, thread);
        open(objects(messages), &Threads::new(), &me(), places, &place)
    }

    fn objects(messages: Vec<Value>) -> Vec<Map<String, Value>> {
        messages.into_iter().filter_map(|message| message.as_object().cloned()).collect()
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
        // Regression: what the bot itself had written there counted as an answer.
        let mut own_thread = said("U4", "104.000000", "<@UBOT> only the asker and the bot wrote there");
        own_thread["reply_users"] = json!(["U4", "UBOT"]);
        let messages = vec![
            said("U1", "101.000000", "talk"),
            said("U1", "102.000000", "<@UBOT> answered by name"),
            in_thread,
            own_thread,
            said("U2", "105.000000", "<@U1> it is Friday"),
            said("U3", "106.000000", "<@UBOT> and when is lunch?"),
        ];
        let texts: Vec<String> = open_at("C1", messages).into_iter().map(|(_, text)| text).collect();
        assert_eq!(texts, ["only the asker and the bot wrote there", "and when is lunch?"]);
    }

    /// Regression: whoever asked the bot about somebody who had asked it before seemed to have answered them, and so
    /// did the bot by whatever it wrote to them.
    #[test]
    fn a_question_about_who_had_asked_another_answered_that_one() {
        let asked = said("U1", "101.000000", "<@UBOT> Q1?");
        let texts = |other: Value| -> Vec<String> {
            open_at("C1", vec![asked.clone(), other]).into_iter().map(|(_, text)| text).collect()
        };
        assert_eq!(texts(said("U2", "102.000000", "<@UBOT> who stands in for <@U1>?")).len(), 2);
        assert_eq!(texts(said("UBOT", "102.000000", "<@U1> about something else")), ["Q1?"]);
        assert_eq!(texts(said("U2", "102.000000", "<@U1> it is Friday")), [] as [&str; 0]);
    }

    /// Regression: who asked the bot something in the thread of a question seemed to have answered it.
    #[test]
    fn a_question_in_the_thread_of_another_answered_that_one() {
        let root = said("U1", "101.000000", "<@UBOT> Q1?");
        let place = asked("C1", None);
        let is_open = |reply: Value| {
            let threads = Threads::from([("101.000000".to_owned(), objects(vec![reply]))]);
            let past = open(objects(vec![root.clone()]), &threads, &me(), Places::default(), &place);
            !past.messages.is_empty()
        };
        assert!(is_open(said("U2", "102.000000", "<@UBOT> and Q2?")));
        assert!(is_open(said("U1", "102.000000", "nobody?")) && is_open(said("UBOT", "102.000000", "to Q2")));
        assert!(!is_open(said("U2", "102.000000", "yes")));
        let mut answer = said("UBOT", "102.000000", "to Q1");
        answer["metadata"] = json!({"event_type": "pmk_host_part", "event_payload": {"answers": "101.000000"}});
        assert!(!is_open(answer), "the bot has answered it there");
    }

    /// Regression: a reply that was also shown in its channel was judged there, too, without what followed in its thread.
    #[test]
    fn a_reply_that_its_channel_shows_too_was_judged_twice() {
        let mut shown = said("U1", "101.000000", "<@UBOT> and this?");
        (shown["thread_ts"], shown["subtype"]) = (json!("050.000000"), json!("thread_broadcast"));
        let place = asked("C1", None);
        let apart = BackfillRequest { read_apart: vec!["050.000000".into()], ..place.clone() };
        let count = |threads: &Threads, place: &BackfillRequest| {
            let past = open(objects(vec![shown.clone()]), threads, &me(), Places::default(), place);
            past.messages.len() + past.in_threads.len()
        };
        assert_eq!(count(&Threads::new(), &place), 1, "its thread is not read");
        assert_eq!(count(&Threads::from([("050.000000".to_owned(), vec![])]), &place), 0);
        assert_eq!(count(&Threads::new(), &apart), 0);
        let itself = BackfillRequest { thread_ts: Some("050.000000".into()), ..apart };
        assert_eq!(count(&Threads::new(), &itself), 1, "it is that thread");
    }

    #[test]
    fn threads_with_news_are_read_the_newest_first_and_none_twice() {
        let began = |ts: &str, latest: &str| {
            let mut said = said("U1", ts, "a topic");
            said["latest_reply"] = json!(latest);
            said
        };
        let found = objects(vec![
            began("050.000000", "101.000000"),
            began("060.000000", "099.000000"),
            began("070.000000", "103.000000"),
            began("080.000000", "102.000000"),
            said("U1", "105.000000", "no thread"),
        ]);
        let place = BackfillRequest { read_apart: vec!["080.000000".into()], ..asked("C1", None) };
        assert_eq!(threads_to_read(&found, &place), ["070.000000", "050.000000"]);
        assert_eq!(roots_after("1700086400.000100"), "1700000000.000000");
        assert_eq!(roots_after("1.0"), "0.000000");
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
