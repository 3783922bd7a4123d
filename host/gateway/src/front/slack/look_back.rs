//! Reading back what people wrote while nobody listened, by `conversations.history` and `conversations.replies`.
//!
//! Both are of Slack's tier 3, some fifty calls a minute, so they are paced, and what Slack puts off waits. Of what is
//! found there only that counts which an event would have brought: everything of a person in a direct message, mentions
//! elsewhere. What somebody has answered since is not asked any more.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::time::{Instant, sleep, sleep_until};

use super::{
    failure::{CallFailure, Cause},
    inbound, mrkdwn,
    web::{Identity, Web},
};
use crate::{
    front::{LookBack, Past},
    talk::Inbound,
};

/// The most that Slack recommends a page.
pub(super) const PAGE: &str = "200";

/// A conversation in which more than this was said is not read to its end.
const MAX_PAGES: usize = 10;

/// How often a page is asked for that Slack puts off.
const MAX_WAITS: usize = 5;

/// How long it waits where Slack does not say.
const DEFAULT_WAIT: Duration = Duration::from_secs(30);

/// Lets so much time pass between two calls.
pub(super) struct Pace {
    gap: Duration,
    next: Mutex<Option<Instant>>,
}

impl Pace {
    pub(super) fn new(gap: Duration) -> Self {
        Pace { gap, next: Mutex::default() }
    }

    /// Waits until it is this call's turn.
    async fn turn(&self) {
        let at = {
            let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
            let at = next.map_or_else(Instant::now, |next| next.max(Instant::now()));
            *next = Some(at + self.gap);
            at
        };
        sleep_until(at).await;
    }
}

#[derive(Deserialize)]
struct Page {
    messages: Vec<Map<String, Value>>,
    response_metadata: Option<Cursor>,
}

/// Where the next page begins.
#[derive(Deserialize)]
pub(super) struct Cursor {
    next_cursor: Option<String>,
}

impl Cursor {
    /// None after the last page.
    pub(super) fn next(cursor: Option<Cursor>) -> Option<String> {
        cursor.and_then(|cursor| cursor.next_cursor).filter(|cursor| !cursor.is_empty())
    }
}

/// What is still to be answered at a place.
pub(super) async fn look_back(web: &Web, me: &Identity, pace: &Pace, place: &LookBack) -> Result<Past, CallFailure> {
    let mut found = Vec::new();
    let mut cursor: Option<String> = None;
    let mut is_whole = false;
    for _ in 0..MAX_PAGES {
        let page = page(web, pace, place, cursor.as_deref()).await?;
        found.extend(page.messages);
        cursor = Cursor::next(page.response_metadata);
        if cursor.is_none() {
            is_whole = true;
            break;
        }
    }
    Ok(Past { messages: open(found, me, place), is_whole })
}

async fn page(web: &Web, pace: &Pace, place: &LookBack, cursor: Option<&str>) -> Result<Page, CallFailure> {
    let (method, thread_ts) = match &place.thread_ts {
        Some(thread_ts) => ("conversations.replies", Some(thread_ts.as_str())),
        None => ("conversations.history", None),
    };
    let parameters = [
        ("channel", Some(place.channel.as_str())),
        ("ts", thread_ts),
        ("oldest", Some(place.after.as_str())),
        ("limit", Some(PAGE)),
        ("cursor", cursor),
    ];
    let mut waits = 0;
    loop {
        pace.turn().await;
        match web.read(method, &parameters).await {
            Err(CallFailure { cause: Cause::RateLimited { retry_after }, .. }) if waits < MAX_WAITS => {
                waits += 1;
                sleep(retry_after.unwrap_or(DEFAULT_WAIT)).await;
            }
            page => return page,
        }
    }
}

/// What of it is for the bot and unanswered, the oldest first.
fn open(mut found: Vec<Map<String, Value>>, me: &Identity, place: &LookBack) -> Vec<Inbound> {
    // Slack gives a channel from its end, a thread from its beginning.
    found.sort_by(|one, other| text(one, "ts").cmp(text(other, "ts")));
    let mut open = Vec::new();
    for (at, message) in found.iter().enumerate() {
        // The beginning of a thread is given with it, however old.
        if text(message, "ts") <= place.after.as_str() || is_answered(message, &found[at + 1..], place) {
            continue;
        }
        open.extend(inbound::of_past(message.clone(), &place.channel, me));
    }
    open
}

/// Whether somebody else has answered it. In a direct message that is the bot, which has not heard of it.
fn is_answered(message: &Map<String, Value>, later: &[Map<String, Value>], place: &LookBack) -> bool {
    if place.channel.starts_with('D') {
        return false;
    }
    let asker = text(message, "user");
    if place.thread_ts.is_some() {
        return later.iter().any(|reply| text(reply, "user") != asker);
    }
    let repliers = message.get("reply_users").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    repliers.iter().filter_map(Value::as_str).any(|user| user != asker)
        || later.iter().any(|other| text(other, "user") != asker && mrkdwn::is_mentioned(text(other, "text"), asker))
}

fn text<'a>(message: &'a Map<String, Value>, key: &str) -> &'a str {
    message.get(key).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn me() -> Identity {
        Identity {
            user: "UBOT".into(),
            bot: Some("BBOT".into()),
            name: "pmk".into(),
            team: "Acme".into(),
            team_id: "T1".into(),
        }
    }

    fn said(user: &str, ts: &str, text: &str) -> Value {
        json!({"type": "message", "user": user, "ts": ts, "text": text})
    }

    fn open_at(channel: &str, thread: Option<&str>, messages: Vec<Value>) -> Vec<(String, String)> {
        let place =
            LookBack { channel: channel.into(), thread_ts: thread.map(str::to_owned), after: "100.000000".into() };
        let messages = messages.into_iter().filter_map(|message| message.as_object().cloned()).collect();
        open(messages, &me(), &place).into_iter().map(|message| (message.ts, message.text)).collect()
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
        assert_eq!(open_at("D1", None, messages), expected);
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
        let texts: Vec<String> = open_at("C1", None, messages).into_iter().map(|(_, text)| text).collect();
        assert_eq!(texts, ["only the asker wrote there", "and when is lunch?"]);
    }

    #[test]
    fn in_a_thread_a_later_word_of_somebody_else_is_an_answer() {
        let parent = said("U1", "099.000000", "<@UBOT> old");
        let thread = |last: Value| vec![parent.clone(), said("U1", "101.000000", "<@UBOT> well?"), last];
        assert!(open_at("C1", Some("099.000000"), thread(said("U2", "102.000000", "yes"))).is_empty());
        let open = open_at("C1", Some("099.000000"), thread(said("U1", "102.000000", "nobody?")));
        assert_eq!(open, [("101.000000".to_owned(), "well?".to_owned())]);
    }

    #[tokio::test(start_paused = true)]
    async fn calls_are_paced() {
        let (pace, begun) = (Pace::new(Duration::from_millis(1_300)), Instant::now());
        for _ in 0..3 {
            pace.turn().await;
        }
        assert_eq!(begun.elapsed(), Duration::from_millis(2_600), "the first goes at once");
        sleep(Duration::from_secs(60)).await;
        let quiet = Instant::now();
        pace.turn().await;
        assert_eq!(quiet.elapsed(), Duration::ZERO);
    }
}
