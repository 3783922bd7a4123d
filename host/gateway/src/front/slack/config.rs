//! The settings of the connection to Slack.

use std::{sync::Arc, time::Duration};

use pmk_core::Language;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::{
    address::DEFAULT_API_URL,
    limiter::{Limits, Sharers},
    places::Places,
    tokens::TokenSource,
    transport::Transport,
};
use crate::front::{Fence, SENT_AGAIN_FOR};

/// The most prompts that Slack shows.
pub const MOST_PROMPTS: usize = 4;

/// A suggested prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prompt {
    /// What the person sees.
    pub title: String,
    /// The message that is sent when they choose it.
    pub message: String,
}

/// Whether answers are streamed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    /// If Slack and the answer allow it.
    #[default]
    Auto,
    Off,
}

impl Stream {
    pub const ALL: [Stream; 2] = [Stream::Auto, Stream::Off];

    pub const fn name(self) -> &'static str {
        match self {
            Stream::Auto => "auto",
            Stream::Off => "off",
        }
    }
}

/// The settings of the connection to Slack.
#[derive(Clone, Debug)]
pub struct SlackConfig {
    /// The app-level token, `xapp-…`, with the scope `connections:write`.
    pub app_token: SecretString,
    /// The bot token, `xoxb-…`.
    pub bot_token: SecretString,
    /// Where new tokens come from at run time; `None` if they never change.
    pub source: Option<Arc<dyn TokenSource>>,
    /// What carries everything to Slack; `None` for the network.
    pub transport: Option<Arc<dyn Transport>>,
    /// The address of the Web API: loopback, or https on a Slack domain.
    pub api_url: String,
    /// Allows any https address for `api_url`, to which the tokens are sent. For the command line
    /// only.
    pub allow_any_api_url: bool,
    /// The time limit of one Web API call.
    pub request_timeout: Duration,
    /// No call that writes is sent.
    pub dry_run: bool,
    /// Whether answers are streamed, if Slack can.
    pub stream: Stream,
    /// The rate limits.
    pub limits: Limits,
    /// Who else calls Slack with these tokens.
    pub sharers: Sharers,
    /// Tells whether this process may still post.
    pub fence: Option<Arc<dyn Fence>>,
    /// The language of the texts that say that the bot is at work.
    pub language: Language,
    pub places: Places,
    /// Suggested prompts, at most [`MOST_PROMPTS`].
    pub prompts: Vec<Prompt>,
    pub timings: Timings,
}

impl SlackConfig {
    /// Returns the settings for Slack itself, with the default timings.
    pub fn new(app_token: SecretString, bot_token: SecretString) -> Self {
        SlackConfig {
            app_token,
            bot_token,
            source: None,
            transport: None,
            api_url: DEFAULT_API_URL.to_owned(),
            allow_any_api_url: false,
            request_timeout: Duration::from_secs(10),
            dry_run: false,
            stream: Stream::default(),
            limits: Limits::default(),
            sharers: Sharers::default(),
            fence: None,
            language: Language::English,
            places: Places::default(),
            prompts: vec![],
            timings: Timings::default(),
        }
    }
}

/// The timings of the WebSockets. The defaults are for Slack.
#[derive(Clone, Copy, Debug)]
pub struct Timings {
    /// How many connections to keep open. Slack allows ten, and sends each event over one of them.
    pub connections: usize,
    /// How long opening a connection, or sending a frame, may take.
    pub connect: Duration,
    /// How often to send a ping.
    pub ping: Duration,
    /// How long the pong may take. A dead connection is noticed within `ping` plus this.
    pub pong: Duration,
    /// The first pause after a failed attempt; it doubles each time, with jitter.
    pub retry_min: Duration,
    /// The longest pause, before jitter.
    pub retry_max: Duration,
    /// The least time from the opening of a connection to that of its successor: a connection that worked for
    /// longer is replaced at once. Slack allows about fifty openings a minute.
    pub spacing: Duration,
    /// How long after its end a silence is reported: by then, Slack has sent again what it sends again at once. A
    /// silence that begins before that is part of the same one.
    pub settle: Duration,
    /// For how long after a silence messages count as late because of it. Slack sends again at once and after
    /// about a minute; what it sends after five minutes is not awaited.
    pub stragglers: Duration,
    /// How long after the first attempt Slack may have given up sending an event.
    pub given_up: Duration,
    /// How long storing may take when a connection is closed.
    pub drain: Duration,
    /// How long after an unanswered call Slack may still carry it out.
    pub late: Duration,
    /// How long Slack is asked again during the start if it cannot answer.
    pub start: Duration,
    /// How long the status of a thread is shown before it is renewed: Slack removes it after two
    /// minutes.
    pub status: Duration,
}

impl Default for Timings {
    fn default() -> Self {
        Timings {
            connections: 2,
            connect: Duration::from_secs(10),
            ping: Duration::from_secs(2),
            pong: Duration::from_secs(5),
            retry_min: Duration::from_millis(500),
            retry_max: Duration::from_secs(30),
            spacing: Duration::from_millis(1_500),
            settle: Duration::from_secs(5),
            stragglers: Duration::from_secs(75),
            given_up: SENT_AGAIN_FOR,
            drain: Duration::from_secs(5),
            late: Duration::from_secs(2),
            start: Duration::from_secs(60),
            status: Duration::from_secs(90),
        }
    }
}
