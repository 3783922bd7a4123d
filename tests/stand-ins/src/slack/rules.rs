//! What kind of Slack the stand-in is, and what goes wrong with it.

use std::time::Duration;

use super::{Limits, places::Kind};

/// What kind of Slack this is. The default is as strict and as slow as Slack.
#[derive(Clone, Debug)]
pub struct SlackRules {
    pub app_token: String,
    pub bot_token: String,
    /// How long an acknowledgement may take.
    pub ack_deadline: Duration,
    /// The waits before each redelivery; as many as there are redeliveries.
    pub retry_delays: Vec<Duration>,
    /// How long a socket lives on after a `disconnect` warning.
    pub warning_grace: Duration,
    /// How often sockets are pinged.
    pub ping_every: Duration,
    /// Rate limits; `None` for benchmarks.
    pub limits: Option<Limits>,
    /// Whether the app is subscribed to `message.channels` and its like, so that a mention arrives twice.
    pub channel_messages: bool,
    /// Whether threads show what the bot is doing (`assistant.threads.setStatus`).
    pub statuses: bool,
    /// Whether there are streams (`chat.startStream`), and whether they keep metadata.
    pub streams: bool,
    pub stream_metadata: bool,
    /// Whether a mention in a direct message of several people arrives as such, too. Slack's pages do not say; clients have
    /// seen that it does not.
    pub group_mentions: bool,
    /// What the bot token may do.
    pub scopes: Vec<&'static str>,
    /// Channels that the bot is not a member of.
    pub foreign_channels: Vec<&'static str>,
    /// So many seconds its clock is ahead, as its `Date` header and its messages say.
    pub clock_ahead: i64,
    /// What the text of a message that is still to be replaced begins with.
    pub placeholder: String,
}

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
            foreign_channels: vec![],
            clock_ahead: 0,
            placeholder: ":hourglass".to_owned(),
        }
    }
}

/// All that any method here asks for.
pub const ALL_SCOPES: [&str; 13] = [
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
    /// Without these scopes.
    pub fn without_scopes(mut self, taken: &[&str]) -> Self {
        self.scopes.retain(|scope| !taken.contains(scope));
        self
    }

    /// What a method needs in a conversation of that kind, where the token does not have it.
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
            "conversations.open" => "im:write",
            "reactions.add" => "reactions:write",
            "conversations.history" | "conversations.replies" => kind.scope(),
            "assistant.threads.setSuggestedPrompts" => "assistant:write",
            _ => return None,
        };
        (!self.scopes.contains(&needed)).then_some(needed)
    }

    /// The same rules, with waits that a test can afford. An acknowledgement still has Slack's three seconds: no slow
    /// machine breaks a rule.
    pub fn quick() -> Self {
        SlackRules {
            retry_delays: [100, 300, 900].map(Duration::from_millis).to_vec(),
            warning_grace: Duration::from_millis(400),
            ping_every: Duration::from_millis(200),
            ..SlackRules::default()
        }
    }

    /// No thread shows what the bot is doing, so that it has to post placeholders.
    pub fn without_statuses(self) -> Self {
        SlackRules { statuses: false, ..self }
    }

    /// Without rate limits.
    pub fn unlimited(self) -> Self {
        SlackRules { limits: None, ..self }
    }
}

/// What goes wrong with a method. `link` is the opening of a WebSocket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It answers with this HTTP status.
    Status(u16),
    /// It never answers.
    Stall,
    /// It answers `ok: false` with this code.
    Error(&'static str),
    /// It answers 429 with this Retry-After, in seconds.
    RateLimited(u64),
    /// It answers with a page instead of JSON.
    Garbage,
    /// It is carried out, but the answer never comes.
    Lost,
    /// The stream it is about is over before it comes, as after its five minutes.
    StreamOver,
    /// It is carried out, but only after this long.
    Slow(Duration),
    /// It is carried out only once somebody has looked for it in the past in vain, whether or not the caller is there still, and
    /// the answer never comes.
    Late,
    /// It is carried out, but only once the method is healed.
    Held,
}
