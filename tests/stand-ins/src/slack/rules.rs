//! Configuration of the stand-in, and its faults.

use std::time::Duration;

use super::{Limits, places::Kind};

/// The configuration. The default is as strict and as slow as Slack.
#[derive(Clone, Debug)]
pub struct SlackRules {
    pub app_token: String,
    pub bot_token: String,
    /// The time limit for an acknowledgement.
    pub ack_deadline: Duration,
    /// The delay before each redelivery; as many as there are redeliveries.
    pub retry_delays: Vec<Duration>,
    /// How long a socket stays open after a `disconnect` warning.
    pub warning_grace: Duration,
    /// The interval of pings on sockets.
    pub ping_every: Duration,
    /// Rate limits; `None` for benchmarks.
    pub limits: Option<Limits>,
    /// Whether the app is subscribed to `message.channels` and similar events, so that a mention arrives twice.
    pub channel_messages: bool,
    /// Whether threads can show a status (`assistant.threads.setStatus`).
    pub statuses: bool,
    /// Whether there are streams (`chat.startStream`), and whether they keep metadata.
    pub streams: bool,
    pub stream_metadata: bool,
    /// Whether a mention in a direct message of several people also arrives as such. Slack's documentation does not
    /// say; clients have observed that it does not.
    pub group_mentions: bool,
    /// The scopes of the bot token.
    pub scopes: Vec<&'static str>,
    /// How many seconds its clock is ahead, as visible in its `Date` header and its messages.
    pub clock_ahead: i64,
    /// The prefix of a placeholder's text.
    pub placeholder: String,
    /// Violations that are none here; see [`expecting`](SlackRules::expecting).
    pub expected: Vec<String>,
}

/// The violation of an acknowledgement that nobody awaits; the frame follows after a colon.
pub const LATE: &str = "a frame that acknowledges nothing, or too late";

impl Default for SlackRules {
    fn default() -> Self {
        SlackRules {
            app_token: "xapp-1-stand-in".to_owned(),
            bot_token: "xoxb-stand-in".to_owned(),
            ack_deadline: Duration::from_secs(3),
            retry_delays: vec![Duration::ZERO, Duration::from_secs(60), Duration::from_secs(300)],
            warning_grace: Duration::from_secs(10),
            ping_every: Duration::from_secs(30),
            limits: Some(Limits::default()),
            channel_messages: true,
            statuses: true,
            streams: true,
            stream_metadata: true,
            group_mentions: false,
            scopes: ALL_SCOPES.to_vec(),
            clock_ahead: 0,
            placeholder: ":hourglass".to_owned(),
            expected: Vec::new(),
        }
    }
}

/// All scopes that any method here requires.
pub const ALL_SCOPES: [&str; 14] = [
    "app_mentions:read",
    "assistant:write",
    "channels:history",
    "chat:write",
    "commands",
    "files:read",
    "files:write",
    "groups:history",
    "im:history",
    "im:write",
    "mpim:history",
    "reactions:read",
    "reactions:write",
    "users:read",
];

/// All events that are sent here.
pub const ALL_EVENTS: [&str; 7] = [
    "app_home_opened",
    "app_mention",
    "message.channels",
    "message.groups",
    "message.im",
    "message.mpim",
    "reaction_added",
];

impl SlackRules {
    /// Removes these scopes.
    pub fn without_scopes(mut self, taken: &[&str]) -> Self {
        self.scopes.retain(|scope| !taken.contains(scope));
        self
    }

    /// The scope that a method requires in this kind of conversation, if the token does not have it.
    pub(super) fn missing_scope(&self, method: &str, kind: Kind) -> Option<&'static str> {
        let needed = match method {
            "chat.postMessage"
            | "chat.postEphemeral"
            | "chat.update"
            | "chat.delete"
            | "assistant.threads.setStatus"
            | "chat.startStream"
            | "chat.appendStream"
            | "chat.stopStream" => "chat:write",
            "files.getUploadURLExternal" | "files.completeUploadExternal" => "files:write",
            "files.info" => "files:read",
            "conversations.open" => "im:write",
            "reactions.add" => "reactions:write",
            "conversations.history" | "conversations.replies" => kind.scope(),
            "assistant.threads.setSuggestedPrompts" => "assistant:write",
            "users.info" => "users:read",
            _ => return None,
        };
        (!self.scopes.contains(&needed)).then_some(needed)
    }

    /// The same rules, with delays suitable for tests. The time limit for acknowledgements is still Slack's three
    /// seconds, so that no slow machine breaks a rule.
    pub fn quick() -> Self {
        SlackRules {
            retry_delays: [100, 300, 900].map(Duration::from_millis).to_vec(),
            warning_grace: Duration::from_millis(400),
            ping_every: Duration::from_millis(200),
            ..SlackRules::default()
        }
    }

    /// Threads show no status, so that the bot has to post placeholders.
    pub fn without_statuses(self) -> Self {
        SlackRules { statuses: false, ..self }
    }

    /// Removes the rate limits.
    pub fn unlimited(self) -> Self {
        SlackRules { limits: None, ..self }
    }

    /// These [violations](super::Slack::violations) are what a test is about, or do no harm in it. What follows a colon
    /// in them need not be named.
    pub fn expecting<T: Into<String>>(mut self, violations: impl IntoIterator<Item = T>) -> Self {
        self.expected.extend(violations.into_iter().map(Into::into));
        self
    }

    pub(super) fn is_expected(&self, violation: &str) -> bool {
        let goes_on = |rest: &str| rest.is_empty() || rest.starts_with(':');
        self.expected.iter().any(|expected| violation.strip_prefix(expected.as_str()).is_some_and(goes_on))
    }
}

/// A fault of a method. `link` stands for the opening of a WebSocket, and the error of `hello` for the reason why one is
/// closed as soon as it is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It responds with this HTTP status.
    Status(u16),
    /// It never responds.
    Stall,
    /// It responds with `ok: false` and this code.
    Error(&'static str),
    /// It responds with 429 and this Retry-After, in seconds.
    RateLimited(u64),
    /// It responds with a page instead of JSON.
    Garbage,
    /// It is executed, but the response is lost.
    Lost,
    /// The stream that it is about has ended before the call, as after its maximum of five minutes.
    StreamOver,
    /// It is executed, but only after this delay.
    Slow(Duration),
    /// It is executed only after somebody has searched the history for it in vain, whether or not the caller is still
    /// there, and the response is lost.
    Late,
    /// It is executed, but only after the method is healed.
    Held,
}

#[cfg(test)]
mod tests {
    use super::{super::Slack, *};

    #[test]
    fn only_what_is_named_is_expected() {
        let rules = SlackRules::quick().expecting(["the bot mentioned <@U1>", LATE]);
        for (violation, is_expected) in [
            ("the bot mentioned <@U1>", true),
            ("the bot mentioned <@U1> in a whisper", false),
            ("the bot mentioned <@U2>", false),
            ("a frame that acknowledges nothing, or too late: {}", true),
        ] {
            assert_eq!(rules.is_expected(violation), is_expected, "{violation}");
        }
    }

    #[tokio::test]
    #[should_panic(expected = "a rule was broken")]
    async fn a_violation_that_a_test_does_not_look_at_fails_it() {
        let slack = Slack::start(SlackRules::quick()).await;
        slack.inner.state().violations.push("a rule was broken".to_owned());
    }
}
