//! Rate limits, and 429 beyond them.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::Value;

/// Slack's rate limits.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Tier 3: this many `chat.update` calls per minute in the whole workspace.
    pub updates_a_minute: usize,
    /// This many posts at once in one channel, and then one per second.
    pub post_burst: usize,
    /// Tier 3: this many pages per minute of one method that reads conversations.
    pub pages_a_minute: usize,
    /// This many statuses per minute in the whole workspace; Slack calls this limit special, and documents no number.
    pub statuses_a_minute: usize,
    /// Tiers 2 and 4: this many streams started and stopped per minute, and this many pieces appended.
    pub streams_a_minute: usize,
    pub pieces_a_minute: usize,
    /// Tiers 3 and 4 of every other method: this many calls of one method per minute.
    pub tier_3: usize,
    pub tier_4: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            updates_a_minute: 50,
            post_burst: 5,
            pages_a_minute: 50,
            statuses_a_minute: 100,
            streams_a_minute: 20,
            pieces_a_minute: 100,
            tier_3: 50,
            tier_4: 100,
        }
    }
}

/// The recent calls.
#[derive(Default)]
pub(super) struct Traffic {
    updates: VecDeque<Instant>,
    statuses: VecDeque<Instant>,
    methods: HashMap<String, VecDeque<Instant>>,
    posts: HashMap<String, VecDeque<Instant>>,
}

impl Traffic {
    /// Counts a call; returns the wait before the next one if there have been too many.
    pub(super) fn call(&mut self, method: &str, channel: &str, limits: &Limits) -> Result<(), Duration> {
        match method {
            "chat.update" => take(&mut self.updates, limits.updates_a_minute, Duration::from_secs(60)),
            "assistant.threads.setStatus" => {
                take(&mut self.statuses, limits.statuses_a_minute, Duration::from_secs(60))
            }
            "chat.postMessage" => {
                let burst = u32::try_from(limits.post_burst).unwrap_or(u32::MAX);
                let posts = self.posts.entry(channel.to_owned()).or_default();
                take(posts, limits.post_burst, Duration::from_secs(1).saturating_mul(burst))
            }
            "conversations.history" | "conversations.replies" => self.minute(method, limits.pages_a_minute),
            "chat.startStream" | "chat.stopStream" => self.minute(method, limits.streams_a_minute),
            "chat.appendStream" => self.minute(method, limits.pieces_a_minute),
            "chat.delete" | "reactions.add" | "conversations.open" | "apps.connections.open" => {
                self.minute(method, limits.tier_3)
            }
            "chat.postEphemeral"
            | "files.getUploadURLExternal"
            | "files.completeUploadExternal"
            | "files.info"
            | "users.info" => self.minute(method, limits.tier_4),
            _ => Ok(()),
        }
    }

    /// Allows this many calls of a method per minute.
    fn minute(&mut self, method: &str, count: usize) -> Result<(), Duration> {
        take(self.methods.entry(method.to_owned()).or_default(), count, Duration::from_secs(60))
    }
}

/// Allows at most `count` calls in any `window`.
fn take(calls: &mut VecDeque<Instant>, count: usize, window: Duration) -> Result<(), Duration> {
    let now = Instant::now();
    while calls.front().is_some_and(|first| now.duration_since(*first) >= window) {
        calls.pop_front();
    }
    match calls.front() {
        Some(first) if calls.len() >= count => Err(window - now.duration_since(*first)),
        _ => {
            calls.push_back(now);
            Ok(())
        }
    }
}

/// The longest wait that is insisted on: a client may bound an absurd one.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The calls that have to wait, by method and body, and until when.
#[derive(Default)]
pub(super) struct PutOff(Vec<(String, Arc<Value>, Instant)>);

impl PutOff {
    /// Has a call wait. Of some, the same may be under way twice, before the first is refused: of those without a body,
    /// and where a status is removed at the end of a turn and by who looks what is left.
    pub(super) fn add(&mut self, method: &str, body: &Arc<Value>, at: Instant, wait: Duration) {
        if method != "assistant.threads.setStatus" && body.as_object().is_some_and(|body| !body.is_empty()) {
            self.0.push((method.to_owned(), Arc::clone(body), at + wait.min(LONGEST_WAIT)));
        }
    }

    /// Whether a call is one that should still wait.
    pub(super) fn has(&mut self, method: &str, body: &Value, at: Instant) -> bool {
        self.0.retain(|(.., until)| *until > at);
        self.0.iter().any(|(waiting, what, _)| waiting == method && **what == *body)
    }

    /// Ends the waits of a method.
    pub(super) fn forget(&mut self, method: &str) {
        self.0.retain(|(waiting, ..)| waiting != method);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_same_call_has_to_wait_and_no_other() {
        let (mut put_off, at) = (PutOff::default(), Instant::now());
        let [body, other, nothing] = [json!({"ts": "1.1"}), json!({"ts": "1.2"}), json!({})].map(Arc::new);
        put_off.add("chat.update", &body, at, Duration::from_secs(2));
        put_off.add("auth.test", &nothing, at, Duration::from_secs(2));
        let soon = at + Duration::from_secs(1);
        assert!(put_off.has("chat.update", &body, soon));
        assert!(!put_off.has("chat.update", &other, soon) && !put_off.has("chat.delete", &body, soon));
        assert!(!put_off.has("auth.test", &nothing, soon));
        assert!(!put_off.has("chat.update", &body, at + Duration::from_secs(2)));
        put_off.add("chat.update", &body, at, Duration::from_secs(u64::MAX));
        assert!(!put_off.has("chat.update", &body, at + LONGEST_WAIT));
        put_off.add("chat.update", &body, at, Duration::from_secs(2));
        put_off.forget("chat.update");
        assert!(!put_off.has("chat.update", &body, soon));
    }

    #[test]
    fn too_much_is_refused_with_a_wait() {
        let limits = Limits { updates_a_minute: 2, post_burst: 1, pages_a_minute: 1, ..Limits::default() };
        let mut traffic = Traffic::default();
        assert_eq!(traffic.call("chat.update", "C1", &limits), Ok(()));
        assert_eq!(traffic.call("chat.update", "C2", &limits), Ok(()));
        let wait = traffic.call("chat.update", "C3", &limits).expect_err("the workspace has had two");
        assert!(wait > Duration::from_secs(55) && wait <= Duration::from_secs(60));
        assert_eq!(traffic.call("chat.postMessage", "C1", &limits), Ok(()));
        assert_eq!(traffic.call("chat.postMessage", "C2", &limits), Ok(()), "channels are counted apart");
        assert!(traffic.call("chat.postMessage", "C1", &limits).is_err());
        assert_eq!(traffic.call("conversations.history", "C1", &limits), Ok(()));
        assert!(traffic.call("conversations.history", "C2", &limits).is_err(), "all channels are counted together");
        assert_eq!(traffic.call("conversations.replies", "C1", &limits), Ok(()), "each method has its own");
        for (method, most) in [("chat.delete", 50), ("reactions.add", 50), ("chat.postEphemeral", 100)] {
            assert!((0..most).all(|_| traffic.call(method, "C1", &limits).is_ok()), "{method}");
            assert!(traffic.call(method, "C1", &limits).is_err(), "{method}");
        }
    }
}
