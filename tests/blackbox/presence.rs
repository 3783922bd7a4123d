//! Honest about being away: who is told, what is read back, and what a kill in the middle of it changes.

use std::time::Duration;

use pmk_stand_ins::{
    postgres,
    slack::{Fault, Message, Slack, dm_channel},
};
use serde_json::{Value, json};

use crate::{
    support::{Home, PATIENCE, finish, until_async},
    workspace::{Gateway, command, is_of_presence, rules},
};

mod missed;

/// As if the last run had ended so long ago. Nobody waits that long in a test.
pub fn age(home: &Home, ago: Duration) {
    let then = jiff::Timestamp::now() - jiff::SignedDuration::try_from(ago).expect("a short while");
    home.write("gateway/heartbeat", format!("{then}\n"));
    if home.path().join("gateway/shutdown").exists() {
        home.write("gateway/shutdown", format!("{{\"at\":\"{then}\",\"reason\":\"shutdown\"}}\n"));
    }
}

const MINUTE: Duration = Duration::from_secs(60);

/// What a channel was told of the gateway's coming and going.
fn told(slack: &Slack, channel: &str) -> Vec<Message> {
    slack.messages(channel).into_iter().filter(is_of_presence).collect()
}

/// The reasons for which it was back, and whether people were to be told, oldest first.
fn online(home: &Home) -> Vec<(String, bool)> {
    let of = |event: Value| {
        (event["reason"].as_str().expect("a reason").to_owned(), event["broadcast"].as_bool().expect("a bool"))
    };
    home.events("gateway.online").into_iter().map(of).collect()
}

/// Starts one, and has people talk with it.
async fn talking_with(home: &Home, slack: &Slack, users: &[&str]) -> Gateway {
    let (starts, turns) = (online(home).len(), home.events("turn.processed").len());
    // What is sent to one that was killed comes again much later.
    assert!(slack.await_sockets(0, PATIENCE).await);
    let gateway = Gateway::start(home, slack, &[]);
    assert!(slack.await_connected(PATIENCE).await);
    for user in users {
        let asked = slack.dm(user, "hello");
        assert!(slack.await_reply(&asked, PATIENCE).await.is_some(), "{user}");
    }
    home.await_events("gateway.online", starts + 1);
    // What is not stored as delivered when it is killed is looked for by the next one.
    home.await_events("turn.processed", turns + users.len());
    gateway
}

async fn await_told(slack: &Slack, channel: &str, text: &str) -> Message {
    let told = slack.await_message(channel, PATIENCE, |message| message.text == text).await;
    told.unwrap_or_else(|| panic!("{channel} was not told {text}: {:#?}", slack.messages(channel)))
}

/// Waits until nothing is owed any more after an outage: everybody was told, and everything read back.
async fn made_good(home: &Home) {
    let store = rusqlite::Connection::open(home.path().join("gateway/pmk-host.db")).expect("the store");
    let owed = "SELECT (SELECT count(*) FROM outage) + (SELECT count(*) FROM session WHERE read_from IS NOT NULL)";
    until_async("the outage is made good", || {
        store.query_row(owed, [], |row| row.get::<_, i64>(0)).is_ok_and(|owed| owed == 0).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn people_are_told_when_it_goes_and_when_it_is_back_by_one_message_an_hour() {
    let slack = Slack::start(rules().without_statuses().unlimited()).await;
    let home = Home::new();
    let gateway = talking_with(&home, &slack, &["U1", "U2", "U9"]).await;
    home.write("gateway.json", r#"{"version":1,"blocklist":["U9"]}"#);
    assert!(gateway.terminate().success());
    for user in ["U1", "U2"] {
        await_told(&slack, &dm_channel(user), ":zzz: pmk gateway 暫離").await;
    }
    let offline = home.events("gateway.offline");
    assert_eq!((&offline[0]["broadcast"], &offline[0]["reason"]), (&true.into(), &"shutdown".into()));

    age(&home, 7 * MINUTE);
    let _gateway = Gateway::start(&home, &slack, &[]);
    for user in ["U1", "U2"] {
        let channel = dm_channel(user);
        let back = await_told(&slack, &channel, ":wave: pmk gateway 重新上線（離線約 7 分鐘）").await;
        // Within the hour it takes the place of what was said last.
        assert_eq!(back.history, [":zzz: pmk gateway 暫離"]);
        assert_eq!(told(&slack, &channel).len(), 1);
    }
    assert_eq!(told(&slack, &dm_channel("U9")), [], "who is blocked is told nothing");
    let online = home.await_events("gateway.online", 2);
    assert_eq!((&online[0]["reason"], &online[0]["offlineDurationMs"]), (&"crash-recovery".into(), &Value::Null));
    assert_eq!((&online[1]["reason"], &online[1]["broadcast"]), (&"graceful-restart".into(), &true.into()));
    let offline_ms = online[1]["offlineDurationMs"].as_u64().expect("a duration");
    assert!((420_000..480_000).contains(&offline_ms), "{offline_ms}");
    assert!(!home.path().join("gateway/shutdown").exists(), "the marker is used once");
    assert_eq!(slack.violations(), Vec::<String>::new());
}

/// Specification 003 §13.
#[tokio::test(flavor = "multi_thread")]
async fn a_channel_is_told_while_a_case_is_open_there() {
    let slack = Slack::start(rules().without_statuses().unlimited()).await;
    let home = Home::new();
    let gateway = talking_with(&home, &slack, &["U1"]).await;
    for (channel, order) in [("C1", "open Login hangs"), ("C2", "open Export fails"), ("C2", "close")] {
        let before = slack.replies(channel).len();
        slack.slash("U1", channel, order);
        assert!(slack.await_replies(channel, before + 1, PATIENCE).await, "no answer to `{order}`");
    }
    assert!(gateway.terminate().success());
    await_told(&slack, "C1", ":zzz: pmk gateway 暫離").await;

    age(&home, 7 * MINUTE);
    let _gateway = Gateway::start(&home, &slack, &[]);
    let back = await_told(&slack, "C1", ":wave: pmk gateway 重新上線（離線約 7 分鐘）").await;
    assert_eq!(back.history, [":zzz: pmk gateway 暫離"]);
    made_good(&home).await;
    assert_eq!((told(&slack, "C1").len(), told(&slack, "C2").len()), (1, 0));
    assert_eq!(slack.violations(), Vec::<String>::new());
}

/// Regression: the first call that Slack's limit put off dropped the calls under way, and nobody after it was told.
#[tokio::test(flavor = "multi_thread")]
async fn one_whose_notice_is_put_off_keeps_it_from_nobody_else() {
    let slack = Slack::start(rules().without_statuses().unlimited()).await;
    let home = Home::new();
    let users: Vec<String> = (0..20).map(|n| format!("U{n:02}")).collect();
    let users: Vec<&str> = users.iter().map(String::as_str).collect();
    let gateway = talking_with(&home, &slack, &users).await;
    slack.fault_times("chat.postMessage", 1, Fault::RateLimited(30));
    assert!(gateway.terminate().success());
    let told: usize = users.iter().map(|user| told(&slack, &dm_channel(user)).len()).sum();
    assert_eq!(told, users.len() - 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_could_not_be_told_at_once_that_it_is_back_read_for_good_that_it_is_away() {
    let slack = Slack::start(rules().without_statuses().unlimited()).await;
    let home = Home::new();
    assert!(talking_with(&home, &slack, &["U1", "U2"]).await.terminate().success());
    for user in ["U1", "U2"] {
        await_told(&slack, &dm_channel(user), ":zzz: pmk gateway 暫離").await;
    }
    age(&home, 7 * MINUTE);
    slack.fault_times("chat.update", 1, Fault::Status(503));
    let _gateway = Gateway::start(&home, &slack, &[]);
    for user in ["U1", "U2"] {
        await_told(&slack, &dm_channel(user), ":wave: pmk gateway 重新上線（離線約 7 分鐘）").await;
        assert_eq!(told(&slack, &dm_channel(user)).len(), 1);
    }
    made_good(&home).await;
}

/// Regression: what Slack had refused for the keys of its workspace counted as said, and the outage as over with that.
#[tokio::test(flavor = "multi_thread")]
async fn who_could_not_be_told_while_slack_took_nothing_was_never_told() {
    let slack = Slack::start(rules().unlimited()).await;
    let home = Home::new();
    talking_with(&home, &slack, &["U1"]).await.kill();
    age(&home, 10 * MINUTE);
    let posts = slack.call_count("chat.postMessage");
    slack.fault("chat.postMessage", Fault::Error("ekm_access_denied"));
    let _gateway = Gateway::start(&home, &slack, &[]);
    until_async("a refusal", || (slack.call_count("chat.postMessage") > posts).then_some(())).await;
    slack.heal("chat.postMessage");
    let channel = dm_channel("U1");
    await_told(&slack, &channel, ":wave: pmk gateway 重新上線（離線約 10 分鐘）").await;
    made_good(&home).await;
    assert_eq!(told(&slack, &channel).len(), 1);
}

/// Regression: whoever the store took nothing of for a moment counted as told.
#[tokio::test(flavor = "multi_thread")]
async fn who_could_not_be_told_while_the_store_took_nothing_was_never_told() {
    let slack = Slack::start(rules().without_statuses().unlimited()).await;
    let home = Home::new();
    talking_with(&home, &slack, &["U1", "U2"]).await.kill();
    age(&home, 10 * MINUTE);
    let in_store = |sql: &str| {
        let store = rusqlite::Connection::open(home.path().join("gateway/pmk-host.db")).expect("the store");
        store.execute_batch(sql).expect("a change of its schema");
    };
    in_store(
        "CREATE TRIGGER refuse BEFORE INSERT ON told WHEN NEW.listener = 'U1'
         BEGIN SELECT RAISE(ABORT, 'not now'); END",
    );
    let gateway = Gateway::start(&home, &slack, &[]);
    until_async("a refusal", || gateway.log().contains("cannot tell somebody that").then_some(())).await;
    in_store("DROP TRIGGER refuse");
    for user in ["U1", "U2"] {
        await_told(&slack, &dm_channel(user), ":wave: pmk gateway 重新上線（離線約 10 分鐘）").await;
    }
    made_good(&home).await;
    assert_eq!(["U1", "U2"].map(|user| told(&slack, &dm_channel(user)).len()), [1, 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_kill_people_are_told_once_however_often_it_is_killed_again() {
    let slack = Slack::start(rules().unlimited()).await;
    let home = Home::new();
    talking_with(&home, &slack, &["U1"]).await.kill();
    let channel = dm_channel("U1");
    assert_eq!(told(&slack, &channel), []);

    age(&home, 10 * MINUTE);
    let gateway = Gateway::start(&home, &slack, &[]);
    await_told(&slack, &channel, ":wave: pmk gateway 重新上線（離線約 10 分鐘）").await;
    gateway.kill();
    for start in 0..3 {
        let gateway = Gateway::start(&home, &slack, &[]);
        home.await_events("gateway.online", 3 + start);
        // The kill may have come before the program knew that everybody was told: then this start looks again.
        made_good(&home).await;
        gateway.kill();
    }
    assert_eq!(told(&slack, &channel).len(), 1, "{:#?}", slack.messages(&channel));
    assert_eq!(online(&home)[0].0, "crash-recovery");
    assert_eq!(online(&home)[1], ("crash-recovery".to_owned(), true));
    assert_eq!(online(&home).last(), Some(&("fast-recovery".to_owned(), false)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_fails_half_way_leaves_the_outage_to_the_next() {
    let slack = Slack::start(rules().unlimited()).await;
    let home = Home::new();
    assert!(talking_with(&home, &slack, &["U1"]).await.terminate().success());
    age(&home, 7 * MINUTE);
    slack.fault_times("auth.test", 1, Fault::Error("invalid_auth"));
    let failing = command(&home, &slack, &[]);
    let failed = tokio::task::spawn_blocking(move || finish(failing, "")).await.expect("it is stopping");
    assert_eq!(failed.status.code(), Some(1), "{}", failed.stderr);
    assert!(home.path().join("gateway/shutdown").exists());
    assert_eq!(home.events("gateway.online").len(), 1, "it was not there");

    let _gateway = Gateway::start(&home, &slack, &[]);
    await_told(&slack, &dm_channel("U1"), ":wave: pmk gateway 重新上線（離線約 7 分鐘）").await;
    home.await_events("gateway.online", 2);
    assert_eq!(online(&home)[1], ("graceful-restart".to_owned(), true));
}

#[tokio::test(flavor = "multi_thread")]
async fn short_outages_are_silent_and_a_marker_is_used_once_even_if_it_makes_no_sense() {
    let slack = Slack::start(rules().unlimited()).await;
    let home = Home::new();
    talking_with(&home, &slack, &["U1"]).await.kill();
    for (marker, ago, reason) in [
        (None, 2 * MINUTE, "fast-recovery"),
        (Some("{}"), 2 * MINUTE, "graceful-fast-restart"),
        (Some("no JSON at all"), Duration::from_secs(10), "graceful-fast-restart"),
    ] {
        age(&home, ago);
        if let Some(marker) = marker {
            home.write("gateway/shutdown", marker);
        }
        let starts = online(&home).len();
        let gateway = Gateway::start(&home, &slack, &[]);
        home.await_events("gateway.online", starts + 1);
        assert_eq!(online(&home)[starts], (reason.to_owned(), false));
        gateway.kill();
        let gateway = Gateway::start(&home, &slack, &[]);
        home.await_events("gateway.online", starts + 2);
        assert_eq!(online(&home)[starts + 1], ("fast-recovery".to_owned(), false), "after {marker:?}");
        gateway.kill();
    }
    assert_eq!(told(&slack, &dm_channel("U1")), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_quick_restart_nobody_reads_that_it_is_away_and_nobody_is_rung() {
    let slack = Slack::start(rules().unlimited()).await;
    let home = Home::new();
    assert!(talking_with(&home, &slack, &["U1", "U2"]).await.terminate().success());
    for user in ["U1", "U2"] {
        await_told(&slack, &dm_channel(user), ":zzz: pmk gateway 暫離").await;
    }
    let _gateway = Gateway::start(&home, &slack, &[]);
    for user in ["U1", "U2"] {
        let back = await_told(&slack, &dm_channel(user), ":wave: pmk gateway 重新上線").await;
        assert_eq!(back.history, [":zzz: pmk gateway 暫離"]);
        assert_eq!(told(&slack, &dm_channel(user)).len(), 1);
    }
    made_good(&home).await;
    home.await_events("gateway.online", 2);
    assert_eq!(online(&home)[1], ("graceful-fast-restart".to_owned(), false), "nobody was told anything new");
    assert_eq!(slack.violations(), Vec::<String>::new());
}

/// Regression: the next start took each stop for a crash.
#[tokio::test(flavor = "multi_thread")]
async fn after_a_quick_restart_on_a_database_people_read_for_good_that_it_is_away() {
    let Some(server) = postgres::server() else { return };
    let slack = Slack::start(rules().unlimited()).await;
    let home = Home::new();
    home.write("gateway.json", json!({"version": 1, "store": server.database()}).to_string());
    assert!(talking_with(&home, &slack, &["U1"]).await.terminate().success());
    let channel = dm_channel("U1");
    await_told(&slack, &channel, ":zzz: pmk gateway 暫離").await;
    let _gateway = Gateway::start(&home, &slack, &[]);
    let back = await_told(&slack, &channel, ":wave: pmk gateway 重新上線").await;
    assert_eq!(back.history, [":zzz: pmk gateway 暫離"]);
    home.await_events("gateway.online", 2);
    assert_eq!(online(&home)[1], ("graceful-fast-restart".to_owned(), false));
    assert_eq!(slack.violations(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn one_who_cannot_be_told_keeps_it_from_nobody_else_and_a_setting_keeps_it_from_all() {
    let slack = Slack::start(rules().unlimited()).await;
    let home = Home::new();
    talking_with(&home, &slack, &["U1", "U2", "U3"]).await.kill();
    age(&home, 10 * MINUTE);
    slack.fault_times("chat.postMessage", 1, Fault::Error("channel_not_found"));
    let gateway = Gateway::start(&home, &slack, &[]);
    let told_of = || ["U1", "U2", "U3"].map(|user| told(&slack, &dm_channel(user)).len());
    let failed = "a post that failed and two that did not";
    until_async(failed, || (told_of().iter().sum::<usize>() == 2).then_some(())).await;
    home.await_events("gateway.online", 2);
    gateway.kill();
    // Whatever that kill left owed is not said where nobody wants it said.

    home.write("gateway.json", r#"{"version":1,"presence":{"broadcast":false}}"#);
    age(&home, 20 * MINUTE);
    let starts = online(&home).len();
    let gateway = talking_with(&home, &slack, &["U1"]).await;
    assert_eq!(online(&home)[starts], ("crash-recovery".to_owned(), false));
    assert!(gateway.terminate().success());
    assert_eq!(home.events("gateway.offline")[0]["broadcast"], false);
    assert_eq!(told_of().iter().sum::<usize>(), 2);
}
