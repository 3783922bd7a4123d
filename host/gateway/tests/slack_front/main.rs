//! The Slack front against a strict Slack.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use pmk_host::{
    chat::{Accepted, Attachments, Inbound, MessageBody, Notice, Reaction, Refusal, ReplyTo},
    front::{
        BackfillRequest, Delivery, Front, FrontError, Intake, Kind,
        slack::{Limits, Slack, SlackConfig, Timings, TokenSource},
    },
};
use pmk_stand_ins::{
    patience::{PATIENCE, until_async},
    slack::{self as stand_in, Fault, SlackRules},
};
use pmk_system::error::Failure;
use tokio::{sync::watch, task::JoinHandle, time::timeout};
use tokio_util::sync::CancellationToken;

mod connections;
mod delivery;
mod rotation;
mod statuses;

const SOON: Duration = PATIENCE;

/// After this long, Slack may have given up sending an event, in some tests.
const GIVEN_UP: Duration = Duration::from_secs(3);

/// How the store behaves.
#[derive(Clone, Copy, PartialEq)]
enum Mood {
    Storing,
    Full,
    Stuck,
}

/// A store in memory that keeps what a real one would.
struct Memory {
    mood: watch::Sender<Mood>,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    seen: HashSet<String>,
    messages: Vec<Inbound>,
    reactions: Vec<Reaction>,
    notices: Vec<Notice>,
    duplicates: usize,
}

#[async_trait]
impl Intake for Memory {
    async fn accept(&self, message: Inbound) -> Result<Accepted, Failure> {
        let mut mood = self.mood.subscribe();
        let mood = *mood.wait_for(|mood| *mood != Mood::Stuck).await.expect("the sender lives as long as this");
        if mood == Mood::Full {
            return Err(Failure::new("the disk is full"));
        }
        let mut kept = self.kept.lock().expect("no test panics with it");
        let keys: Vec<String> = message.aliases.iter().chain([&message.event_id]).cloned().collect();
        if keys.iter().any(|key| kept.seen.contains(key)) {
            kept.duplicates += 1;
            return Ok(Accepted::Duplicate);
        }
        kept.seen.extend(keys);
        kept.messages.push(message);
        Ok(Accepted::New)
    }

    async fn react(&self, reaction: Reaction) -> Result<(), Failure> {
        self.kept.lock().expect("no test panics with it").reactions.push(reaction);
        Ok(())
    }

    fn notice(&self, notice: Notice) {
        self.kept.lock().expect("no test panics with it").notices.push(notice);
    }
}

/// A front that listens to a stand-in.
struct Rig {
    slack: stand_in::Slack,
    front: Arc<Slack>,
    memory: Arc<Memory>,
    stop: CancellationToken,
    listening: JoinHandle<Result<(), FrontError>>,
}

fn config(slack: &stand_in::Slack) -> SlackConfig {
    let rules = slack.rules();
    SlackConfig {
        api_url: slack.api_url(),
        request_timeout: Duration::from_secs(3),
        limits: if rules.limits.is_some() { Limits::Documented } else { Limits::Refusals },
        timings: Timings {
            connect: Duration::from_secs(1),
            ping: Duration::from_millis(100),
            pong: Duration::from_secs(2),
            retry_min: Duration::from_millis(20),
            retry_max: Duration::from_millis(100),
            spacing: Duration::from_millis(50),
            late: Duration::from_millis(50),
            start: Duration::ZERO,
            status: Duration::from_millis(900),
            ..Timings::default()
        },
        ..SlackConfig::new(rules.app_token.as_str().into(), rules.bot_token.as_str().into())
    }
}

impl Rig {
    async fn start() -> Self {
        Rig::with(SlackRules::quick()).await
    }

    async fn with(rules: SlackRules) -> Self {
        Rig::of(rules, None).await
    }

    async fn of(rules: SlackRules, source: Option<Arc<dyn TokenSource>>) -> Self {
        Rig::changed(rules, |config| SlackConfig { source, ..config }).await
    }

    /// One for which Slack may have given up sending an event after [`GIVEN_UP`].
    async fn impatient() -> Self {
        Rig::changed(SlackRules::quick(), |mut config| {
            config.timings.given_up = GIVEN_UP;
            config
        })
        .await
    }

    async fn changed(rules: SlackRules, change: impl FnOnce(SlackConfig) -> SlackConfig) -> Self {
        let slack = stand_in::Slack::start(rules).await;
        let config = change(config(&slack));
        let front = Arc::new(Slack::connect(config).await.expect("the stand-in takes its own tokens"));
        let memory = Arc::new(Memory { mood: watch::Sender::new(Mood::Storing), kept: Mutex::default() });
        let stop = CancellationToken::new();
        let listening = tokio::spawn({
            let (front, memory, stop) = (Arc::clone(&front), Arc::clone(&memory), stop.clone());
            async move { front.listen(memory.as_ref(), stop).await }
        });
        assert!(slack.await_sockets(2, SOON).await, "two sockets are kept open");
        Rig { slack, front, memory, stop, listening }
    }

    fn mood(&self, mood: Mood) {
        self.memory.mood.send_replace(mood);
    }

    fn messages(&self) -> Vec<Inbound> {
        self.memory.kept.lock().expect("no test panics with it").messages.clone()
    }

    /// Since how many milliseconds messages may be missing, as it was told.
    fn missing(&self) -> Vec<u128> {
        let told = self.notices().into_iter().filter_map(|notice| match notice {
            Notice::MayHaveMissed { since } => Some(since.as_millis()),
            _ => None,
        });
        told.collect()
    }

    fn texts(&self) -> Vec<String> {
        self.messages().into_iter().map(|message| message.text).collect()
    }

    fn notices(&self) -> Vec<Notice> {
        self.memory.kept.lock().expect("no test panics with it").notices.clone()
    }

    fn duplicates(&self) -> usize {
        self.memory.kept.lock().expect("no test panics with it").duplicates
    }

    /// Ends in an orderly way; nothing Slack would object to has happened.
    async fn finish(self) {
        self.stop.cancel();
        self.listening.await.expect("no panic").expect("an orderly end");
        assert!(self.slack.await_sockets(0, SOON).await, "no socket is left open");
        assert_eq!(self.slack.violations(), Vec::<String>::new());
        assert_eq!(self.slack.given_up(), Vec::<String>::new());
        assert_eq!(self.slack.unanswered_ends(), 0);
    }
}

/// Waits until something is so.
async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    until_async(what, || is_so().then_some(())).await;
}

fn place(channel: &str, thread_ts: Option<&str>) -> ReplyTo {
    ReplyTo { channel: channel.to_owned(), thread_ts: thread_ts.map(str::to_owned) }
}

/// A question that was asked there.
fn question(reply_to: &ReplyTo) -> Inbound {
    Inbound {
        event_id: "Ev1".to_owned(),
        aliases: vec![],
        key: "slack:dm:U1".parse().expect("a key"),
        user: "U1".to_owned(),
        reply_to: reply_to.clone(),
        text: "the question".to_owned(),
        attached: Attachments::default(),
        if_awaited: false,
        by_app: false,
        team: None,
        in_group: false,
        asked_at: None,
        ts: "1700000000.000200".to_owned(),
    }
}

fn speech(text: &str) -> MessageBody {
    MessageBody { text: text.to_owned(), pings: vec![] }
}

fn part<'a>(reply_to: &'a ReplyTo, replaces: Option<&'a str>, speech: &'a MessageBody) -> Delivery<'a> {
    Delivery { replaces, kind: Kind::Reply, ..Delivery::notice("Ev1", reply_to, speech) }
}

#[tokio::test]
async fn a_message_is_acknowledged_after_it_is_stored() {
    let rig = Rig::start().await;
    rig.mood(Mood::Stuck);
    let sent = rig.slack.dm("U1", "is anybody there?");
    let early = rig.slack.await_ack(&sent.event_id, Duration::from_millis(300)).await;
    assert!(early.is_none(), "acknowledged before it was stored");
    rig.mood(Mood::Storing);
    let ack = rig.slack.await_ack(&sent.event_id, SOON).await.expect("acknowledged once it is stored");
    assert_eq!(rig.texts(), ["is anybody there?"]);
    assert_eq!(rig.messages()[0].event_id, ack.event_id);
    rig.finish().await;
}

#[tokio::test]
async fn a_message_that_could_not_be_stored_comes_again_and_is_stored_once() {
    let rig = Rig::start().await;
    rig.mood(Mood::Full);
    let sent = rig.slack.dm("U1", "remember me");
    assert!(rig.slack.await_attempts(&sent.event_id, 2, SOON).await.is_some(), "Slack sends it again");
    assert!(rig.slack.acks().is_empty(), "acknowledged and not stored");
    rig.mood(Mood::Storing);
    assert!(rig.slack.await_ack(&sent.event_id, SOON).await.is_some());
    assert_eq!(rig.texts(), ["remember me"]);
    rig.finish().await;
}

#[tokio::test]
async fn a_redelivery_of_what_is_stored_is_acknowledged_as_a_duplicate() {
    let rig = Rig::start().await;
    let sent = rig.slack.dm("U1", "once");
    assert!(rig.slack.await_ack(&sent.event_id, SOON).await.is_some());
    rig.slack.redeliver(&sent.event_id);
    until("the second acknowledgement", || rig.slack.acks().len() == 2).await;
    assert_eq!((rig.texts(), rig.duplicates()), (vec!["once".to_owned()], 1));
    rig.finish().await;
}

#[tokio::test]
async fn a_mention_that_arrives_as_two_events_is_one_message() {
    let rig = Rig::start().await;
    let sent = rig.slack.mention("C1", "U1", "what is 1 &lt; 2?", Some("1700000000.000100"));
    until("both acknowledgements", || rig.slack.acks().len() == 2).await;
    let messages = rig.messages();
    assert_eq!(messages.len(), 1);
    assert_eq!(messages[0].event_id, sent.event_id, "the mention itself, not the plain message");
    assert_eq!(messages[0].text, "what is 1 < 2?");
    assert_eq!(messages[0].key.to_string(), "slack:channel:C1:1700000000.000100");
    assert_eq!(messages[0].aliases, [format!("ts:{}:C1:{}", stand_in::TEAM, sent.ts)]);
    assert_eq!(rig.duplicates(), 0, "the plain message never reaches the store");
    rig.finish().await;
}

#[tokio::test]
async fn no_message_is_lost_while_slack_renews_the_connections() {
    let rig = Rig::start().await;
    let (mut said, mut fewest) = (0, usize::MAX);
    for reason in ["warning", "refresh_requested"] {
        let old = rig.slack.open_sockets();
        assert_eq!(old.len(), 2);
        rig.slack.disconnect(reason);
        let are_replaced = |now: &[u64]| now.len() == 2 && now.iter().all(|socket| !old.contains(socket));
        // Until both were, somebody always says something.
        while !are_replaced(&rig.slack.open_sockets()) {
            said += 1;
            let sent = rig.slack.dm("U1", &format!("message {said}"));
            assert!(rig.slack.await_ack(&sent.event_id, SOON).await.is_some(), "{sent:?} was never acknowledged");
            fewest = fewest.min(rig.slack.sockets());
        }
    }
    let distinct: HashSet<String> = rig.texts().into_iter().collect();
    assert_eq!((distinct.len(), rig.messages().len()), (said, said));
    assert!(fewest >= 2, "the old connections were closed before the new ones were open");
    rig.finish().await;
}

#[tokio::test]
async fn connections_that_break_are_replaced() {
    let rig = Rig::start().await;
    rig.slack.fault_times("link", 2, Fault::Status(503));
    rig.slack.drop_connections();
    assert!(rig.slack.await_sockets(0, SOON).await);
    let sent = rig.slack.dm("U1", "sent while nobody was connected");
    assert!(rig.slack.await_sockets(2, SOON).await, "both are opened again");
    assert!(rig.slack.await_ack(&sent.event_id, SOON).await.is_some(), "the redelivery is taken");
    assert_eq!(rig.texts(), ["sent while nobody was connected"]);
    rig.finish().await;
}

#[tokio::test]
async fn silent_connections_are_given_up() {
    let rig = Rig::start().await;
    rig.slack.freeze_connections();
    let opened = rig.slack.call_count("apps.connections.open");
    until("two new connections", || rig.slack.call_count("apps.connections.open") == opened + 2).await;
    assert!(rig.slack.await_sockets(4, SOON).await, "Slack does not know yet that two of them are dead");
    let sent = rig.slack.dm("U1", "hello?");
    rig.slack.drop_connections();
    assert!(rig.slack.await_ack(&sent.event_id, SOON).await.is_some());
    assert_eq!(rig.texts(), ["hello?"]);
    rig.finish().await;
}

#[tokio::test]
async fn trouble_while_reconnecting_passes() {
    let rig = Rig::start().await;
    rig.slack.fault_times("apps.connections.open", 3, Fault::Status(500));
    rig.slack.fault_times("link", 2, Fault::Stall);
    rig.slack.drop_connections();
    assert!(rig.slack.await_sockets(0, SOON).await);
    assert!(rig.slack.await_sockets(2, SOON).await, "it kept trying");
    rig.finish().await;
}

#[tokio::test]
async fn stopping_waits_for_what_is_being_stored() {
    let mut rig = Rig::start().await;
    rig.mood(Mood::Stuck);
    let sent = rig.slack.dm("U1", "just in time");
    until("the store has it", || rig.memory.mood.receiver_count() == 1).await;
    rig.stop.cancel();
    // The wait does no harm to a machine of any speed: one that ends too early is seen, or is not.
    assert!(timeout(Duration::from_millis(100), &mut rig.listening).await.is_err(), "a message is still being stored");
    rig.mood(Mood::Storing);
    assert!(rig.slack.await_ack(&sent.event_id, SOON).await.is_some(), "it is acknowledged before the end");
    assert_eq!(rig.texts(), ["just in time"]);
    rig.finish().await;
}

#[tokio::test]
async fn a_start_that_fails_is_one_clear_line() {
    let slack = stand_in::Slack::start(SlackRules::quick()).await;
    let bot = "`auth.test` with the bot token (xoxb-…)";
    let app = "`apps.connections.open` with the app token (xapp-…)";
    for (fault, how) in [
        (Fault::Status(500), "failed: Slack answered HTTP 500"),
        (Fault::Stall, "got no answer within 0.5 s"),
        (Fault::Error("invalid_auth"), "failed: Slack says `invalid_auth`"),
        (Fault::Error("not_allowed_token_type"), "failed: Slack says `not_allowed_token_type`"),
        (Fault::Garbage, "got an answer that is not from Slack"),
    ] {
        for (method, call) in [("auth.test", bot), ("apps.connections.open", app)] {
            slack.fault(method, fault.clone());
            // Only where nothing else is to be heard is the wait cut short.
            let patience = if fault == Fault::Stall { Duration::from_millis(500) } else { SOON };
            let config = SlackConfig { request_timeout: patience, ..config(&slack) };
            let error = Slack::connect(config).await.expect_err(method);
            slack.heal(method);
            let FrontError::Fatal { what, hint } = error else { panic!("{fault:?}: {error:?}") };
            assert_eq!(what, format!("{call} {how}"));
            assert!(!hint.is_empty() && !hint.contains('\n'), "{what}: {hint}");
        }
    }
    assert!(Slack::connect(config(&slack)).await.is_ok(), "and without faults it starts");
}

#[tokio::test]
async fn bad_tokens_are_named_by_kind_and_never_shown() {
    let slack = stand_in::Slack::start(SlackRules::quick()).await;
    let right = config(&slack);
    let with = |app: &str, bot: &str| SlackConfig { app_token: app.into(), bot_token: bot.into(), ..right.clone() };
    for (config, expected) in [
        (
            with("xapp-secret", "xoxb-stand-in"),
            "`apps.connections.open` with the app token (xapp-…) failed: Slack says `invalid_auth`",
        ),
        (
            with("xapp-1-stand-in", "xoxb-secret"),
            "`auth.test` with the bot token (xoxb-…) failed: Slack says `invalid_auth`",
        ),
        (with("xoxb-secret", "xapp-secret"), "the Slack app token begins with `xoxb-`, so it is the bot token"),
        (with("xapp-1-stand-in", " "), "the Slack bot token is empty"),
        (with("xapp-1-stand-in", "xoxb-se\ncret"), "the Slack bot token contains invalid characters"),
    ] {
        assert!(!format!("{config:?}").contains("secret"));
        let Err(FrontError::Fatal { what, hint }) = Slack::connect(config).await else { panic!("{expected}") };
        assert_eq!(what, expected);
        assert!(!hint.contains("secret"), "{hint}");
    }
}

#[tokio::test]
async fn an_address_that_will_not_do_is_said_at_once() {
    let slack = stand_in::Slack::start(SlackRules::quick()).await;
    let nowhere = SlackConfig { api_url: "http://127.0.0.1:1/api".to_owned(), ..config(&slack) };
    let Err(FrontError::Fatal { what, .. }) = Slack::connect(nowhere).await else { panic!("connected to nowhere") };
    assert!(what.contains("did not reach Slack: ") && what.contains("refused"), "{what}");
    let elsewhere = SlackConfig { api_url: "https://slack.evil.example/api".to_owned(), ..config(&slack) };
    let Err(FrontError::Fatal { what, .. }) = Slack::connect(elsewhere).await else { panic!("sent the tokens away") };
    assert!(what.contains("`https://slack.evil.example/api` is not Slack's"), "{what}");
}

#[tokio::test]
async fn an_answer_takes_the_place_of_its_placeholder() {
    let rig = Rig::with(SlackRules::quick().without_statuses()).await;
    for place in [place("D1", None), place("C1", Some("1700000000.000100"))] {
        let placeholder =
            rig.front.placeholder(&question(&place), ":hourglass: …").await.expect("posted").expect("Slack has ids");
        assert_eq!(rig.slack.placeholders(&place.channel).len(), 1);
        let id = rig.front.deliver(part(&place, Some(&placeholder), &speech("the answer"))).await.expect("delivered");
        assert_eq!(id.as_deref(), Some(placeholder.as_str()));
        let more = rig.front.deliver(part(&place, None, &speech("and more"))).await.expect("delivered");
        assert!(more > id, "a new message behind it");
        let replies = rig.slack.replies(&place.channel);
        let said: Vec<_> = replies.iter().map(|reply| (reply.text.as_str(), reply.thread_ts.as_deref())).collect();
        let thread = place.thread_ts.as_deref();
        assert_eq!(said, [("the answer", thread), ("and more", thread)]);
        assert!(rig.slack.placeholders(&place.channel).is_empty());
    }
    rig.finish().await;
}

#[tokio::test]
async fn nothing_in_an_answer_mentions_anyone() {
    let rig = Rig::with(SlackRules::quick().without_statuses()).await;
    let place = place("C1", None);
    let text = "hey <!channel> & <@U1>, see <https://evil.example|slack.com> &lt;!here&gt;";
    let placeholder =
        rig.front.placeholder(&question(&place), ":hourglass: …").await.expect("posted").expect("Slack has ids");
    rig.front.deliver(part(&place, Some(&placeholder), &speech(text))).await.expect("delivered");
    rig.front.deliver(part(&place, None, &speech(text))).await.expect("delivered");
    let replies = rig.slack.replies("C1");
    assert_eq!(replies.len(), 2);
    for reply in replies {
        assert_eq!(
            reply.text,
            "hey &lt;!channel&gt; &amp; &lt;@U1&gt;, see <https://evil.example%7Cslack.com> &lt;!here&gt;"
        );
    }
    for method in ["chat.postMessage", "chat.update"] {
        for call in rig.slack.calls(method) {
            assert_eq!((&call.body["parse"], &call.body["link_names"]), (&"none".into(), &false.into()), "{method}");
        }
    }
    rig.finish().await;
}

#[tokio::test]
async fn parts_are_small_enough_for_slack() {
    let rig = Rig::with(SlackRules::quick().without_statuses()).await;
    let place = place("D1", None);
    let placeholder =
        rig.front.placeholder(&question(&place), ":hourglass: …").await.expect("posted").expect("Slack has ids");
    let hostile = ["<&>".repeat(2_000), "中文沒有空格".repeat(900), "👨‍👩‍👧".repeat(700), "words in lines\n".repeat(900)];
    for text in hostile {
        let parts = rig.front.split(&text, Kind::Notice);
        assert!(parts.len() > 1);
        for text in &parts {
            rig.front.deliver(part(&place, Some(&placeholder), &speech(text))).await.expect("Slack takes it");
        }
    }
    rig.finish().await;
}

#[tokio::test]
async fn a_placeholder_that_is_gone_is_refused() {
    let rig = Rig::start().await;
    let place = place("D1", None);
    let gone = rig.front.deliver(part(&place, Some("1700000000.000100"), &speech("the answer"))).await;
    assert!(matches!(gone, Err(FrontError::Refused { .. })), "{gone:?}");
    let question = rig.slack.dm("U1", "mine");
    let foreign = rig.front.deliver(part(&place, Some(&question.ts), &speech("the answer"))).await;
    assert!(matches!(foreign, Err(FrontError::Refused { .. })), "{foreign:?}");
    rig.finish().await;
}

#[tokio::test]
async fn a_rate_limit_is_kept_until_it_ends() {
    let rig = Rig::with(SlackRules::quick().without_statuses()).await;
    let place = place("D1", None);
    let placeholder =
        rig.front.placeholder(&question(&place), ":hourglass: …").await.expect("posted").expect("Slack has ids");
    rig.slack.fault_times("chat.update", 1, Fault::RateLimited(1));
    let said = speech("the answer");
    let update = || rig.front.deliver(part(&place, Some(&placeholder), &said));
    let limited = update().await;
    let Err(FrontError::Transient { retry_after: Some(wait), .. }) = limited else { panic!("{limited:?}") };
    assert_eq!(wait, Duration::from_secs(1));
    rig.front.deliver(part(&place, None, &speech("another method"))).await.expect("its limit is its own");
    assert_eq!(rig.slack.call_count("chat.update"), 1, "Slack was asked again before it wanted to be");
    // Until the wait is over, Slack is not asked.
    update().await.expect("it waits for its turn");
    let calls = rig.slack.calls("chat.update");
    assert!(calls.len() == 2 && calls[1].at - calls[0].at >= wait, "{calls:?}");
    rig.finish().await;
}

#[tokio::test]
async fn trouble_with_delivering_passes() {
    let rig = Rig::start().await;
    let place = place("D1", None);
    for fault in [Fault::Status(500), Fault::Stall, Fault::Garbage, Fault::Error("internal_error")] {
        rig.slack.fault_times("chat.postMessage", 1, fault.clone());
        let end = rig.front.deliver(part(&place, None, &speech("the answer"))).await;
        assert!(matches!(end, Err(FrontError::Transient { .. })), "{fault:?}: {end:?}");
    }
    rig.slack.fault_times("chat.postMessage", 1, Fault::Error("account_inactive"));
    let end = rig.front.deliver(part(&place, None, &speech("the answer"))).await;
    assert!(matches!(end, Err(FrontError::Fatal { .. })), "{end:?}");
    rig.front.deliver(part(&place, None, &speech("the answer"))).await.expect("all is well again");
    assert_eq!(rig.slack.replies("D1").len(), 1);
    rig.finish().await;
}

/// Regression: after an outage, each channel had fifty threads read with it, however many channels there were.
#[tokio::test]
async fn the_threads_that_were_read_with_channels_had_no_limit_in_all() {
    let rig = Rig::start().await;
    for topic in ["one", "two"] {
        let root = rig.slack.talk("C1", "U2", topic, None);
        rig.slack.talk("C1", "U2", "<@U0BOT> why?", Some(&root.ts));
    }
    for (most_threads, threads, is_whole) in [(50, 2, true), (1, 1, false), (0, 0, false)] {
        let (channel, after) = ("C1".into(), "1.0".into());
        let everything =
            BackfillRequest { channel, thread_ts: None, after, read_apart: vec![], most_threads, is_last: false };
        let past = rig.front.look_back(&everything).await.expect("it can be read");
        let found = past.messages.len() + past.in_threads.len();
        assert_eq!((past.threads, found, past.is_whole), (threads, threads, is_whole), "{most_threads}");
    }
    rig.finish().await;
}

/// Regression: where the threads with the newest replies failed, the others were never read.
#[tokio::test]
async fn threads_that_failed_kept_all_others_from_being_read() {
    let rig = Rig::start().await;
    for topic in ["one", "two", "three", "four", "five"] {
        let root = rig.slack.talk("C1", "U2", topic, None);
        rig.slack.talk("C1", "U2", "<@U0BOT> why?", Some(&root.ts));
    }
    for (is_last, threads) in [(false, 0), (true, 2)] {
        rig.slack.fault_times("conversations.replies", 3, Fault::Error("internal_error"));
        let (channel, after) = ("C1".into(), "1.0".into());
        let everything =
            BackfillRequest { channel, thread_ts: None, after, read_apart: vec![], most_threads: 50, is_last };
        let past = rig.front.look_back(&everything).await.expect("it can be read");
        assert_eq!((past.threads, past.is_whole, past.has_failed), (threads, true, true), "{is_last}");
    }
    rig.finish().await;
}
