//! Several hosts on one database, in one workspace: whatever happens to them, every question is answered once, and those of a
//! conversation in their order.

use std::{
    collections::{HashMap, HashSet},
    net::SocketAddr,
    process::{Command, ExitStatus},
    time::{Duration, Instant},
};

use pmk_linear::Line;
use pmk_stand_ins::{
    anthropic::{self, Anthropic, Behaviour},
    namespace::Namespace,
    postgres::{self, Server},
    relay::Relay,
    slack::{BOT_USER, Fault, Message, Raw, Slack, TEAM, dm_channel},
};

use serde_json::json;

use crate::{
    moments::Moments,
    posting::{ROOT, paragraphs},
    presence::age,
    support::{Home, PATIENCE, component, stand_in, until_async},
    workspace::{self, Gateway, is_of_presence, rules_for_kills},
};

const HOSTS: usize = 3;

/// How much happens. `PMK_HOSTS_FALSE_CLOCK` names libfaketime's library: then one of the hosts has a clock that is an hour ahead.
struct Size {
    /// `PMK_HOSTS_FAULTS=1000` for an hour's worth.
    faults: usize,
    /// `PMK_HOSTS_CONVERSATIONS`
    conversations: usize,
    /// Asked at each fault, at most; `PMK_HOSTS_QUESTIONS`.
    questions: usize,
    /// Whether an answer takes a placeholder's place and is not a message of its own; `PMK_HOSTS_PLACEHOLDERS`.
    has_placeholders: bool,
}

impl Size {
    fn of_surroundings() -> Size {
        let number = |name: &str, else_it_is: usize| {
            std::env::var(name).ok().map_or(else_it_is, |number| number.parse().expect("a number"))
        };
        Size {
            faults: number("PMK_HOSTS_FAULTS", 14),
            conversations: number("PMK_HOSTS_CONVERSATIONS", 12),
            questions: number("PMK_HOSTS_QUESTIONS", 8),
            has_placeholders: std::env::var_os("PMK_HOSTS_PLACEHOLDERS").is_some(),
        }
    }
}

/// What happens to a host, or to all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Harm {
    Killed,
    /// Stopped until others take it for gone, and gone on with.
    Stopped,
    /// Asked to end, and started again.
    Restarted,
    /// Cut off from everything without a word until others take it for gone, and back with what was on its way.
    CutFromAll,
    /// Cut off from the database, and back before its lease is over.
    CutFromDatabase,
    /// All connections to the database end at once.
    DatabaseRestarted,
    /// All sockets of Slack's end without a word.
    CutFromSlack,
    /// Cut off from the model, and back a moment later.
    CutFromModel,
    /// A program of a later version adds to the schema while all work.
    Upgraded,
}

const HARMS: [Harm; 9] = [
    Harm::Killed,
    Harm::Stopped,
    Harm::Restarted,
    Harm::CutFromAll,
    Harm::CutFromDatabase,
    Harm::DatabaseRestarted,
    Harm::CutFromSlack,
    Harm::CutFromModel,
    Harm::Upgraded,
];

/// What a later version may do to the schema, while nobody else writes: this one's programs go on.
const ADDS: &str = "BEGIN; SELECT pg_advisory_xact_lock(1886219112, hashtext(current_schema())); UPDATE pmk_schema SET oldest = least(oldest, version), version = version + 1;
    DO $$ DECLARE name TEXT; BEGIN
        FOREACH name IN ARRAY ARRAY['session', 'inbox', 'turn', 'message', 'outbox', 'host'] LOOP
            EXECUTE format('ALTER TABLE %I ADD COLUMN later_%s TEXT', name, (SELECT version FROM pmk_schema));
        END LOOP;
    END $$; COMMIT";

/// What all of them talk to.
struct World {
    slack: Slack,
    anthropic: Anthropic,
}

/// A question, and where it was asked.
struct Asked {
    conversation: usize,
    text: String,
    ts: String,
}

/// A host with a home of its own and ways of its own to the database and to the model; in a network of its own, where tests may
/// make one.
struct Host {
    // Goes before the home, in which it writes its log, and before the network that it is in.
    running: Option<Gateway>,
    home: Home,
    relay: Relay,
    model: Relay,
    store: String,
    network: Option<Namespace>,
    /// A library by which its clock is an hour ahead.
    false_clock: Option<String>,
}

impl Host {
    fn new(server: &Server, store: &str, world: &World) -> Host {
        Host::within(None, server, store, world)
    }

    fn within(network: Option<Namespace>, server: &Server, store: &str, World { slack, anthropic }: &World) -> Host {
        let home = Home::new();
        home.write("gateway.json", r#"{"version":1,"language":"en"}"#);
        let way_to = |server| match &network {
            Some(network) => network.let_in(server, 0),
            None => Relay::start(server),
        };
        let (relay, model) = (way_to(([127, 0, 0, 1], server.port()).into()), way_to(address(&anthropic.url())));
        if let Some(network) = &network {
            // It says itself where its sockets are.
            let slack = address(&slack.api_url());
            network.let_in(slack, slack.port());
        }
        let store = store.replace(&server.port().to_string(), &relay.address().port().to_string());
        Host { running: None, home, relay, model, store, network, false_clock: None }
    }

    fn start(&mut self, World { slack, anthropic }: &World) {
        let strict = component("strict");
        let more = ["--model", "anthropic-api", "--store", &self.store, "--policy", &strict];
        let mut command = workspace::command(&self.home, slack, &more);
        let url = anthropic.url().replace(&address(&anthropic.url()).to_string(), &self.model.address().to_string());
        command.env("ANTHROPIC_API_KEY", anthropic::KEY).env("ANTHROPIC_BASE_URL", url);
        if let Some(library) = &self.false_clock {
            // What a machine counts from its start is not ahead: who waits by that would wait for an hour more.
            command.env("LD_PRELOAD", library).env("FAKETIME", "+1h").env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        }
        let command = match &self.network {
            Some(network) => network.command(&command),
            None => command,
        };
        self.running = Some(Gateway::spawn(&self.home, command));
    }

    /// As a service manager does: one that others have taken for gone ends.
    fn restart_if_ended(&mut self, world: &World) {
        if self.running.as_mut().is_some_and(|gateway| gateway.ended().is_some()) {
            self.start(world);
        }
    }

    fn running(&mut self) -> Gateway {
        self.running.take().expect("it runs")
    }

    /// How it ends, which it does sooner or later.
    async fn ends(&mut self) -> ExitStatus {
        let mut gateway = self.running();
        until_async("it is stopping", || gateway.ended()).await
    }

    /// Nobody hears of it, and it of nobody, or that is over.
    fn is_gone_for_a_while(&self, harm: Harm, is_gone: bool) {
        match (harm, &self.network, is_gone) {
            (Harm::CutFromAll, Some(network), true) => network.cut(),
            (Harm::CutFromAll, Some(network), false) => network.mend(),
            (_, _, true) => self.signal("-STOP"),
            (_, _, false) => self.signal("-CONT"),
        }
    }

    /// The messages that its ledger says may stand there twice.
    fn may_repeat(&self) -> Vec<String> {
        let lines = self.home.ledger().into_iter().filter(|line| line["type"] == "reply.may-repeat");
        lines.map(|line| line["replyTs"].as_str().expect("a message").to_owned()).collect()
    }

    fn signal(&self, name: &str) {
        let pid = self.running.as_ref().expect("it runs").pid().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().expect("kill runs").success());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_host_is_at_that_does_not_reach_slack_is_answered_by_another_that_does() {
    let Some(server) = postgres::server() else { return };
    let (store, slack) = (server.database(), Slack::start(rules_for_kills().unlimited()).await);
    let name = store.rsplit('/').next().expect("a name");
    let homes = [Home::new(), Home::new()];
    let api = address(&slack.api_url());
    let relay = Relay::start(api);
    let begin = |home: &Home, url: String| {
        home.write("gateway.json", r#"{"version":1,"language":"en"}"#);
        let mut command = workspace::command(home, &slack, &["--store", &store, "--model", "sim:delay=8000"]);
        command.env("PMK_SLACK_API_URL", url);
        Gateway::spawn(home, command)
    };
    let mut cut = begin(&homes[0], slack.api_url().replace(&api.to_string(), &relay.address().to_string()));
    assert!(slack.await_sockets(2, PATIENCE).await, "it listens");
    slack.dm("U1", "what is left of the margin?");
    until_async("it is at it", || {
        let at_work = server.psql(name, "SELECT count(*) FROM session WHERE lease_owner IS NOT NULL");
        (at_work.as_deref() == Ok("1")).then_some(())
    })
    .await;
    let other = begin(&homes[1], slack.api_url());
    assert!(slack.await_sockets(4, PATIENCE).await, "both do");
    relay.cut();
    slack.drop_connections();
    let ended = until_async("it goes", || cut.ended()).await;
    assert!(!ended.success());
    assert!(cut.log().contains("error: this host can no longer reach Slack, but another one can"), "{}", cut.log());
    until_async("the other answers", || {
        let answered = server.psql(name, "SELECT count(*) FROM turn WHERE delivered_at IS NOT NULL");
        (answered.as_deref() == Ok("1")).then_some(())
    })
    .await;
    let told: Vec<String> = replies(&slack, "U1").iter().map(Message::shown).collect();
    assert_eq!(told.len(), 1, "{told:#?}");
    assert!(other.terminate().success());
}

/// What a host that stands still has on its way may arrive whenever it goes on.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_a_stopped_host_may_have_on_its_way_is_named_by_the_one_that_gives_it() {
    let Some(server) = postgres::server() else { return };
    let world = World { slack: Slack::start(rules_for_kills().unlimited()).await, anthropic: Anthropic::start().await };
    let (slack, store) = (&world.slack, server.database());
    let [mut stopped, mut other] = [(); 2].map(|()| Host::new(server, &store, &world));
    stopped.start(&world);
    assert!(slack.await_sockets(2, PATIENCE).await, "it listens");
    slack.fault_times("chat.postMessage", 1, Fault::Stall);
    ask(slack, &mut Vec::new(), 0);
    until_async("it answers", || (slack.call_count("chat.postMessage") == 1).then_some(())).await;
    stopped.signal("-STOP");
    other.start(&world);
    until_async("the other answers", || (answered(slack, 1) == 1).then_some(())).await;
    let answer = replies(slack, &user(0)).remove(0).ts;
    until_async("it says so", || (other.may_repeat() == [answer.clone()]).then_some(())).await;
    stopped.signal("-CONT");
    assert!(!stopped.ends().await.success());
    assert!(other.running().terminate().success());
}

/// Whoever had answered had looked for it in vain, and nothing ever took its place.
#[tokio::test(flavor = "multi_thread")]
async fn a_placeholder_that_a_stopped_host_had_on_its_way_stood_for_ever() {
    let Some(server) = postgres::server() else { return };
    let rules = rules_for_kills().unlimited().without_statuses();
    let world = World { slack: Slack::start(rules).await, anthropic: Anthropic::start().await };
    let (slack, store) = (&world.slack, server.database());
    let [mut stopped, mut other] = [(); 2].map(|()| Host::new(server, &store, &world));
    stopped.start(&world);
    assert!(slack.await_sockets(2, PATIENCE).await, "it listens");
    slack.fault_times("chat.postMessage", 1, Fault::Held);
    ask(slack, &mut Vec::new(), 0);
    until_async("it begins", || (slack.call_count("chat.postMessage") == 1).then_some(())).await;
    stopped.signal("-STOP");
    other.start(&world);
    until_async("the other answers", || (answered(slack, 1) == 1).then_some(())).await;
    let channel = dm_channel(&user(0));
    slack.heal("chat.postMessage");
    until_async("it comes", || (slack.placeholders(&channel).len() == 1).then_some(())).await;
    stopped.signal("-CONT");
    assert!(!stopped.ends().await.success());
    assert!(slack.placeholders(&channel).is_empty(), "{:#?}", slack.messages(&channel));
    assert_eq!(answered(slack, 1), 1, "{:#?}", replies(slack, &user(0)));
    assert!(other.running().terminate().success());
}

/// Who had asked saw for a moment what they had asked for, and then for ever that it is being looked for.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_went_on_showed_progress_over_the_answer_that_another_had_given_meanwhile() {
    const QUESTION: &str = "Where is the scope of sales defined?";
    const ANSWER: &str = "It is in app/models/sales.rb.";
    let Some(server) = postgres::server() else { return };
    let rules = rules_for_kills().unlimited().without_statuses();
    let world = World { slack: Slack::start(rules).await, anthropic: Anthropic::start().await };
    let (slack, store) = (&world.slack, server.database());
    world.anthropic.when(QUESTION, Behaviour::calls([("mra_ask", json!({"repo": "erp", "question": "sales?"}))]));
    world.anthropic.when("found; answer the question from it:", Behaviour::answer(ANSWER));
    let scripts = ["wait go\nout [ask] querying\nmark said\nhang", "out app/models/sales.rb"];
    let [mut stopped, mut other] = scripts.map(|script| {
        let host = Host::new(server, &store, &world);
        let command = stand_in("mra", &host.home.write("mra.script", script));
        let config =
            json!({"version": 1, "language": "en", "limits": {"progressSeconds": 0.001}, "mra": {"command": command}});
        host.home.write("gateway.json", config.to_string());
        host
    });
    stopped.start(&world);
    assert!(slack.await_sockets(2, PATIENCE).await, "it listens");
    let asked = slack.dm("U0", QUESTION);
    until_async("it looks", || {
        slack.messages(&asked.channel).iter().any(|shown| shown.text.contains("Looking into")).then_some(())
    })
    .await;
    let name = store.rsplit('/').next().expect("a name");
    until_async("it is known where", || {
        let known = server.psql(name, "SELECT count(*) FROM turn WHERE placeholder IS NOT NULL");
        (known.as_deref() == Ok("1")).then_some(())
    })
    .await;
    stopped.signal("-STOP");
    other.start(&world);
    let answer = slack.await_reply(&asked, PATIENCE).await.expect("an answer");
    assert_eq!(answer.text, ANSWER);
    stopped.home.write("go", "");
    until_async("there is something to show", || stopped.home.path().join("said").exists().then_some(())).await;
    stopped.signal("-CONT");
    assert!(!stopped.ends().await.success());
    let replies = slack.replies(&asked.channel);
    assert_eq!(
        replies.iter().map(|reply| &*reply.text).collect::<Vec<_>>(),
        [ANSWER],
        "{:#?}",
        slack.messages(&asked.channel)
    );
    assert!(other.running().terminate().success());
}

/// Regression: only the host that made an answer knew which message it grows as, and Slack sends a stop to any of them.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_grows_is_stopped_through_any_host() {
    let Some(server) = postgres::server() else { return };
    let world = World { slack: Slack::start(rules_for_kills().unlimited()).await, anthropic: Anthropic::start().await };
    let (slack, store) = (&world.slack, server.database());
    let [mut makes_it, mut other] = [(); 2].map(|()| Host::new(server, &store, &world));
    let (answer, gate) = Behaviour::gated(paragraphs(40));
    world.anthropic.push(answer);
    makes_it.start(&world);
    assert!(slack.await_sockets(2, PATIENCE).await, "it listens");
    slack.mention("C1", "U1", "tell me", Some(ROOT));
    gate.add_permits(1);
    let grows = |message: &Message| message.by_bot && message.streaming_since.is_some();
    let growing = slack.await_message("C1", PATIENCE, grows).await.expect("a stream");
    let name = store.rsplit('/').next().expect("a name");
    until_async("it is known which", || {
        let known = server.psql(name, "SELECT count(*) FROM turn WHERE streamed_ts IS NOT NULL");
        (known.as_deref() == Ok("1")).then_some(())
    })
    .await;
    other.start(&world);
    assert!(slack.await_sockets(4, PATIENCE).await, "both do");
    // After that the oldest socket is the other's.
    for socket in slack.open_sockets().into_iter().take(2) {
        slack.drop_oldest();
        assert!(slack.await_gone(socket, PATIENCE).await, "it is dropped");
    }
    let event = json!({
        "type": "reaction_added", "user": "U1", "reaction": "black_square_for_stop", "item_user": BOT_USER,
        "item": {"type": "message", "channel": "C1", "ts": growing.ts},
    });
    let payload = json!({"team_id": TEAM, "event_id": "Ev0STOP", "event": event});
    slack.take_strays();
    let stop = json!({"type": "events_api", "envelope_id": "stop", "payload": payload});
    assert!(slack.send_raw(Raw::Text(stop.to_string())).is_some());
    let is_stopped = |message: &Message| message.by_bot && message.shown().ends_with("Stopped");
    let stopped = slack.await_message("C1", PATIENCE, is_stopped).await.expect("it is stopped");
    assert!(stopped.ts == growing.ts && !stopped.shown().contains("Paragraph 39"), "{stopped:#?}");
    assert!(makes_it.running().terminate().success());
    assert!(other.running().terminate().success());
}

/// Once there was a line for each of them, as often as Slack sent it again.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_away_is_told_of_once_however_much_comes_meanwhile() {
    let Some(server) = postgres::server() else { return };
    let world = World { slack: Slack::start(rules_for_kills().unlimited()).await, anthropic: Anthropic::start().await };
    let slack = &world.slack;
    let mut host = Host::new(server, &server.database(), &world);
    host.start(&world);
    assert!(slack.await_sockets(2, PATIENCE).await, "it listens");
    const CONVERSATIONS: usize = 12;
    ask(slack, &mut Vec::new(), 0);
    until_async("it answers", || (answered(slack, 1) == 1).then_some(())).await;
    host.relay.cut();
    let events: Vec<String> =
        (0..CONVERSATIONS).map(|user| slack.dm(&format!("U{user}"), "are you there?").event_id).collect();
    until_async("all are sent again in vain", || {
        events.iter().all(|event| slack.attempts(event).len() > 3).then_some(())
    })
    .await;
    // That is why the ledger is not written either, whose disk is none to look at. A beat may have been due since.
    age(&host.home, Duration::ZERO);
    let status = host.home.run(&["--store", &host.store, "status"], "");
    assert_eq!(status.status.code(), Some(1), "{}", status.stdout);
    let told = status.stdout.lines().filter(|line| line.trim_start().starts_with("because"));
    assert_eq!(told.map(str::trim).collect::<Vec<_>>(), ["because      it cannot use its database"]);
    assert!(!status.stdout.contains("ledger") && !status.stderr.contains("disk"), "{}{}", status.stdout, status.stderr);
    // Once, it was down a minute later, and whoever looked after it killed it.
    age(&host.home, Duration::from_secs(70));
    let status = host.home.run(&["--store", &host.store, "status"], "");
    assert_eq!(status.status.code(), Some(1), "{}", status.stdout);
    host.relay.mend();
    until_async("all are answered", || (answered(slack, CONVERSATIONS) == 1 + CONVERSATIONS).then_some(())).await;
    let gateway = host.running();
    let log = gateway.log();
    let lines = || log.lines().filter(|line| !line.contains("no heartbeat"));
    let times = |what: &str| lines().filter(|line| line.contains(what)).count();
    let told = [
        "WARN cannot reach the database",
        "ERROR cannot store a message",
        "deliveries from Slack could not be stored",
        "can be reached again",
    ];
    assert_eq!(told.map(times), [1; 4], "{log}");
    // What waits for it is told of once each: a turn, the ledger, what was pressed.
    assert!(times(" WARN ") + times(" ERROR ") <= 7, "{log}");
    assert!(gateway.terminate().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn three_hosts_answer_every_question_once_and_in_order_whatever_happens_to_them() {
    let Some(server) = postgres::server() else { return };
    let store = server.database();
    let Size { faults, conversations, questions, has_placeholders } = Size::of_surroundings();
    let rules = match has_placeholders {
        true => rules_for_kills().unlimited().without_statuses(),
        false => rules_for_kills().unlimited(),
    };
    let world = World { slack: Slack::start(rules).await, anthropic: Anthropic::start().await };
    let slack = &world.slack;
    let mut hosts: Vec<Host> = (0..HOSTS).map(|_| Host::within(Namespace::new(), server, &store, &world)).collect();
    hosts[HOSTS - 1].false_clock = std::env::var("PMK_HOSTS_FALSE_CLOCK").ok();
    hosts[0].start(&world);
    assert!(slack.await_sockets(2, PATIENCE).await, "the tables are made");
    let name = store.rsplit('/').next().expect("a name");
    server.psql(name, IN_ORDER).expect("a record of what is stored");
    hosts[1..].iter_mut().for_each(|host| host.start(&world));
    assert!(slack.await_sockets(2 * HOSTS, PATIENCE).await, "all of them listen");

    let (mut moments, mut harms) = (Moments::new(), HashMap::<Harm, usize>::new());
    let mut asked: Vec<Asked> = Vec::new();
    let mut taken_over: Vec<Duration> = Vec::new();
    // Only a host in a network of its own can be cut off from everything.
    let are_apart = hosts.iter().all(|host| host.network.is_some());
    let harms_here: Vec<Harm> = HARMS.into_iter().filter(|harm| *harm != Harm::CutFromAll || are_apart).collect();
    for number in 0..faults {
        hosts.iter_mut().for_each(|host| host.restart_if_ended(&world));
        // Each happens once before any happens again.
        let harm = harms_here.get(number).copied().unwrap_or_else(|| harms_here[moments.below(harms_here.len())]);
        *harms.entry(harm).or_default() += 1;
        let at = moments.below(HOSTS);
        for _ in 0..1 + moments.below(questions) {
            ask(slack, &mut asked, moments.below(conversations));
        }
        moments.pass(Duration::from_millis(400)).await;
        match harm {
            Harm::Killed => {
                hosts[at].running().kill();
                moments.pass(Duration::from_secs(6)).await;
                hosts[at].start(&world);
            }
            Harm::Stopped | Harm::CutFromAll => {
                let are_there = |pid: u32| {
                    server.psql(name, &format!("SELECT count(*) FROM host WHERE owner LIKE '%(pid {pid}, %'"))
                };
                // One that was begun a moment ago is nobody yet that could be taken for gone.
                let pid = until_async("it is one of the hosts", || {
                    hosts[at].restart_if_ended(&world);
                    let pid = hosts[at].running.as_ref().map(Gateway::pid)?;
                    (are_there(pid).as_deref() == Ok("1")).then_some(pid)
                })
                .await;
                let is_gone = || are_there(pid).is_ok_and(|count| count == "0");
                hosts[at].is_gone_for_a_while(harm, true);
                let since = Instant::now();
                ask(slack, &mut asked, moments.below(conversations));
                // Others have to have been there for a while themselves.
                until_async("others take it for gone", || {
                    let others = hosts.iter_mut().enumerate().filter(|(other, _)| *other != at);
                    others.for_each(|(_, host)| host.restart_if_ended(&world));
                    is_gone().then_some(())
                })
                .await;
                taken_over.push(since.elapsed());
                hosts[at].is_gone_for_a_while(harm, false);
                // It has to see that, and to end.
                assert!(!hosts[at].ends().await.success());
                hosts[at].start(&world);
            }
            Harm::Restarted => {
                hosts[at].signal("-TERM");
                ask(slack, &mut asked, moments.below(conversations));
                // It may have been begun a moment ago, or have been taken for gone.
                hosts[at].ends().await;
                hosts[at].start(&world);
            }
            Harm::CutFromDatabase => {
                hosts[at].relay.cut();
                moments.pass(Duration::from_secs(2)).await;
                hosts[at].relay.mend();
            }
            Harm::DatabaseRestarted => {
                let end = format!(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}' AND pid <> pg_backend_pid()"
                );
                server.psql("postgres", &end).expect("cut off");
            }
            Harm::CutFromSlack => slack.drop_connections(),
            Harm::CutFromModel => {
                hosts[at].model.cut();
                moments.pass(Duration::from_secs(2)).await;
                hosts[at].model.mend();
                // Cut off again before its fourth try, 3.5 s after the first, somebody would be told that there is no answer.
                moments.pass(Duration::from_millis(3_500)).await;
            }
            // It and who reads meanwhile may wait for each other, and then it is begun anew.
            Harm::Upgraded => {
                until_async("the schema grows", || server.psql(name, ADDS).ok()).await;
            }
        }
    }
    let mut left = Vec::new();
    until_async("everything is answered", || {
        hosts.iter_mut().for_each(|host| host.restart_if_ended(&world));
        let now = unanswered(slack, &asked);
        if now.len() < conversations && now != left {
            eprintln!("without an answer still: {now:?}");
            left.clone_from(&now);
        }
        now.is_empty().then_some(())
    })
    .await;
    until_async("all of them are back", || {
        hosts.iter_mut().for_each(|host| host.restart_if_ended(&world));
        (slack.open_sockets().len() == 2 * HOSTS).then_some(())
    })
    .await;
    // Their ledgers are whole then.
    hosts.iter().for_each(|host| host.signal("-TERM"));
    let mut ended = Vec::new();
    for host in &mut hosts {
        ended.push(host.ends().await);
    }
    let (told, named) = told(slack, &hosts, &asked, conversations);
    let waiting: usize =
        (0..conversations).map(|conversation| slack.placeholders(&dm_channel(&user(conversation))).len()).sum();
    taken_over.sort_unstable();
    let at = |percent: usize| taken_over.get(taken_over.len() * percent / 100);
    eprintln!(
        "{} questions, {harms:?}; taken over after {:?}, p99 {:?}; {named} answers that may stand there twice, \
         {waiting} placeholders that stand there still",
        asked.len(),
        at(50),
        at(99),
    );
    let of_questions = asked.iter().enumerate().map(|(question, Asked { conversation, ts, .. })| Line::Asked {
        question: question as u64,
        conversation: *conversation as u64,
        ts: ts.clone(),
    });
    let log: Vec<Line> = noted(server, name).into_iter().chain(of_questions).chain(told).collect();
    // For whoever wants to have it checked apart from this.
    if let Ok(path) = std::env::var("PMK_HOSTS_LOG") {
        let lines = log.iter().map(|line| serde_json::to_string(line).expect("JSON") + "\n");
        std::fs::write(path, lines.collect::<String>()).expect("the log is written");
    }
    if let Err(breaches) = pmk_linear::check(&log) {
        panic!("{}", breaches.iter().map(|breach| format!("{breach}\n")).collect::<String>());
    }
    // One that was on its way to Slack while its host stood still may come after another host has looked for it.
    assert!(waiting <= if has_placeholders { taken_over.len() } else { 0 }, "{waiting} placeholders stand there still");
    assert_eq!(slack.violations(), Vec::<String>::new());
    assert_eq!(slack.given_up(), Vec::<String>::new());
    let open = server.psql(name, "SELECT count(*) FROM inbox WHERE message IS NOT NULL");
    assert_eq!(open.as_deref(), Ok("0"));
    for (host, ended) in hosts.iter().zip(ended) {
        let log = std::fs::read_to_string(host.home.path().join("stderr.log")).expect("its log");
        let last: Vec<&str> = log.lines().rev().take(20).collect();
        assert!(ended.success(), "{ended}, the last first: {last:#?}");
    }
}

/// Has the database note in which order questions are stored and turns begun: hosts write one after the other.
const IN_ORDER: &str = "
    CREATE TABLE noted (number BIGSERIAL, what TEXT, ts TEXT);
    CREATE FUNCTION note_question() RETURNS TRIGGER LANGUAGE plpgsql AS $$
        BEGIN INSERT INTO noted (what, ts) VALUES ('stored', NEW.ts); RETURN NEW; END $$;
    CREATE FUNCTION note_turn() RETURNS TRIGGER LANGUAGE plpgsql AS $$
        BEGIN INSERT INTO noted (what, ts) SELECT 'begun', ts FROM inbox WHERE id = NEW.id; RETURN NEW; END $$;
    CREATE TRIGGER note_question AFTER INSERT ON inbox FOR EACH ROW EXECUTE FUNCTION note_question();
    CREATE TRIGGER note_turn AFTER INSERT ON turn FOR EACH ROW EXECUTE FUNCTION note_turn();";

/// Whether there is an answer to each question that was asked.
fn unanswered<'a>(slack: &Slack, asked: &'a [Asked]) -> Vec<&'a str> {
    let mut told: HashMap<usize, Vec<String>> = HashMap::new();
    let is_open = |Asked { conversation, text, .. }: &&Asked| {
        let told = told
            .entry(*conversation)
            .or_insert_with(|| replies(slack, &user(*conversation)).iter().map(Message::shown).collect());
        !told.iter().any(|told| told.ends_with(text))
    };
    asked.iter().filter(is_open).map(|asked| &*asked.text).collect()
}

/// What stands in Slack, and of which answers hosts' ledgers say that they may stand there twice; and how many those are.
fn told(slack: &Slack, hosts: &[Host], asked: &[Asked], conversations: usize) -> (Vec<Line>, usize) {
    let question = |answer: &Message| {
        let shown = answer.shown();
        asked.iter().position(|asked| shown.ends_with(&asked.text)).map(|question| question as u64)
    };
    let named: HashSet<String> = hosts.iter().flat_map(Host::may_repeat).collect();
    let mut told = Vec::new();
    for conversation in 0..conversations {
        for answer in replies(slack, &user(conversation)).iter().filter(|message| !is_of_presence(message)) {
            let question = question(answer);
            told.push(Line::Told { conversation: conversation as u64, question });
            told.extend(question.filter(|_| named.contains(&answer.ts)).map(|question| Line::Repeat { question }));
        }
    }
    (told, named.len())
}

/// What it has noted.
fn noted(server: &Server, name: &str) -> Vec<Line> {
    let rows = server.psql(name, "SELECT concat_ws(' ', what, ts, number) FROM noted").expect("what was noted");
    let read = |row: &str| {
        let mut words = row.split(' ');
        let (what, ts) = (words.next()?, words.next()?.to_owned());
        let number = words.next()?.parse().ok()?;
        Some(if what == "stored" { Line::Stored { ts, number } } else { Line::Begun { ts, number } })
    };
    rows.lines().filter_map(read).collect()
}

/// Whose address a URL has.
fn address(url: &str) -> SocketAddr {
    url.split('/').nth(2).and_then(|at| at.parse().ok()).expect("an address")
}

fn user(conversation: usize) -> String {
    format!("U{conversation}")
}

fn ask(slack: &Slack, asked: &mut Vec<Asked>, conversation: usize) {
    let text = format!("question {} of all", asked.len());
    let ts = slack.dm(&user(conversation), &text).ts;
    asked.push(Asked { conversation, text, ts });
}

fn replies(slack: &Slack, user: &str) -> Vec<Message> {
    slack.replies(&dm_channel(user))
}

fn answered(slack: &Slack, conversations: usize) -> usize {
    (0..conversations).map(|conversation| replies(slack, &user(conversation)).len()).sum()
}
