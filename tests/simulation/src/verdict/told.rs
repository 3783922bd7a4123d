//! Checks what people are told of the gateway's end and return, and of what is parked.

use std::collections::BTreeMap;

use pmk_core::Language;
use pmk_host::{front::Kind, messages::Messages};
use serde_json::Value;

use super::Verdict;
use crate::{
    scenario::What,
    slack::{Known, Post, number},
};

/// The minimum time between two such messages to the same place, in milliseconds: an hour between the decisions to tell,
/// of which the first may take half a minute longer to arrive.
const PEACE: u64 = (60 * 60 - 30) * 1_000;

impl Verdict<'_> {
    /// A place must be told at most once an hour, and each start must be recorded.
    pub(super) fn judge_presence(&self, lines: &[Value], breaches: &mut Vec<String>) {
        let is_set = self.world.scenario.events.iter().any(|event| matches!(event.what, What::Clock { .. }));
        if !self.world.scenario.setting.presence || is_set {
            return;
        }
        let mut told: BTreeMap<&str, u64> = BTreeMap::new();
        for post in &self.posts {
            // Notices to admins are of another kind.
            let is_broadcast = post.tag.kind == Kind::Notice && post.tag.event_id.is_empty();
            if !is_broadcast || post.place.channel == "DADMIN" || !is_of_presence(&post.text) {
                continue;
            }
            let last = told.insert(&post.place.channel, post.posted_at);
            if last.is_some_and(|last| post.posted_at < last + PEACE) {
                breaches.push(format!("{} was told twice within an hour", post.place.channel));
            }
        }
        let count = |name: &str| lines.iter().filter(|line| line["type"] == name).count();
        let (online, offline) = (count("gateway.online"), count("gateway.offline"));
        if offline > online {
            breaches.push(format!("the gateway went {offline} times and came {online} times"));
        }
    }
}

impl Verdict<'_> {
    /// Who asked must be told in a place once that a question is parked, and once more if it was taken up again, or was
    /// deleted, which closes it.
    pub(super) fn judge_notices(&self, lines: &[Value], breaches: &mut Vec<String>) {
        let messages = Messages::new(Language::of_locale(self.world.scenario.setting.language));
        let words = [true, false].map(|admins_know| messages.parked(admins_know));
        let is_notice = |post: &&Post| {
            let is_seen = post.is_there() && post.known == Known::ToWhoeverLooks;
            is_seen && post.shows.kind == Kind::Notice && words.iter().any(|words| post.text.ends_with(words))
        };
        let mut told: BTreeMap<(usize, &str), usize> = BTreeMap::new();
        for post in self.posts.iter().filter(is_notice) {
            if let Some(number) = number(&post.shows.event_id) {
                *told.entry((number, &post.place.channel)).or_default() += 1;
            }
        }
        for ((number, channel), times) in told {
            let Some(question) = self.questions.iter().find(|question| question.number == number) else { continue };
            let key = question.inbound.key.to_string();
            let is_of_it = |line: &&Value| line["session"].is_null() || line["session"] == *key;
            let retried = lines.iter().filter(|line| line["type"] == "turn.retried").filter(is_of_it).count();
            if times > 1 + retried + usize::from(question.is_deleted) {
                breaches.push(format!("{channel} was told {times} times that q{number} is parked"));
            }
        }
    }
}

fn is_of_presence(text: &str) -> bool {
    text.contains(":wave:") || text.contains(":zzz:")
}
