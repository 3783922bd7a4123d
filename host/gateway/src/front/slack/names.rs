//! The names of people. Slack's messages have only their ids, so each is asked about once, and the name is kept for a
//! day.
//!
//! A name is for the model to read, beside the id. It is whatever its owner has written, so only letters, digits and a
//! few marks of it are kept. No answer waits long for one: without the scope, or if Slack does not say, the id stands
//! alone.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::future::join_all;
use serde::Deserialize;
use tokio::time::Instant;

use super::{
    limiter::Priority,
    web::{Slot, Web},
};
use crate::{chat::ThreadPost, slack_id::Id};

/// How long a name is kept, how long it is remembered that Slack tells none, and when Slack is asked again that has not
/// answered.
const KEPT_FOR: Duration = Duration::from_secs(24 * 60 * 60);
const UNTOLD_FOR: Duration = Duration::from_secs(60 * 60);
const AGAIN_AFTER: Duration = Duration::from_secs(60);

/// Above this number, all are forgotten.
const MAX_KNOWN: usize = 10_000;

/// How many people are asked about for one text or thread, and how long that may take.
const MAX_ASKED: usize = 20;
const WITHIN: Duration = Duration::from_secs(2);

/// The most characters of a name.
const MAX_CHARS: usize = 40;

/// The names that are known.
#[derive(Debug, Default)]
pub(super) struct Names(Mutex<HashMap<String, Known>>);

#[derive(Debug)]
struct Known {
    /// `None`: Slack tells none, or has not answered.
    name: Option<String>,
    /// When Slack is asked again.
    until: Instant,
}

/// What is read of the response to `users.info`.
#[derive(Deserialize)]
struct Info {
    user: Person,
}

#[derive(Deserialize)]
struct Person {
    #[serde(default)]
    profile: Profile,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Profile {
    display_name: Option<String>,
    real_name: Option<String>,
}

impl Names {
    /// Returns a readable text with a name at each id that it mentions.
    pub async fn in_text(&self, web: &Web, text: String) -> String {
        self.learn(web, mentioned(&text).collect()).await;
        self.named(&text)
    }

    /// Writes the names into what was said in a thread, and beside who said it.
    pub async fn in_thread(&self, web: &Web, said: &mut [ThreadPost]) {
        let people = said.iter().flat_map(|one| mentioned(&one.text).chain([one.by.as_str()])).collect();
        self.learn(web, people).await;
        for one in said {
            one.text = self.named(&one.text);
            if let Some(name) = self.name(&one.by) {
                one.by = format!("{name} ({})", one.by);
            }
        }
    }

    async fn learn(&self, web: &Web, people: BTreeSet<&str>) {
        let unknown = people.into_iter().filter(|id| is_id(id) && self.is_to_be_asked(id)).take(MAX_ASKED);
        let asking: Vec<_> = unknown.map(|person| self.ask(web, person)).collect();
        if tokio::time::timeout(WITHIN, join_all(asking)).await.is_err() {
            tracing::debug!("Slack does not tell people's names in time");
        }
    }

    async fn ask(&self, web: &Web, person: &str) {
        let slot = Slot::of("users.info", Priority::Progress);
        let name = match web.read::<Info>(&slot, &[("user", Some(person))]).await {
            Ok(Info { user: Person { profile } }) => {
                let names = [profile.display_name, profile.real_name].into_iter().flatten();
                names.map(|name| plain(&name)).find(|name| !name.is_empty())
            }
            Err(failure) => {
                tracing::debug!(%failure, "somebody's name is not known");
                if failure.code().is_none() {
                    return;
                }
                None
            }
        };
        let until = Instant::now() + if name.is_some() { KEPT_FOR } else { UNTOLD_FOR };
        self.known().insert(person.to_owned(), Known { name, until });
    }

    /// Returns whether to ask about somebody now. Then nobody else does for a while.
    fn is_to_be_asked(&self, id: &str) -> bool {
        let (mut known, now) = (self.known(), Instant::now());
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        let known = known.entry(id.to_owned()).or_insert(Known { name: None, until: now });
        let is_due = known.until <= now;
        if is_due {
            known.until = now + AGAIN_AFTER;
        }
        is_due
    }

    fn name(&self, id: &str) -> Option<String> {
        self.known().get(id)?.name.clone()
    }

    fn named(&self, text: &str) -> String {
        let mut named = String::with_capacity(text.len());
        let mut written = 0;
        for id in mentioned(text) {
            let Some(name) = self.name(id) else { continue };
            let at = id.as_ptr() as usize - text.as_ptr() as usize;
            named.extend([&text[written..at], &name, " (", id, ")"]);
            written = at + id.len();
        }
        named + &text[written..]
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the ids of people that a readable text mentions: `@U1`.
fn mentioned(text: &str) -> impl Iterator<Item = &str> {
    let is_of_an_id = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices('@').filter_map(move |(at, sign)| {
        let after = &text[at + sign.len()..];
        let id = &after[..after.find(|c| !is_of_an_id(c)).unwrap_or(after.len())];
        // An address of mail is none.
        (!text[..at].ends_with(is_of_an_id) && is_id(id)).then_some(id)
    })
}

/// Whether this may be the id of a person in Slack.
fn is_id(text: &str) -> bool {
    Id::user(text).is_ok() && !text.contains(|c: char| c.is_ascii_lowercase())
}

/// Returns what is kept of a name; nothing of a word that could be somebody's id.
fn plain(name: &str) -> String {
    let kept = |c: char| if c.is_alphanumeric() || "-'’.".contains(c) { c } else { ' ' };
    let name: String = name.chars().map(kept).take(MAX_CHARS).collect();
    name.split_whitespace().filter(|word| !is_id(word)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_mentioned_is_found_wherever_it_stands() {
        let found = |text| mentioned(text).collect::<Vec<_>>();
        assert_eq!(found("@U1, ask @U0XYZ:@W2"), ["U1", "U0XYZ", "W2"]);
        assert_eq!(found("請問@U1說了什麼"), ["U1"]);
        assert_eq!(found("x@U1.example @channel @Uwe @ U1 @Ann (U1) @U @C1"), [] as [&str; 0]);
    }

    #[test]
    fn a_name_stands_beside_its_id() {
        let names = Names::default();
        let until = Instant::now() + KEPT_FOR;
        names.known().insert("U1".into(), Known { name: Some("安 Lee".into()), until });
        names.known().insert("U2".into(), Known { name: None, until });
        let text = "@U1 and @U2, or @U12: x@U1.example, 問 @U1";
        let named = "@安 Lee (U1) and @U2, or @U12: x@U1.example, 問 @安 Lee (U1)";
        assert_eq!((names.named(text).as_str(), names.named(named).as_str()), (named, named));
    }

    #[test]
    fn nothing_but_a_name_is_kept_of_a_name() {
        for (name, kept) in [
            ("Ann-Marie O'Neil Jr.", "Ann-Marie O'Neil Jr."),
            ("  王小明 | 財務 ", "王小明 財務"),
            ("x`](https://a.b)\n> **you**: \u{202e}<@U9>\u{1b}[2J", "x https a.b you 2J"),
            ("🎉", ""),
            ("U0CEO1234", ""),
        ] {
            assert_eq!(plain(name), kept);
        }
        assert_eq!(plain(&"a".repeat(99)).len(), MAX_CHARS);
    }
}
