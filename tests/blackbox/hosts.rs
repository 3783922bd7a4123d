//! Several hosts on one database, in one workspace: whatever happens to them, every question is answered once, and those of a
//! conversation in their order.

use std::{
    collections::HashMap,
    net::SocketAddr,
    process::{Command, ExitStatus},
    time::Duration,
};

use pmk_stand_ins::{
    anthropic::{self, Anthropic},
    postgres::{self, Server},
    relay::Relay,
    slack::{Message, Slack, dm_channel},
};

use crate::{
    moments::Moments,
    support::{Home, PATIENCE, component, until_async},
    workspace::{self, Gateway, rules_for_kills, violations_but_lateness},
};

const HOSTS: usize = 3;
const CONVERSATIONS: usize = 12;

/// `PMK_HOSTS_FAULTS=1000` for a night's worth. `PMK_HOSTS_FALSE_CLOCK` names libfaketime's library: then one of them has a clock that
/// is an hour ahead.
fn faults() -> usize {
    std::env::var("PMK_HOSTS_FAULTS").ok().map_or(14, |faults| faults.parse().expect("a number"))
}

/// What happens to a host, or to all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Harm {
    Killed,
    /// Stopped until others take it for gone, and gone on with.
    Stopped,
    /// Asked to end, and started again.
    Restarted,
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

const HARMS: [Harm; 8] = [
    Harm::Killed,
    Harm::Stopped,
    Harm::Restarted,
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

/// A host with a home of its own and ways of its own to the database and to the model.
struct Host {
    // Goes before the home, in which it writes its log.
    running: Option<Gateway>,
    home: Home,
    relay: Relay,
    model: Relay,
    store: String,
    /// A library by which its clock is an hour ahead.
    false_clock: Option<String>,
}

impl Host {
    fn new(server: &Server, store: &str, world: &World) -> Host {
        let (home, relay) = (Home::new(), Relay::start(([127, 0, 0, 1], server.port()).into()));
        home.write("gateway.json", r#"{"version":1,"language":"en"}"#);
        let store = store.replace(&server.port().to_string(), &relay.address().port().to_string());
        let model = Relay::start(address(&world.anthropic.url()));
        Host { running: None, home, relay, model, store, false_clock: None }
    }

    fn start(&mut self, World { slack, anthropic }: &World) {
        let strict = component("strict");
        let more = ["--model", "anthropic-api", "--store", &self.store, "--policy", &strict];
        let mut command = workspace::command(&self.home, slack, &more);
        let url = anthropic.url().replace(&address(&anthropic.url()).to_string(), &self.model.address().to_string());
        command.env("ANTHROPIC_API_KEY", anthropic::KEY).env("ANTHROPIC_BASE_URL", url);
        if let Some(library) = &self.false_clock {
            command.env("LD_PRELOAD", library).env("FAKETIME", "+1h");
        }
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
        until_async("it ends", || gateway.ended()).await
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
    assert!(
        cut.log().contains("error: this host does not reach Slack any more, and another one does"),
        "{}",
        cut.log()
    );
    until_async("the other answers", || {
        let answered = server.psql(name, "SELECT count(*) FROM turn WHERE delivered_at IS NOT NULL");
        (answered.as_deref() == Ok("1")).then_some(())
    })
    .await;
    let told: Vec<String> = replies(&slack, "U1").iter().map(Message::shown).collect();
    assert_eq!(told.len(), 1, "{told:#?}");
    assert!(other.terminate().success());
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
    let mut asked = Vec::new();
    ask(slack, &mut asked, 0);
    until_async("it answers", || (answered(slack) == 1).then_some(())).await;
    host.relay.cut();
    let events: Vec<String> =
        (0..CONVERSATIONS).map(|user| slack.dm(&format!("U{user}"), "are you there?").event_id).collect();
    until_async("all are sent again in vain", || {
        events.iter().all(|event| slack.attempts(event).len() > 3).then_some(())
    })
    .await;
    host.relay.mend();
    until_async("all are answered", || (answered(slack) == 1 + CONVERSATIONS).then_some(())).await;
    let gateway = host.running();
    let log = gateway.log();
    let times = |what: &str| log.lines().filter(|line| line.contains(what)).count();
    let told = [
        "WARN the database",
        "ERROR a message could not be stored",
        "deliveries from Slack could not be stored",
        "is there again",
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
    let world = World { slack: Slack::start(rules_for_kills().unlimited()).await, anthropic: Anthropic::start().await };
    let slack = &world.slack;
    let mut hosts: Vec<Host> = (0..HOSTS).map(|_| Host::new(server, &store, &world)).collect();
    hosts[HOSTS - 1].false_clock = std::env::var("PMK_HOSTS_FALSE_CLOCK").ok();
    hosts[0].start(&world);
    assert!(slack.await_sockets(2, PATIENCE).await, "the tables are made");
    let name = store.rsplit('/').next().expect("a name");
    server.psql(name, IN_ORDER).expect("a record of what is stored");
    hosts[1..].iter_mut().for_each(|host| host.start(&world));
    assert!(slack.await_sockets(2 * HOSTS, PATIENCE).await, "all of them listen");

    let (mut moments, mut harms) = (Moments::new(), HashMap::<Harm, usize>::new());
    let mut asked: Vec<Asked> = Vec::new();
    for _ in 0..faults() {
        hosts.iter_mut().for_each(|host| host.restart_if_ended(&world));
        let harm = HARMS[moments.below(HARMS.len())];
        *harms.entry(harm).or_default() += 1;
        let at = moments.below(HOSTS);
        for _ in 0..2 + moments.below(6) {
            ask(slack, &mut asked, moments.below(CONVERSATIONS));
        }
        moments.pass(Duration::from_millis(400)).await;
        match harm {
            Harm::Killed => {
                hosts[at].running().kill();
                moments.pass(Duration::from_secs(6)).await;
                hosts[at].start(&world);
            }
            Harm::Stopped => {
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
                hosts[at].signal("-STOP");
                ask(slack, &mut asked, moments.below(CONVERSATIONS));
                // Others have to have been there for a while themselves.
                until_async("others take it for gone", || {
                    let others = hosts.iter_mut().enumerate().filter(|(other, _)| *other != at);
                    others.for_each(|(_, host)| host.restart_if_ended(&world));
                    is_gone().then_some(())
                })
                .await;
                hosts[at].signal("-CONT");
                // It has to see that, and to end.
                assert!(!hosts[at].ends().await.success());
                hosts[at].start(&world);
            }
            Harm::Restarted => {
                hosts[at].signal("-TERM");
                ask(slack, &mut asked, moments.below(CONVERSATIONS));
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
            }
            // It and who reads meanwhile may wait for each other, and then it is begun anew.
            Harm::Upgraded => {
                until_async("the schema grows", || server.psql(name, ADDS).ok()).await;
            }
        }
    }
    until_async("everything is answered", || {
        hosts.iter_mut().for_each(|host| host.restart_if_ended(&world));
        (answered(slack) >= asked.len()).then_some(())
    })
    .await;
    let told: Vec<Vec<String>> = (0..CONVERSATIONS)
        .map(|conversation| replies(slack, &user(conversation)).iter().map(Message::shown).collect())
        .collect();
    until_async("all of them are back", || {
        hosts.iter_mut().for_each(|host| host.restart_if_ended(&world));
        (slack.open_sockets().len() == 2 * HOSTS).then_some(())
    })
    .await;
    for host in &mut hosts {
        host.signal("-TERM");
        assert!(host.ends().await.success());
    }
    eprintln!("{} questions, {harms:?}", asked.len());
    let known = Known::of(server, name);
    for (conversation, told) in told.iter().enumerate() {
        let asked: Vec<&Asked> = asked.iter().filter(|asked| asked.conversation == conversation).collect();
        is_in_order(&asked, told, &known);
    }
    assert_eq!(violations_but_lateness(slack), Vec::<String>::new());
    assert_eq!(slack.given_up(), Vec::<String>::new());
    let open = server.psql(name, "SELECT count(*) FROM inbox WHERE message IS NOT NULL");
    assert_eq!(open.as_deref(), Ok("0"));
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

/// When each question, by its `ts`, was stored, and when its turn was begun first, in the order of all that the database did.
struct Known(HashMap<String, (i64, i64)>);

impl Known {
    fn of(server: &Server, name: &str) -> Known {
        let sql = "SELECT concat_ws(' ', s.ts, s.number, b.number) FROM noted s JOIN noted b ON b.ts = s.ts
            WHERE s.what = 'stored' AND b.what = 'begun'";
        let rows = server.psql(name, sql).expect("the questions");
        let read = |row: &str| {
            let mut words = row.split(' ');
            let ts = words.next()?.to_owned();
            Some((ts, (words.next()?.parse().ok()?, words.next()?.parse().ok()?)))
        };
        Known(rows.lines().filter_map(read).collect())
    }
}

/// Each question of a conversation has one answer. One that was asked later is answered before another only where that one was
/// not stored yet when its own turn was begun: nobody could know of it.
fn is_in_order(asked: &[&Asked], told: &[String], Known(known): &Known) {
    let place = |answer: &String| asked.iter().position(|asked| answer.ends_with(&asked.text));
    let places: Vec<usize> = told.iter().filter_map(place).collect();
    let mut all = places.clone();
    all.sort_unstable();
    assert_eq!(all, (0..asked.len()).collect::<Vec<_>>(), "{told:#?}");
    assert_eq!(told.len(), asked.len(), "{told:#?}");
    for (at, &earlier) in places.iter().enumerate() {
        for &later in &places[at + 1..] {
            let (stored, begun) = (known[&asked[later].ts].0, known[&asked[earlier].ts].1);
            assert!(earlier < later || stored >= begun, "stored at {stored}, begun at {begun}: {told:#?}");
        }
    }
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

fn answered(slack: &Slack) -> usize {
    (0..CONVERSATIONS).map(|conversation| replies(slack, &user(conversation)).len()).sum()
}
