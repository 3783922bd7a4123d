//! Finds messages that were already posted, and which questions they answer. A post has no idempotency key; instead,
//! Slack's message metadata is used, which people do not see and the history keeps.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use slack_morphism::prelude::SlackMessageMetadata;

use super::{
    failure::CallFailure,
    identity::Identity,
    web::{Slot, Web},
};
use crate::{chat::ReplyTo, front::Lookup};

/// The type of the metadata; Slack wants one per app.
const EVENT_TYPE: &str = "pmk_host_part";
/// The largest page that Slack recommends.
const PAGE: &str = "200";
/// A conversation with more pages since then is not read to its end.
const MAX_PAGES: usize = 10;

/// The key of the timestamps of the messages that are answered with a part. It does not identify the part.
const ANSWERS: &str = "answers";
/// How many timestamps a tag has room for.
const MAX_ANSWERS: usize = 100;

/// Returns the tag of one part of an answer, with which these messages are answered.
pub(super) fn tag(event_id: &str, part: &str, answers: &[String]) -> SlackMessageMetadata {
    let newest = &answers[answers.len().saturating_sub(MAX_ANSWERS)..];
    let answers = Some(newest.join(" ")).filter(|answers| !answers.is_empty());
    let identity = [("event_id", event_id.to_owned()), ("part", part.to_owned())];
    let payload = identity.into_iter().chain(answers.map(|answers| (ANSWERS, answers)));
    let payload = payload.map(|(key, value)| (key.to_owned(), value)).collect();
    SlackMessageMetadata { event_type: EVENT_TYPE.to_owned(), event_payload: Some(payload) }
}

/// Returns the timestamps of the messages that this one of the bot answers.
pub(super) fn answered_by(message: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let metadata = message.get("metadata").filter(|metadata| metadata["event_type"] == EVENT_TYPE);
    let answers = metadata.and_then(|metadata| metadata["event_payload"][ANSWERS].as_str());
    answers.unwrap_or_default().split_whitespace()
}

/// The value of `part` in the tag of a piece, and the key of the piece's print.
const PIECE: &str = "piece";

/// Returns the tag of one piece, by its number and text, of a part that was not sent as one
/// message.
pub(super) fn piece_tag(part: &SlackMessageMetadata, number: usize, text: &str) -> SlackMessageMetadata {
    let mut tag = part.clone();
    let payload = tag.event_payload.get_or_insert_default();
    let of = payload.insert("part".to_owned(), PIECE.to_owned()).unwrap_or_default();
    payload.remove(ANSWERS);
    payload.extend([("of".to_owned(), of), (PIECE.to_owned(), print(number, text))]);
    tag
}

/// Returns a print that distinguishes a piece from others, and from other text at the same
/// position.
pub(super) fn print(number: usize, text: &str) -> String {
    let digest = Sha256::digest(text);
    let short = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect::<String>();
    format!("{number}-{short}")
}

/// The relevant fields of a message in the history. Only the bot's own are asked what they are.
#[derive(Deserialize)]
pub(super) struct Past {
    ts: String,
    /// The author,
    user: Option<String>,
    /// and its app, if it is a bot.
    bot_id: Option<String>,
    metadata: Option<Metadata>,
    #[serde(default)]
    files: Vec<File>,
}

/// The metadata of other apps may contain anything.
#[derive(Deserialize)]
struct Metadata {
    event_type: Option<String>,
    #[serde(default)]
    event_payload: HashMap<String, Value>,
}

#[derive(Deserialize)]
struct File {
    name: Option<String>,
}

impl Past {
    /// Returns the piece, if it is a piece of the part with this tag.
    pub(super) fn piece_of(&self, tag: &SlackMessageMetadata) -> Option<Piece> {
        let Metadata { event_type, event_payload } = self.metadata.as_ref()?;
        let (word, wanted) = (|key: &str| event_payload.get(key)?.as_str(), tag.event_payload.as_ref()?);
        let is_it = event_type.as_ref() == Some(&tag.event_type)
            && word("part") == Some(PIECE)
            && word("of") == wanted.get("part").map(String::as_str)
            && word("event_id") == wanted.get("event_id").map(String::as_str);
        let print = word(PIECE).filter(|_| is_it)?.to_owned();
        Some(Piece { print, ts: self.ts.clone() })
    }

    /// Returns whether it has this tag.
    pub(super) fn has(&self, tag: &SlackMessageMetadata) -> bool {
        let Some(metadata) = &self.metadata else { return false };
        let wanted = tag.event_payload.iter().flatten().filter(|(key, _)| *key != ANSWERS);
        metadata.event_type.as_ref() == Some(&tag.event_type)
            && wanted
                .into_iter()
                .all(|(key, value)| metadata.event_payload.get(key).and_then(Value::as_str) == Some(value))
    }

    /// Returns the message id, if it was posted after `after` and there was no time to tag it.
    pub(super) fn unfinished(&self, after: &str) -> Option<&str> {
        let is_it = self.ts.as_str() > after && self.metadata.is_none() && self.files.is_empty();
        is_it.then_some(&*self.ts)
    }

    /// Returns whether a file of this name came with it.
    pub(super) fn has_file(&self, name: &str) -> bool {
        self.files.iter().any(|file| file.name.as_deref() == Some(name))
    }
}

/// A piece that was posted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) print: String,
    pub(super) ts: String,
}

#[derive(Deserialize)]
struct Page {
    messages: Vec<Past>,
    response_metadata: Option<Cursor>,
}

#[derive(Deserialize)]
struct Cursor {
    next_cursor: Option<String>,
}

/// Returns such a message of the bot that is [untagged](Past::unfinished): a stream that was never closed.
pub(super) async fn unfinished(
    web: &Web,
    me: &Identity,
    place: &ReplyTo,
    after: &str,
    is_it: impl FnMut(&Past) -> bool + Send,
) -> Result<Option<String>, CallFailure> {
    match find(web, me, place, after, is_it).await {
        Ok(Lookup::Yes(ts)) => Ok(ts),
        Ok(Lookup::No | Lookup::Unknown) => Ok(None),
        Err(failure) if failure.hides_the_past() => {
            tracing::warn!(%failure, "cannot check whether a part of a reply was already posted");
            Ok(None)
        }
        Err(failure) => Err(failure),
    }
}

/// Searches for a message of the bot's own among those after `after`, in the thread or conversation. `is_it` is called
/// for each of them in the pages that are read.
pub(super) async fn find(
    web: &Web,
    me: &Identity,
    place: &ReplyTo,
    after: &str,
    mut is_it: impl FnMut(&Past) -> bool + Send,
) -> Result<Lookup, CallFailure> {
    let (method, thread_ts) = match &place.thread_ts {
        Some(thread_ts) => ("conversations.replies", Some(thread_ts.as_str())),
        None => ("conversations.history", None),
    };
    let mut cursor: Option<String> = None;
    for _ in 0..MAX_PAGES {
        let parameters = [
            ("channel", Some(place.channel.as_str())),
            ("ts", thread_ts),
            ("oldest", Some(after).filter(|after| !after.is_empty())),
            ("limit", Some(PAGE)),
            ("include_all_metadata", Some("true")),
            ("cursor", cursor.as_deref()),
        ];
        let page: Page = web.read(&Slot::answer(method), &parameters).await?;
        let mut found = None;
        for past in page.messages {
            let is_mine = me.wrote(past.user.as_deref(), past.bot_id.as_deref());
            if is_mine && is_it(&past) && found.is_none() {
                found = Some(past.ts);
            }
        }
        if found.is_some() {
            return Ok(Lookup::Yes(found));
        }
        cursor = page.response_metadata.and_then(|cursor| cursor.next_cursor).filter(|cursor| !cursor.is_empty());
        if cursor.is_none() {
            return Ok(Lookup::No);
        }
    }
    Ok(Lookup::Unknown)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Regression: what another app had marked like a part, or a person had named like its file, was taken for it.
    #[test]
    fn a_message_of_somebody_elses_stood_for_an_answer() {
        let me = Identity::of_a_bot();
        let tag = tag("Ev1", "0", &[]);
        let is_mine = |user: Option<&str>, bot: Option<&str>| {
            let past = json!({"ts": "1.0", "user": user, "bot_id": bot, "metadata": tag});
            let past: Past = serde_json::from_value(past).expect("a message");
            assert!(past.has(&tag), "it says so");
            me.wrote(past.user.as_deref(), past.bot_id.as_deref())
        };
        assert!(is_mine(Some("UBOT"), Some("BBOT")) && is_mine(None, Some("BBOT")) && is_mine(Some("UBOT"), None));
        assert!(!is_mine(Some("U2"), Some("B2")) && !is_mine(None, Some("B2")) && !is_mine(Some("U1"), None));
        assert!(!is_mine(None, None));
        let nameless = Identity { bot: None, ..me };
        assert!(nameless.wrote(Some("UBOT"), Some("BBOT")) && !nameless.wrote(None, None));
    }
}
