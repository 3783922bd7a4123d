//! The real front for Slack, in worlds over calls: what people do comes by its [sockets](super::lines), and whatever it
//! posts, streams, edits, removes, fetches and looks for goes through its client and its limiter to the [other
//! end](super::web). Only histories are read back without it, as in other worlds.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use jiff::SignedDuration;
use pmk_core::Language;
use pmk_host::{
    chat::{Connection, Inbound, MessageBody, Refusal, ReplyTo},
    front::{
        BackfillRequest, Delivery, Fetched, Front, FrontError, Intake, Kind, Lookup, OnStreamed, Past, Progress,
        slack::{self, SlackConfig, Timings},
    },
    ledger::report::TurnReport,
    store::HostFence,
};
use pmk_models::Listener;
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

use super::{Slack, watched::Watched, web::Carrier};

/// How often a connection is pinged: rarely, because a world lasts for hours.
const PING: Duration = Duration::from_secs(20);

/// The real front, and the world that it talks to.
pub struct Wired {
    slack: Arc<Slack>,
    front: slack::Slack,
}

impl Wired {
    /// Connects a process that has this fence.
    pub async fn connect(slack: &Arc<Slack>, fence: HostFence, language: Language) -> Result<Wired, FrontError> {
        let config = SlackConfig {
            api_url: "http://127.0.0.1:9/api".to_owned(),
            transport: Some(Arc::new(Carrier(Arc::clone(slack)))),
            fence: Some(Arc::new(fence)),
            language,
            timings: Timings { ping: PING, ..Timings::default() },
            ..SlackConfig::new(SecretString::from("xapp-1"), SecretString::from("xoxb-1"))
        };
        Ok(Wired { slack: Arc::clone(slack), front: slack::Slack::connect(config).await? })
    }
}

#[async_trait]
impl Front for Wired {
    async fn listen(&self, intake: &dyn Intake, stop: CancellationToken) -> Result<(), FrontError> {
        let watched = Watched { slack: &self.slack, intake };
        let (people, bot) = tokio::join!(self.slack.listen(intake, stop.clone()), self.front.listen(&watched, stop));
        people.and(bot)
    }

    async fn show(&self, question: &Inbound, text: &str) -> bool {
        self.front.show(question, text).await
    }

    fn shows_by_messages(&self) -> bool {
        self.front.shows_by_messages()
    }

    async fn placeholder(&self, question: &Inbound, text: &str) -> Result<Option<String>, FrontError> {
        let (Inbound { event_id, reply_to, .. }, speech) = (question, MessageBody::default());
        let part = Delivery { kind: Kind::Placeholder, ..Delivery::notice(event_id, reply_to, &speech) };
        self.slack.state().expected.part(&part);
        self.front.placeholder(question, text).await
    }

    async fn progress(&self, progress: &Progress) -> Result<(), FrontError> {
        self.front.progress(progress).await
    }

    fn listener(&self, question: &Inbound, streamed: OnStreamed) -> Option<Arc<dyn Listener>> {
        self.slack.state().expected.answer(&question.reply_to, &question.event_id);
        self.front.listener(question, streamed)
    }

    fn split(&self, text: &str, kind: Kind) -> Vec<String> {
        self.front.split(text, kind)
    }

    fn most_parts(&self) -> usize {
        self.front.most_parts()
    }

    async fn deliver(&self, part: Delivery<'_>) -> Result<Option<String>, FrontError> {
        {
            let mut state = self.slack.state();
            state.expected.part(&part);
            if part.kind == Kind::Notice {
                state.noticed.extend(super::Tag::of(&part).numbers());
            }
        }
        self.front.deliver(part).await
    }

    async fn find(&self, part: &Delivery<'_>, after: &str, is_streamed: bool) -> Result<Lookup, FrontError> {
        self.front.find(part, after, is_streamed).await
    }

    async fn recall(&self, event_id: &str, reply_to: &ReplyTo, after: &str) -> Result<(), FrontError> {
        self.front.recall(event_id, reply_to, after).await
    }

    async fn was_streamed(&self, question: &Inbound, id: &str) -> Result<(), FrontError> {
        self.front.was_streamed(question, id).await
    }

    async fn withdraw(&self, reply_to: &ReplyTo, id: &str) -> Result<(), FrontError> {
        self.front.withdraw(reply_to, id).await
    }

    async fn take_back(&self, reply_to: &ReplyTo, id: &str) -> Result<(), FrontError> {
        self.front.take_back(reply_to, id).await
    }

    async fn mark(&self, event_id: &str, reply_to: &ReplyTo, ts: &str, emoji: &str) -> Result<(), FrontError> {
        self.front.mark(event_id, reply_to, ts, emoji).await
    }

    async fn direct(&self, person: &str) -> Result<String, FrontError> {
        self.front.direct(person).await
    }

    async fn whisper(&self, person: &str, place: &ReplyTo, text: &str) -> Result<(), FrontError> {
        self.front.whisper(person, place, text).await
    }

    fn clock_ahead(&self) -> Option<SignedDuration> {
        self.slack.clock_ahead()
    }

    fn connection(&self) -> Option<Connection> {
        self.front.connection()
    }

    fn refusal(&self) -> Option<Refusal> {
        self.front.refusal()
    }

    fn deaf_for(&self) -> Option<Duration> {
        self.front.deaf_for()
    }

    fn was_deaf(&self, ago: Duration) {
        self.front.was_deaf(ago);
    }

    fn reaches_absent(&self) -> bool {
        self.front.reaches_absent()
    }

    async fn look_back(&self, place: &BackfillRequest) -> Result<Past, FrontError> {
        self.slack.look_back(place).await
    }

    async fn fetch(&self, address: &str, said_bytes: Option<u64>, most: u64) -> Result<Fetched, FrontError> {
        self.front.fetch(address, said_bytes, most).await
    }

    async fn report(&self, event_id: &str, report: &TurnReport) -> Result<(), FrontError> {
        self.slack.report(event_id, report).await
    }

    async fn clear(&self, event_id: &str) -> Result<(), FrontError> {
        self.front.clear(event_id).await
    }

    async fn resumed(&self, question: &Inbound) {
        self.front.resumed(question).await;
    }

    async fn over(&self, event_id: &str) {
        self.front.over(event_id).await;
    }

    async fn leave(&self) {
        self.front.leave().await;
    }
}
