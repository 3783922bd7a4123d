//! The Slack front: Socket Mode in, the Web API out.
//!
//! Events arrive over WebSockets that [`sockets`] keeps connected. Each is acknowledged only once the
//! intake has stored its message: an unacknowledged event is sent again. Replies are sent by
//! `chat.postMessage` and `chat.update`, and very long ones as a file.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use jiff::SignedDuration;
use pmk_core::{Language, text};
use pmk_models::Listener;
use reqwest::Url;
use rustls::ClientConfig;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::{
    connectivity::Connectivity,
    credentials::Prepared,
    delivery::PiecesOf,
    envelope::InboundContext,
    failure::CallFailure,
    history::Piece,
    identity::Identity,
    limiter::Priority,
    names::Names,
    prompts::Prompts,
    sockets::Sockets,
    split::PartLimit,
    statuses::Statuses,
    streams::Streams,
    unstored::Unstored,
    web::{AuthInfo, Status, Web},
};
use super::{
    BackfillRequest, Delivery, Described, Fetched, Front, FrontError, Intake, IsHeard, Kind, Lookup, OnStreamed, Past,
    Progress,
};
use crate::chat::{Connection, Inbound, MessageRef, Refusal, ReplyTo, Thread};
use crate::ledger::report::TurnReport;
use crate::messages::Messages;
use crate::slack_id::Id;

mod address;
pub mod app;
mod attached;
mod backfill;
mod block_text;
mod blocks;
mod changed;
mod config;
mod connectivity;
mod content;
#[cfg(test)]
mod cpu_time;
pub mod credentials;
mod delivery;
mod dry_run;
mod envelope;
mod failure;
mod fetch;
mod gaps;
mod history;
mod identity;
mod inbound;
mod invoked;
mod limiter;
mod link;
mod locked;
mod markdown;
mod mrkdwn;
mod names;
mod places;
mod prompts;
mod refusals;
mod renewal;
mod said;
mod sockets;
mod split;
mod statuses;
mod streams;
mod thread;
pub mod tls;
mod token;
mod tokens;
mod transport;
mod unstored;
mod web;

pub use address::DEFAULT_API_URL;
pub use config::{MOST_PROMPTS, Prompt, SlackConfig, Stream, Timings};
pub use limiter::{Limits, Sharers};
pub use places::{Places, ReplyIn};
pub use tokens::{TokenPair, TokenSource};
pub use transport::{Pipe, Transport};

/// The most messages of one reply. They fill more than ten screens; a longer reply is easier to
/// read in a file.
const MAX_PARTS: usize = 5;

/// The longest pause before Slack is asked again during the start, if Slack names none.
const LONGEST_START_PAUSE: Duration = Duration::from_secs(5);

/// The most characters of a progress line that are shown.
const MAX_PROGRESS_CHARS: usize = 300;

/// A workspace that the bot is connected to.
pub struct Slack {
    web: Arc<Web>,
    me: Identity,
    places: Places,
    prompts: Prompts,
    tls: Arc<ClientConfig>,
    timings: Timings,
    hearing: Connectivity,
    unstored: Unstored,
    statuses: Arc<Statuses>,
    streams: Streams,
    /// The messages posted so far of parts that were not sent as one message.
    pieces: Mutex<HashMap<PiecesOf, Vec<Piece>>>,
    names: Names,
    messages: Messages,
}

impl fmt::Debug for Slack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slack").field("me", &self.me).finish_non_exhaustive()
    }
}

impl Slack {
    /// Checks both tokens with Slack, so that a bad token, or a Slack that does not answer, is reported
    /// at once and in one line.
    ///
    /// # Errors
    /// [`FrontError::Fatal`] names the call, the kind of token and what to do.
    pub async fn connect(config: SlackConfig) -> Result<Self, FrontError> {
        let Prepared { address, tls, web } = credentials::prepare(&config)?;
        let (AuthInfo { me, workspace, scopes, .. }, socket) = first_answers(&web, config.timings).await?;
        credentials::check_socket(&socket)?;
        web.belongs_to(&me, workspace);
        for (scope, without) in scopes.as_deref().map_or(Ok(vec![]), credentials::lesser_scopes)? {
            let goes = Messages::new(Language::English).goes(without.name());
            tracing::info!("the Slack bot token has no scope `{}`: {goes}", scope.name);
        }
        tracing::info!("connected to Slack at {address} as @{} in {}", me.name, me.team);
        let statuses = Arc::new(Statuses::new(scopes.as_deref(), config.timings.status));
        let hearing = Connectivity::new(&config.timings);
        Ok(Slack {
            web: Arc::new(web),
            me,
            places: config.places,
            prompts: Prompts::new(config.prompts),
            tls: Arc::new(tls),
            timings: config.timings,
            hearing,
            unstored: Unstored::new(config.timings.given_up),
            statuses,
            streams: Streams::new(config.stream == Stream::Auto),
            pieces: Mutex::default(),
            names: Names::default(),
            messages: Messages::new(config.language),
        })
    }
}

#[async_trait]
impl Front for Slack {
    async fn listen(&self, intake: &dyn Intake, stop: CancellationToken) -> Result<(), FrontError> {
        let Slack { me, places, prompts, hearing, unstored, statuses, streams, .. } = self;
        let reception = InboundContext { me, places: *places, prompts, intake, hearing, unstored, statuses, streams };
        let sockets = Sockets::new(&self.web, &self.tls, self.timings, reception);
        let closed = async {
            stop.cancelled().await;
            // What cannot be sent now is sent after the next start.
            self.web.limiter.close();
            std::future::pending::<()>().await;
        };
        let stopped = async {
            while let Some(wish) = streams.next_stop().await {
                if let Err(error) = intake.react(wish).await {
                    tracing::error!(error = error.message(), "an answer that was stopped is still being generated");
                }
            }
        };
        let status = self.messages.at_work();
        tokio::select! {
            biased;
            () = sockets.run(&stop) => {}
            () = self.web.follow_tokens() => {}
            never = self.web.follow_refusal() => match never {},
            never = self.web.refusals.tell(intake) => match never {},
            () = self.statuses.keep(&self.web, &status) => {}
            () = closed => {}
            () = stopped => {}
            never = prompts.show(&self.web) => match never {},
        }
        self.web.refusals.tell_now(intake);
        Ok(())
    }

    async fn show(&self, question: &Inbound, text: &str) -> bool {
        let status = Status { status: &self.messages.at_work(), line: Some(text) };
        self.statuses.begin(&self.web, &question.event_id, statuses::Thread::of(question), status).await
    }

    fn shows_by_messages(&self) -> bool {
        self.statuses.serve_nowhere()
    }

    async fn placeholder(&self, question: &Inbound, text: &str) -> Result<Option<String>, FrontError> {
        let Inbound { event_id, reply_to, .. } = question;
        let tag = history::tag(event_id, Kind::Placeholder.name(), &[]);
        let posted = self.web.post(reply_to, &waiting(text), Some(&tag), Priority::Progress).await;
        posted.map(Some).map_err(CallFailure::while_running)
    }

    async fn progress(&self, progress: &Progress) -> Result<(), FrontError> {
        let line = text::head(&progress.text, MAX_PROGRESS_CHARS);
        let status = Status { status: &self.messages.at_work(), line: Some(line) };
        if let Some(shown) = self.statuses.show(&self.web, &progress.event_id, status).await {
            return shown.map_err(CallFailure::while_running);
        }
        let Some(placeholder) = &progress.placeholder else { return Ok(()) };
        let placeholder = MessageRef::new(&progress.reply_to.channel, placeholder);
        let updated = self.web.update(&placeholder, &waiting(line), None, Priority::Progress).await;
        updated.map(drop).map_err(CallFailure::while_running)
    }

    fn listener(&self, question: &Inbound, streamed: OnStreamed) -> Option<Arc<dyn Listener>> {
        self.streams.begin(&self.web, &self.statuses, question, &self.me, streamed)
    }

    fn split(&self, text: &str, kind: Kind) -> Vec<String> {
        match kind {
            Kind::Reply => split::split(text, PartLimit::Chars(content::MAX_BLOCK_CHARS)),
            _ => split::split(text, PartLimit::Rendered(split::MAX_PART_BYTES)),
        }
    }

    fn most_parts(&self) -> usize {
        MAX_PARTS
    }

    async fn deliver(&self, part: Delivery<'_>) -> Result<Option<String>, FrontError> {
        match part.kind {
            Kind::Document => delivery::document(&self.web, &part).await.map(|()| None),
            _ => self.message(&part).await.map(Some).map_err(CallFailure::while_running),
        }
    }

    /// A message may appear a moment later, so the search is done twice.
    async fn find(&self, part: &Delivery<'_>, after: &str, is_streamed: bool) -> Result<Lookup, FrontError> {
        match self.look(part, after, is_streamed).await? {
            Lookup::No => {
                tokio::time::sleep(self.timings.late).await;
                self.look(part, after, is_streamed).await
            }
            found => Ok(found),
        }
    }

    async fn recall(&self, event_id: &str, reply_to: &ReplyTo, after: &str) -> Result<(), FrontError> {
        if self.streams.know_of(event_id) {
            return Ok(());
        }
        let is_it = |past: &history::Past| past.unfinished(after).is_some();
        let left = history::unfinished(&self.web, &self.me, reply_to, after, is_it).await;
        if let Some(ts) = left.map_err(CallFailure::while_running)? {
            self.streams.left_behind(event_id, MessageRef::new(&reply_to.channel, ts), after);
        }
        Ok(())
    }

    /// Unlike [`recall`](Front::recall), this must not take the answer to a later question in the thread for it.
    async fn was_streamed(&self, question: &Inbound, id: &str) -> Result<(), FrontError> {
        let Inbound { event_id, reply_to, ts, .. } = question;
        if self.streams.know_of(event_id) {
            return Ok(());
        }
        let is_it = |past: &history::Past| past.unfinished(ts) == Some(id);
        let found = history::unfinished(&self.web, &self.me, reply_to, ts, is_it).await;
        if let Some(id) = found.map_err(CallFailure::while_running)? {
            self.streams.left_behind(event_id, MessageRef::new(&reply_to.channel, id), ts);
        }
        Ok(())
    }

    async fn mark(&self, _event_id: &str, reply_to: &ReplyTo, ts: &str, emoji: &str) -> Result<(), FrontError> {
        match self.web.react(&MessageRef::new(&reply_to.channel, ts), emoji).await {
            Err(failure) if failure.is_final() => {
                Err(FrontError::Refused { what: failure.to_string(), may_pass: false })
            }
            marked => marked.map_err(CallFailure::while_running),
        }
    }

    fn is_person(&self, id: &str) -> bool {
        Id::user(id).is_ok()
    }

    /// Without the scope to open one, returns the person's own id: Slack accepts it for posting, but not
    /// for reading back.
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
        self.web.delete(&MessageRef::new(&reply_to.channel, id)).await.map_err(CallFailure::while_running)
    }

    async fn take_back(&self, reply_to: &ReplyTo, id: &str) -> Result<(), FrontError> {
        self.web.take_back(&MessageRef::new(&reply_to.channel, id)).await.map_err(CallFailure::while_running)
    }

    async fn whisper(&self, person: &str, place: &ReplyTo, text: &str) -> Result<(), FrontError> {
        self.web.whisper(person, place, mrkdwn::escape(text)).await.map_err(CallFailure::while_running)
    }

    fn connection(&self) -> Option<Connection> {
        Some(self.hearing.connection(self.timings.connections))
    }

    fn refusal(&self) -> Option<Refusal> {
        self.web.refusals.standing()
    }

    fn deaf_for(&self) -> Option<Duration> {
        self.hearing.deaf_for()
    }

    fn was_deaf(&self, ago: Duration) {
        self.hearing.was_deaf(ago);
    }

    fn reaches_absent(&self) -> bool {
        true
    }

    fn clock_ahead(&self) -> Option<SignedDuration> {
        self.web.clock_ahead()
    }

    async fn look_back(&self, place: &BackfillRequest) -> Result<Past, FrontError> {
        if self.hearing.may_be_missing() {
            // What is written after that would have to be looked for again.
            let what = "no connection to Slack yet".to_owned();
            return Err(FrontError::Transient { what, retry_after: None, not_made: true });
        }
        let past = backfill::look_back(&self.web, &self.me, self.places, place).await;
        past.map_err(CallFailure::while_running)
    }

    async fn describe(&self, id: &str) -> Result<Described, FrontError> {
        fetch::description(&self.web, id).await.map_err(CallFailure::while_running)
    }

    async fn fetch(&self, address: &str, said_bytes: Option<u64>, most: u64) -> Result<Fetched, FrontError> {
        fetch::file(&self.web, address, said_bytes, most).await.map_err(CallFailure::while_running)
    }

    async fn with_names(&self, text: String) -> String {
        self.names.in_text(&self.web, text).await
    }

    async fn read_thread(&self, place: &ReplyTo, before: &str, is_heard: IsHeard<'_>) -> Result<Thread, FrontError> {
        let mut read = thread::before(&self.web, &self.me, place, before, is_heard).await;
        if let Ok(thread) = &mut read {
            self.names.in_thread(&self.web, &mut thread.said).await;
        }
        // A history that cannot be read before the answer cannot be read after a crash either.
        if read.as_ref().is_err_and(|failure| failure.is_about_the_place()) {
            self.statuses.unreadable(&place.channel);
        }
        read.map_err(CallFailure::while_running)
    }

    /// Does nothing: people in Slack see only the reply.
    async fn report(&self, _event_id: &str, _report: &TurnReport) -> Result<(), FrontError> {
        Ok(())
    }

    async fn clear(&self, event_id: &str) -> Result<(), FrontError> {
        self.streams.clear(&self.web, event_id, self.timings.late).await.map_err(CallFailure::while_running)
    }

    async fn resumed(&self, question: &Inbound) {
        self.statuses.left_behind(&self.web, statuses::Thread::of(question)).await;
    }

    async fn over(&self, event_id: &str) {
        self.statuses.end(&self.web, event_id).await;
        self.pieces().retain(|of, _| of.event_id != event_id);
    }

    async fn leave(&self) {
        self.statuses.leave(&self.web).await;
    }
}

impl Slack {
    /// Searches once for a part, and remembers its pieces and stream if it finds them.
    async fn look(&self, part: &Delivery<'_>, after: &str, is_streamed: bool) -> Result<Lookup, FrontError> {
        let is_streamed = is_streamed && !self.streams.know_of(part.event_id);
        let (mut left, mut pieces) = (None, vec![]);
        let found = match part.kind {
            Kind::Document => {
                let name = delivery::file_name(part);
                history::find(&self.web, &self.me, part.reply_to, after, |past| past.has_file(&name)).await
            }
            _ => {
                let tag = delivery::tag(part);
                let is_it = |past: &history::Past| {
                    if is_streamed && left.is_none() {
                        left = past.unfinished(after).map(str::to_owned);
                    }
                    pieces.extend(past.piece_of(&tag));
                    past.has(&tag)
                };
                history::find(&self.web, &self.me, part.reply_to, after, is_it).await
            }
        };
        if let Some(ts) = left {
            self.streams.left_behind(part.event_id, MessageRef::new(&part.reply_to.channel, ts), after);
        }
        match &found {
            Err(failure) if failure.hides_the_past() => {
                tracing::warn!(%failure, "cannot check whether a part of a reply was already posted");
                if !failure.is_about_the_thread() {
                    self.statuses.unreadable(&part.reply_to.channel);
                }
                return Ok(Lookup::Unknown);
            }
            // It is too long.
            Ok(Lookup::Unknown) => self.statuses.unreadable(&part.reply_to.channel),
            Ok(Lookup::Yes(Some(ts))) => self.streams.has_become(part.event_id, ts),
            Ok(Lookup::No) if !pieces.is_empty() => {
                pieces.sort_by(|one, other| one.ts.cmp(&other.ts));
                let mut known = self.pieces();
                let known = known.entry(PiecesOf::part(part)).or_default();
                // Those that were posted a moment ago may not be shown yet.
                if pieces.len() > known.len() {
                    *known = pieces;
                }
            }
            _ => {}
        }
        found.map_err(CallFailure::while_running)
    }

    /// Posts or updates a part; the first part of an answer may already be there as a stream.
    async fn message(&self, part: &Delivery<'_>) -> Result<String, CallFailure> {
        let may_be_streamed = part.number == 0 && part.replaces.is_none() && delivery::is_block(part);
        if may_be_streamed && self.streams.know_of(part.event_id) {
            let buttons = self.web.refused.allowed(part.buttons);
            let (tag, word) = (delivery::tag(part), self.messages.stopped());
            let whole = self.streams.finish(&self.web, part, buttons, &tag, &word).await?;
            if let Some(ts) = whole {
                self.streams.has_become(part.event_id, &ts);
                return Ok(ts);
            }
        }
        let key = PiecesOf::part(part);
        let mut there = self.pieces().get(&key).cloned().unwrap_or_default();
        let sent = delivery::message(&self.web, part, &mut there).await;
        match &sent {
            Err(_) if !there.is_empty() => self.pieces().insert(key, there),
            _ => self.pieces().remove(&key),
        };
        let sent = sent?;
        if part.replaces.is_none() {
            self.statuses.posted(part.event_id, part.reply_to.thread_ts.as_deref());
        }
        Ok(sent)
    }

    fn pieces(&self) -> MutexGuard<'_, HashMap<PiecesOf, Vec<Piece>>> {
        // Every entry is complete.
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns who the bot is, and the address of its first socket. If Slack cannot answer now, it is asked again for a
/// while; a permanent error is reported at once.
async fn first_answers(web: &Web, timings: Timings) -> Result<(AuthInfo, Url), FrontError> {
    let begun = Instant::now();
    let mut pause = timings.retry_min;
    loop {
        match tokio::try_join!(web.identity(), web.open_connection()) {
            Err(failure) if failure.may_pass() && begun.elapsed() + pause.max(failure.wait()) < timings.start => {
                tracing::warn!(%failure, "Slack cannot answer now; retrying");
                tokio::time::sleep(pause.max(failure.wait())).await;
                pause = (pause * 2).min(LONGEST_START_PAUSE);
            }
            answered => return answered.map_err(CallFailure::at_start),
        }
    }
}

/// Returns the content that is shown in place of an answer.
fn waiting(line: &str) -> content::Content {
    content::Content::text(format!(":hourglass_flowing_sand: {}", mrkdwn::escape(line)))
}
