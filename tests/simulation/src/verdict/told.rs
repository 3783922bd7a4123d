//! Checks what people are told of the gateway's end and return.

use std::collections::BTreeMap;

use pmk_host::front::Kind;
use serde_json::Value;

use super::Verdict;
use crate::scenario::What;

/// The minimum time between two such messages to the same place, in milliseconds.
const PEACE: u64 = 60 * 60 * 1_000;

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

fn is_of_presence(text: &str) -> bool {
    text.contains(":wave:") || text.contains(":zzz:")
}
