//! `status` and `stop`, from the outside.

use std::{fs, process::Command, time::Duration};

use pmk_stand_ins::{anthropic::Behaviour, slack::Slack};
use serde_json::{Value, json};

use crate::{
    presence::age,
    support::{Finished, Home, PATIENCE, Running, question, until, until_async},
    workspace::{Gateway, Scene, rules},
};

/// A document without what differs from run to run.
fn still(mut document: Value) -> Value {
    for key in ["pid", "started_at"] {
        if !document[key].is_null() {
            document[key] = json!("…");
        }
    }
    for key in ["at", "age_seconds"] {
        if !document["heartbeat"][key].is_null() {
            document["heartbeat"][key] = json!("…");
        }
    }
    if !document["policies"][0]["sha256"].is_null() {
        document["policies"][0]["sha256"] = json!("…");
    }
    document
}

/// A page without what differs from run to run.
fn settings() -> insta::Settings {
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(r"\d+ s ago", "N s ago");
    settings.add_filter(r"process      \d+", "process      PID");
    settings.add_filter(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME");
    settings.add_filter(r"`/[^`]*/gateway/", "`HOME/gateway/");
    settings.add_filter(r"events-\d{4}-\d\d", "events-MONTH");
    settings
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_in_slack_is_healthy_and_says_why_it_is_not() {
    let slack = Slack::start(rules().unlimited()).await;
    let home = Home::new();
    let gateway = Gateway::start(&home, &slack, &[]);
    assert!(slack.await_sockets(2, PATIENCE).await);
    let healthy = || {
        let shown = home.run(&["status"], "");
        shown.stdout.starts_with("healthy").then_some(shown)
    };
    let shown =
        until_async("both sockets are heard", || healthy().filter(|shown| shown.stdout.contains("2 of 2 connected")))
            .await;
    assert_eq!(shown.status.code(), Some(0));
    settings().bind(|| insta::assert_snapshot!("healthy", shown.stdout));
    insta::assert_json_snapshot!("healthy_json", still(home.run(&["status", "--json"], "").ok().json()));

    // What it cannot write of the ledger counts, however well it does. A folder is in the file's place.
    home.await_events("gateway.online", 1);
    let before = home.ledger();
    let file = fs::read_dir(home.path().join("gateway"))
        .expect("a folder")
        .map(|file| file.expect("readable").path())
        .find(|path| path.extension().is_some_and(|extension| extension == "log"))
        .expect("the ledger");
    let aside = home.path().join("aside");
    fs::rename(&file, &aside).expect("moved");
    fs::create_dir(&file).expect("a folder");
    let malformed = slack.slash("U 1", "C1", "help");
    assert!(slack.await_ack(&malformed, PATIENCE).await.is_some());
    let shown = until_async("a line that waits", || {
        Some(home.run(&["status"], "")).filter(|it| it.stdout.contains(" 1 ledger line"))
    })
    .await;
    assert_eq!(shown.status.code(), Some(1));
    settings().bind(|| insta::assert_snapshot!("lines_wait", format!("{}{}", shown.stdout, shown.stderr)));
    fs::remove_dir(&file).expect("somebody has seen to it");
    fs::rename(&aside, &file).expect("moved back");
    let after =
        until_async("a line that is written", || Some(home.ledger()).filter(|it| it.len() > before.len())).await;
    assert_eq!(after[..before.len()], before);
    assert_eq!((after.len(), &after[before.len()]["type"]), (before.len() + 1, &json!("front.malformed")));
    until_async("nothing waits", || home.run(&["status"], "").status.success().then_some(())).await;

    // It may beat between the two.
    let aged = |seconds: u64, arguments: &[&str]| {
        age(&home, Duration::from_secs(seconds));
        home.run(arguments, "")
    };
    let late = |shown: &Finished| shown.status.code() == Some(1);
    let aging = until_async("it is late", || Some(aged(40, &["status", "--json"])).filter(late)).await;
    assert_eq!(aging.json()["level"], json!("degraded"));
    let down = |shown: &Finished| shown.status.code() == Some(3);
    let stale = until_async("it seems to be down", || Some(aged(70, &["status"])).filter(down)).await;
    settings().bind(|| insta::assert_snapshot!("stale", stale.stdout));
    gateway.kill();
    let dead = home.run(&["status"], "");
    assert_eq!(dead.status.code(), Some(3));
    settings().bind(|| insta::assert_snapshot!("dead", dead.stdout));
    insta::assert_json_snapshot!("dead_json", still(home.run(&["status", "--json"], "").json()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_has_reconnected_twice_is_degraded() {
    let slack = Slack::start(rules().unlimited()).await;
    let home = Home::new();
    let _gateway = Gateway::start(&home, &slack, &[]);
    assert!(slack.await_sockets(2, PATIENCE).await);
    until("a healthy gateway", || home.run(&["status"], "").status.success().then_some(()));
    slack.drop_connections();
    let shown = until("a degraded one", || {
        let shown = home.run(&["status"], "");
        (shown.stdout.contains("it has reconnected 2 times recently")).then_some(shown)
    });
    assert_eq!(shown.status.code(), Some(1), "{}", shown.stdout);
}

/// A process that is stopped, as by a debugger, is there and does not answer.
#[tokio::test(flavor = "multi_thread")]
async fn one_that_does_not_answer_is_degraded_and_its_sockets_are_unknown() {
    let home = Home::new();
    let mut gateway = Running::start(home.command(&["run", "--model", "sim"]));
    gateway.say(&question("Ev1", "hello"));
    gateway.next_of("turn");
    signal(gateway.pid(), "STOP");
    until("every thread has stopped", || is_stopped(gateway.pid()).then_some(()));
    let shown = home.run(&["status"], "");
    assert_eq!(shown.status.code(), Some(1), "{}", shown.stdout);
    settings().bind(|| insta::assert_snapshot!("silent", shown.stdout));
    signal(gateway.pid(), "CONT");
    until("it answers again", || home.run(&["status"], "").status.success().then_some(()));
    // What `stop` advised was to wait, which would have been for ever.
    signal(gateway.pid(), "STOP");
    until("every thread has stopped", || is_stopped(gateway.pid()).then_some(()));
    let told = home.run(&["stop", "--timeout", "0"], "");
    assert_eq!(told.status.code(), Some(1), "{}", told.stderr);
    assert!(told.stderr.contains(&format!("hint: it is suspended: `kill -CONT {}`", gateway.pid())), "{}", told.stderr);
    signal(gateway.pid(), "CONT");
    assert!(gateway.until_it_ends().0.success());
}

/// Its heartbeat is in the future, until the next one.
#[test]
fn one_that_answers_is_not_down_because_the_clock_was_set_back() {
    let home = Home::new();
    let mut gateway = Running::start(home.command(&["run", "--model", "sim"]));
    gateway.say(&question("Ev1", "hello"));
    gateway.next_of("turn");
    // It may beat between the two.
    let shown = until("it is degraded", || {
        home.write("gateway/heartbeat", "2999-01-01T00:00:00.000Z\n");
        Some(home.run(&["status", "--json"], "")).filter(|shown| shown.status.code() != Some(0))
    });
    assert_eq!((shown.status.code(), &shown.json()["level"]), (Some(1), &json!("degraded")), "{}", shown.stdout);
}

/// A lock file that this test holds, with what somebody else wrote into it.
fn held(home: &Home, content: &str) -> fs::File {
    home.run(&["run", "--model", "sim"], "").ok();
    let path = home.write("gateway/run.lock", content);
    let lock = fs::File::open(path).expect("the lock");
    lock.lock().expect("locked");
    lock
}

/// The gateway runs in another container, which counts its processes itself.
#[test]
fn stop_leaves_the_process_alone_that_only_has_the_number_of_the_gateway_here() {
    let home = Home::new();
    let mut other = Command::new("sleep").arg("600").spawn().expect("a process");
    let number = other.id();
    let lock = held(&home, &number.to_string());
    let told = home.run(&["stop"], "");
    let lives = other.try_wait().expect("a child").is_none();
    other.kill().expect("ended");
    other.wait().expect("ended");
    assert!(lives && told.status.code() == Some(1), "{}{}", told.stdout, told.stderr);
    assert!(told.stderr.contains(&format!("the gateway (pid {number}) runs in another container")), "{}", told.stderr);
    // Not even if nobody has that number here.
    let told = home.run(&["stop"], "");
    assert!(told.stderr.contains(&format!("the gateway (pid {number}) runs in another container")), "{}", told.stderr);
    drop(lock);
    assert_eq!(home.run(&["stop"], "").ok().stdout, "not running\n");
}

/// `status` took it for a gateway that does not answer, and following the hint of `run` killed it halfway.
#[test]
fn a_restore_that_has_the_home_is_not_stopped_as_a_gateway() {
    let home = Home::new();
    let mut other = Command::new("sleep").arg("600").spawn().expect("a process");
    let number = other.id();
    let _lock = held(&home, &format!("{number}\nstore restore"));
    let told = home.run(&["stop"], "");
    let lives = other.try_wait().expect("a child").is_none();
    let (status, doctor) = (home.run(&["status"], ""), home.run(&["doctor", "--offline"], ""));
    let document = home.run(&["status", "--json"], "").json();
    let asked = home.run(&["sessions", "retry", "--all"], "");
    other.kill().expect("ended");
    other.wait().expect("ended");
    assert!(lives && told.status.code() == Some(1), "{}{}", told.stdout, told.stderr);
    for told in [&told, &asked] {
        let who = format!("is in use by `pmk-host store restore` (pid {number})");
        assert!(told.stderr.contains(&who) && told.stderr.contains("hint: wait until it has"), "{}", told.stderr);
    }
    assert_eq!(status.status.code(), Some(3), "{}", status.stdout);
    assert!(status.stdout.contains(&format!("by `pmk-host store restore` (pid {number})")), "{}", status.stdout);
    assert_eq!(document["work"], json!({"command": "store restore", "pid": number}));
    assert!(doctor.stdout.contains("which `pmk-host store restore` is using"), "{}", doctor.stdout);
}

/// It takes nothing in any more, and waits a while for a turn that runs.
#[tokio::test(flavor = "multi_thread")]
async fn one_that_was_asked_to_end_says_so_until_it_has() {
    let scene = Scene::new(rules(), &json!({"version": 1})).await;
    let gateway = scene.start().await;
    scene.anthropic.when("wait for it", Behaviour::Stall { text: "Wait".into() });
    scene.slack.dm("U1", "wait for it");
    until_async("a turn that runs", || (!scene.anthropic.requests().is_empty()).then_some(())).await;
    signal(gateway.pid(), "TERM");
    let leaves = || {
        Some(scene.home.run(&["status"], ""))
            .filter(|shown| shown.stdout.contains("leaving") && shown.stdout.contains("0 of 2"))
    };
    let shown = until_async("it says that it ends", leaves).await;
    assert_eq!(shown.status.code(), Some(0), "{}", shown.stdout);
    settings().bind(|| insta::assert_snapshot!("leaving", shown.stdout));
    // It beats no more: nobody takes that for a heart that has stopped.
    age(&scene.home, Duration::from_secs(70));
    assert_eq!(scene.home.run(&["status", "--json"], "").json()["phase"], "leaving");
    gateway.kill();
}

#[test]
fn a_secret_that_is_a_command_is_not_run_by_a_look() {
    let home = Home::new();
    let touched = home.path().join("touched");
    let command = json!({"cmd": format!("touch {}; echo xoxb-1", touched.display())});
    let config = json!({"version": 1, "slack": {"appToken": command, "botToken": command}, "apiKey": command});
    home.write("gateway.json", config.to_string());
    for arguments in [&["status"][..], &["stop"], &["audit"], &["run", "--front", "console", "--model", "sim"]] {
        home.run(arguments, "");
        assert!(!touched.exists(), "{arguments:?}");
    }
}

#[test]
fn stop_ends_it_in_an_orderly_way_and_says_when_there_is_none() {
    let home = Home::new();
    let none = home.run(&["stop"], "").ok();
    assert_eq!(none.stdout, "not running\n");
    let mut gateway = Running::start(home.command(&["run", "--model", "sim"]));
    gateway.say(&question("Ev1", "hello"));
    gateway.next_of("turn");
    assert_eq!(home.run(&["stop"], "").ok().stdout, "stopped\n");
    let (status, _) = gateway.until_it_ends();
    assert!(status.success());
    assert!(home.path().join("gateway/shutdown").exists(), "the next start knows");
    assert_eq!(home.run(&["stop", "--json"], "").ok().json(), json!({"stopped": false, "pid": null}));
    let gateway = Running::start(home.command(&["run", "--model", "sim"]));
    let pid = gateway.pid();
    // Not before it listens for signals: that is what `ready` says.
    until("it is ready", || (home.run(&["status", "--json"], "").json()["phase"] == "ready").then_some(()));
    assert_eq!(home.run(&["stop", "--json"], "").ok().json(), json!({"stopped": true, "pid": pid}));
    drop(gateway);
    // Killed: nobody has to be stopped, and the file that it left does not count.
    let gateway = Running::start(home.command(&["run", "--model", "sim"]));
    until("it is ready", || (home.run(&["status", "--json"], "").json()["phase"] == "ready").then_some(()));
    gateway.kill();
    assert_eq!(home.run(&["stop"], "").ok().stdout, "not running\n");
    assert_eq!(home.run(&["status", "--json"], "").json()["phase"], Value::Null);
}

/// Regression: it panicked after it had told the gateway to end.
#[test]
fn a_wait_longer_than_a_clock_can_show_was_found_after_the_signal() {
    let home = Home::new();
    let mut gateway = Running::start(home.command(&["run", "--model", "sim"]));
    gateway.say(&question("Ev1", "hello"));
    gateway.next_of("turn");
    for seconds in ["86401", "18446744073709551615"] {
        let refused = home.run(&["stop", "--timeout", seconds], "");
        assert_eq!(refused.status.code(), Some(2), "{}", refused.stderr);
        assert!(refused.stderr.contains("expected a whole number from 0 to 86400"), "{}", refused.stderr);
    }
    gateway.say(&question("Ev2", "hello again"));
    gateway.next_of("turn");
    assert_eq!(home.run(&["stop", "--timeout", "86400"], "").ok().stdout, "stopped\n");
    assert!(gateway.until_it_ends().0.success());
}

/// A signal is sent to a process and stops its threads one after the other.
pub(crate) fn is_stopped(pid: u32) -> bool {
    let mut threads = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs");
    threads.all(|thread| {
        let stat = fs::read_to_string(thread.expect("a thread").path().join("stat")).unwrap_or_default();
        stat.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with('T'))
    })
}

pub(crate) fn signal(pid: u32, signal: &str) {
    let sent = std::process::Command::new("kill").args([&format!("-{signal}"), &pid.to_string()]).status();
    assert!(sent.expect("kill is installed").success());
}
