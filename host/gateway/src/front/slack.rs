//! The Slack front: Socket Mode in, the Web API out.
//!
//! Events arrive over WebSockets that [`sockets`] keeps connected. Each is acknowledged once the intake
//! has stored its message, and not before: what is not acknowledged comes again. Replies leave by
//! `chat.postMessage` and `chat.update`, and very long ones as a file.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use pmk_core::{Language, text};
use rustls::ClientConfig;
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

use self::{
    credentials::Prepared,
    envelope::Reception,
    failure::CallFailure,
    hearing::Hearing,
    look_back::Pace,
    sockets::Sockets,
    web::{Identity, Met, Web},
};
use super::{Delivery, Front, FrontError, Intake, Kind, LookBack, Lookup, Past, Progress};
use crate::messages::Messages;
use crate::report::TurnReport;
use crate::talk::{Connection, Content, File, ReplyTo, Thread};

mod address;
pub mod app;
mod attached;
#[cfg(test)]
mod cpu_time;
pub mod credentials;
mod delivery;
mod dry_run;
mod envelope;
mod failure;
mod fetch;
mod hearing;
mod history;
mod inbound;
mod invoked;
mod lines;
mod link;
mod look_back;
mod markdown;
mod mrkdwn;
mod renewal;
mod sockets;
mod split;
mod thread;
pub mod tls;
mod token;
mod tokens;
mod web;

pub use address::DEFAULT_API_URL;
pub use tokens::{TokenPair, TokenSource};

/// The most messages of one reply. They are some 47,000 bytes, more than ten screens of them, and at one post
/// a second Slack takes as many seconds for them: more is easier read in a file.
const MAX_PARTS: usize = 12;

/// The most characters of a line of progress that are shown.
const MAX_PROGRESS_CHARS: usize = 300;

/// What it takes to connect to Slack.
#[derive(Clone, Debug)]
pub struct SlackConfig {
    /// The app-level token, `xapp-…`, with the scope `connections:write`.
    pub app_token: SecretString,
    /// The bot token, `xoxb-…`.
    pub bot_token: SecretString,
    /// Where others come from while it runs; `None` where they never change.
    pub source: Option<Arc<dyn TokenSource>>,
    /// Where the Web API is. Loopback, or https on a domain of Slack's.
    pub api_url: String,
    /// Lets `api_url` be https anywhere: the tokens are sent there. For the command line only.
    pub allow_any_api_url: bool,
    /// How long one call of the Web API may take.
    pub request_timeout: Duration,
    /// Nothing that writes is sent.
    pub dry_run: bool,
    pub timings: Timings,
}

impl SlackConfig {
    /// Slack itself, with the default timings.
    pub fn new(app_token: SecretString, bot_token: SecretString) -> Self {
        SlackConfig {
            app_token,
            bot_token,
            source: None,
            api_url: DEFAULT_API_URL.to_owned(),
            allow_any_api_url: false,
            request_timeout: Duration::from_secs(10),
            dry_run: false,
            timings: Timings::default(),
        }
    }
}

/// How the WebSockets are kept. The defaults are for Slack.
#[derive(Clone, Copy, Debug)]
pub struct Timings {
    /// How many connections to keep open. Slack allows ten, and sends each event over one of them.
    pub connections: usize,
    /// How long opening a connection may take, and sending a frame.
    pub connect: Duration,
    /// How often to ask for a sign of life.
    pub ping: Duration,
    /// How long the answer may take. A connection that nobody is behind is noticed within `ping` and this.
    pub pong: Duration,
    /// The first wait after a failed attempt; it doubles each time, with jitter.
    pub retry_min: Duration,
    /// The longest wait, before jitter.
    pub retry_max: Duration,
    /// The least time from the opening of a connection to that of its successor: one that worked for longer is
    /// replaced at once. Slack takes some fifty openings a minute.
    pub spacing: Duration,
    /// How long after a silence it is told: what Slack sends again at once has come by then. A silence that begins
    /// before that is part of the same.
    pub settle: Duration,
    /// For how long after a silence messages are counted as late because of it. Slack sends again at once and
    /// after about a minute; what it sends after five minutes is not waited for.
    pub stragglers: Duration,
    /// How long storing may take when a connection is closed.
    pub drain: Duration,
    /// The time between two calls that read conversations back: Slack takes some fifty a minute.
    pub look_back: Duration,
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
            drain: Duration::from_secs(5),
            look_back: Duration::from_millis(1_300),
        }
    }
}

/// A workspace that the bot is connected to.
pub struct Slack {
    web: Web,
    me: Identity,
    tls: Arc<ClientConfig>,
    timings: Timings,
    pace: Pace,
    hearing: Hearing,
}

impl fmt::Debug for Slack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slack").field("me", &self.me).finish_non_exhaustive()
    }
}

impl Slack {
    /// Checks both tokens with Slack, so that a bad one, or a Slack that does not answer, is said at once
    /// and in one line.
    ///
    /// # Errors
    /// [`FrontError::Fatal`] names the call, the kind of token and what to do.
    pub async fn connect(config: SlackConfig) -> Result<Self, FrontError> {
        let Prepared { address, tls, web } = credentials::prepare(&config)?;
        let (Met { me, scopes, .. }, socket) =
            tokio::try_join!(web.identity(), web.open_connection()).map_err(CallFailure::at_start)?;
        credentials::check_socket(&socket)?;
        web.belongs_to(&me);
        for (scope, without) in scopes.as_deref().map_or(Ok(vec![]), credentials::lesser_scopes)? {
            let goes = Messages::new(Language::English).goes(without.name());
            tracing::info!("the Slack bot token has no scope `{}`: {goes}", scope.name);
        }
        tracing::info!("connected to Slack at {address} as @{} in {}", me.name, me.team);
        let pace = Pace::new(config.timings.look_back);
        let hearing = Hearing::new(&config.timings);
        Ok(Slack { web, me, tls: Arc::new(tls), timings: config.timings, pace, hearing })
    }
}

#[async_trait]
impl Front for Slack {
    async fn listen(&self, intake: &dyn Intake, stop: CancellationToken) -> Result<(), FrontError> {
        let reception = Reception { me: &self.me, intake, hearing: &self.hearing };
        let sockets = Sockets::new(&self.web, &self.tls, self.timings, reception);
        tokio::select! {
            () = sockets.run(&stop) => {}
            () = self.web.follow_tokens() => {}
        }
        Ok(())
    }

    async fn placeholder(&self, event_id: &str, reply_to: &ReplyTo, text: &str) -> Result<Option<String>, FrontError> {
        let tag = history::tag(event_id, Kind::Placeholder.name());
        self.web.post(reply_to, mrkdwn::escape(text), Some(tag)).await.map(Some).map_err(CallFailure::while_running)
    }

    async fn progress(&self, progress: &Progress) -> Result<(), FrontError> {
        let Some(placeholder) = &progress.placeholder else { return Ok(()) };
        let line = mrkdwn::escape(text::head(&progress.text, MAX_PROGRESS_CHARS));
        let shown = format!(":hourglass_flowing_sand: {line}");
        let updated = self.web.update(&progress.reply_to.channel, placeholder, shown).await;
        updated.map(drop).map_err(CallFailure::while_running)
    }

    fn split(&self, text: &str) -> Vec<String> {
        split::split(text, split::MAX_PART_BYTES)
    }

    fn most_parts(&self) -> usize {
        MAX_PARTS
    }

    async fn deliver(&self, part: Delivery<'_>) -> Result<Option<String>, FrontError> {
        match part.kind {
            Kind::Document => delivery::document(&self.web, &part).await.map(|()| None),
            _ => delivery::message(&self.web, &part).await.map(Some).map_err(CallFailure::while_running),
        }
    }

    async fn find(&self, part: &Delivery<'_>, after: &str) -> Result<Lookup, FrontError> {
        let found = match part.kind {
            Kind::Document => {
                let name = delivery::file_name(part);
                history::find(&self.web, part.reply_to, after, |past| past.has_file(&name)).await
            }
            _ => {
                let tag = delivery::tag(part);
                history::find(&self.web, part.reply_to, after, |past| past.has(&tag)).await
            }
        };
        found.map_err(CallFailure::while_running)
    }

    async fn mark(&self, _event_id: &str, reply_to: &ReplyTo, ts: &str, emoji: &str) -> Result<(), FrontError> {
        match self.web.react(&reply_to.channel, ts, emoji).await {
            Err(failure) if failure.is_final() => Err(FrontError::Refused { what: failure.to_string() }),
            marked => marked.map_err(CallFailure::while_running),
        }
    }

    /// Without the scope to open one, the person's own id: Slack posts there, and nothing can be read back.
    async fn direct(&self, person: &str) -> Result<String, FrontError> {
        match self.web.open_direct(person).await {
            Err(failure) if failure.is_final() => {
                tracing::debug!(%failure, "a direct message is posted without being opened");
                Ok(person.to_owned())
            }
            opened => opened.map_err(CallFailure::while_running),
        }
    }

    async fn withdraw(&self, reply_to: &ReplyTo, id: &str) -> Result<(), FrontError> {
        self.web.delete(&reply_to.channel, id).await.map_err(CallFailure::while_running)
    }

    fn connection(&self) -> Option<Connection> {
        Some(self.hearing.connection(self.timings.connections))
    }

    fn reaches_absent(&self) -> bool {
        true
    }

    async fn look_back(&self, place: &LookBack) -> Result<Past, FrontError> {
        look_back::look_back(&self.web, &self.me, &self.pace, place).await.map_err(CallFailure::while_running)
    }

    async fn read_file(&self, file: &File, most: u64) -> Result<Content, FrontError> {
        fetch::text(&self.web, file, most).await.map_err(CallFailure::while_running)
    }

    async fn read_thread(&self, place: &ReplyTo, before: &str) -> Result<Thread, FrontError> {
        thread::before(&self.web, &self.me, place, before).await.map_err(CallFailure::while_running)
    }

    /// Nothing: people in Slack see the reply and no more.
    async fn report(&self, _event_id: &str, _report: &TurnReport) -> Result<(), FrontError> {
        Ok(())
    }
}
