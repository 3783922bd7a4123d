//! `/healthz` and `/readyz`: what a load balancer or an orchestrator hears, and what strangers can do there.

use std::{
    io::{ErrorKind, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    process::Command,
    time::Duration,
};

use pmk_stand_ins::slack::{Message, Slack, dm_channel};
use serde_json::{Value, json};

use crate::{
    presence::age,
    support::{Home, PATIENCE, finish, until, until_async},
    workspace::{Gateway, command, rules},
};

/// A home whose gateway answers on any free port.
fn home() -> Home {
    let home = Home::new();
    home.write("gateway.json", json!({"version": 1, "health": {"listen": "127.0.0.1:0"}}).to_string());
    home
}

/// Where it answers.
fn address(gateway: &Gateway) -> String {
    until("an address", || {
        let log = gateway.log();
        let (_, rest) = log.split_once("health: http://")?;
        Some(rest.split_once("/healthz")?.0.to_owned())
    })
}

fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream
}

/// What comes back for these bytes. One that is refused halfway may find the connection gone.
fn say(address: &str, request: &[u8]) -> String {
    let mut stream = connect(address);
    let _ = stream.write_all(request);
    let mut answer = vec![];
    match stream.read_to_end(&mut answer) {
        Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("{error}"),
        _ => String::from_utf8_lossy(&answer).into_owned(),
    }
}

/// The code, and the document where there is one.
fn ask(address: &str, method: &str, path: &str) -> (u16, Value) {
    let answer = say(address, format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes());
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer}"));
    let code = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_else(|| panic!("{head}"));
    (code, serde_json::from_str(body).unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_probe_hears_what_status_says() {
    let slack = Slack::start(rules().unlimited()).await;
    let home = home();
    let gateway = Gateway::start(&home, &slack, &[]);
    assert!(slack.await_sockets(2, PATIENCE).await);
    let address = address(&gateway);
    let healthy = json!({"level": "healthy", "ready": true, "reasons": []});
    until_async("both sockets are heard", || (ask(&address, "GET", "/healthz").1 == healthy).then_some(())).await;
    assert_eq!(ask(&address, "GET", "/healthz"), (200, healthy.clone()));
    assert_eq!(ask(&address, "GET", "/readyz?verbose"), (200, healthy));
    assert_eq!(ask(&address, "HEAD", "/healthz"), (200, Value::Null));
    assert_eq!(ask(&address, "POST", "/healthz").0, 405);
    assert_eq!(ask(&address, "GET", "/metrics").0, 404);
    // Late, and then none at all.
    for (ago, health, ready) in [(40, 200, 200), (70, 503, 503)] {
        // It may beat in between.
        until_async("what is late is said alike", || {
            age(&home, Duration::from_secs(ago));
            let status = home.run(&["status", "--json"], "").json();
            let (code, heard) = ask(&address, "GET", "/healthz");
            let is_alike = heard["level"] == status["level"] && heard["reasons"] == status["reasons"];
            (is_alike && code == health && ask(&address, "GET", "/readyz").0 == ready).then_some(())
        })
        .await;
    }
    assert!(gateway.terminate().success());
    assert!(TcpStream::connect(&address).is_err(), "nobody is left");
}

/// Regression: it was healthy and ready, the ledger had nothing of it, and no admin ever heard of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_whose_bot_token_is_refused_was_healthy_and_ready() {
    let slack = Slack::start(rules().unlimited()).await;
    let home = Home::new();
    let (app, bot) = (slack.rules().app_token.clone(), slack.rules().bot_token.clone());
    let tokens = json!({"appToken": app, "botToken": bot});
    let health = json!({"listen": "127.0.0.1:0"});
    let config = json!({"version": 1, "language": "en", "admins": ["U0ADMIN"], "health": health, "slack": tokens});
    home.write("gateway.json", config.to_string());
    let mut command = command(&home, &slack, &[]);
    // One of gateway.json may be replaced while it runs.
    command.env_remove("PMK_SLACK_APP_TOKEN").env_remove("PMK_SLACK_BOT_TOKEN");
    let gateway = Gateway::spawn(&home, command);
    assert!(slack.await_sockets(2, PATIENCE).await);
    let address = address(&gateway);
    let is_ready = || (ask(&address, "GET", "/readyz").0 == 200).then_some(());
    until_async("it is ready", is_ready).await;
    slack.rotate(&app, "xoxb-another");
    let asked = slack.dm("U1", "is anybody there?");
    assert!(slack.await_ack(&asked.event_id, PATIENCE).await.is_some());
    let refused = json!({"level": "degraded", "ready": false, "reasons": ["Slack refuses this app or its token"]});
    until_async("it is not ready", || (ask(&address, "GET", "/readyz") == (503, refused.clone())).then_some(())).await;
    assert_eq!(ask(&address, "GET", "/healthz").0, 200);
    let reason = home.await_events("front.refused", 1).remove(0)["reason"].as_str().expect("a reason").to_owned();
    let refused = "with the bot token (xoxb-…) failed: Slack says `token_revoked`";
    assert!(reason.ends_with(refused), "{reason}");
    let status = home.run(&["status"], "");
    assert_eq!(status.status.code(), Some(1));
    let page = status.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains(refused) && status.stderr.contains("copy the bot token"), "{page} {}", status.stderr);
    let log = gateway.log();
    let told = log.lines().filter(|line| line.contains("ERROR") && line.contains("Slack refuses everything"));
    assert_eq!(told.count(), 1, "{log}");
    slack.rotate(&app, &bot);
    until_async("it is ready again", is_ready).await;
    home.await_events("front.accepted", 1);
    assert_eq!(home.events("front.refused").len(), 1);
    let unmuted = |message: &Message| message.text.contains("Slack accepts my bot token again");
    assert!(slack.await_message(&dm_channel("U0ADMIN"), PATIENCE, unmuted).await.is_some());
    assert!(slack.await_reply(&asked, PATIENCE).await.is_some(), "what was asked meanwhile is answered");
    assert!(gateway.terminate().success());
}

/// Regression: what proved that something could be stored wrote nothing, so a full disk went unseen until somebody asked.
#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_whose_disk_takes_nothing_had_a_heartbeat() {
    let slack = Slack::start(rules().unlimited()).await;
    let home = home();
    let gateway = Gateway::start(&home, &slack, &[]);
    assert!(slack.await_sockets(2, PATIENCE).await);
    let address = address(&gateway);
    until_async("it is ready", || (ask(&address, "GET", "/readyz").0 == 200).then_some(())).await;
    let bounded = |bytes: &str| {
        let (pid, limit) = (gateway.pid().to_string(), format!("--fsize={bytes}:"));
        let bounded = Command::new("prlimit").args(["--pid", &pid, &limit]).status().expect("prlimit is installed");
        assert!(bounded.success());
    };
    // Room for a heartbeat and for the log, and none in the store.
    bounded("65536");
    until_async("a beat is due", || gateway.log().contains("no heartbeat: nothing can be stored").then_some(())).await;
    age(&home, Duration::from_secs(70));
    let reasons = ["it is running, but its heartbeat has stopped", "it cannot use its database"];
    let down = json!({"level": "down", "ready": false, "reasons": reasons});
    assert_eq!(ask(&address, "GET", "/healthz"), (503, down));
    bounded("unlimited");
    until_async("it beats again", || (ask(&address, "GET", "/readyz").0 == 200).then_some(())).await;
    assert!(gateway.terminate().success());
}

/// Slack that takes connections and says nothing.
#[test]
fn one_that_starts_is_alive_and_not_ready() {
    let slack = TcpListener::bind("127.0.0.1:0").expect("a port");
    let home = home();
    let config = json!({"version": 1, "health": {"listen": "127.0.0.1:0"}, "limits": {"slackCallSeconds": 3600}});
    home.write("gateway.json", config.to_string());
    let mut command = home.command(&["run", "--front", "slack", "--model", "sim"]);
    command.env("PMK_SLACK_API_URL", format!("http://{}/api", slack.local_addr().expect("a port")));
    command.env("PMK_SLACK_APP_TOKEN", "xapp-1").env("PMK_SLACK_BOT_TOKEN", "xoxb-1");
    let gateway = Gateway::spawn(&home, command);
    let address = address(&gateway);
    let starting = json!({"level": "degraded", "ready": false, "reasons": ["it is starting"]});
    assert_eq!(ask(&address, "GET", "/healthz"), (200, starting.clone()));
    assert_eq!(ask(&address, "GET", "/readyz"), (503, starting));
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_get_an_error_or_nothing_and_keep_nobody_else_waiting() {
    let slack = Slack::start(rules().unlimited()).await;
    let home = home();
    let gateway = Gateway::spawn(&home, command(&home, &slack, &[]));
    let address = address(&gateway);
    let long = format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(1 << 20));
    let many = format!("GET /healthz HTTP/1.1\r\n{}\r\n", "X: 1\r\n".repeat(10_000));
    for garbage in
        [&b"\0\xff\xfe\r\n\r\n"[..], b"\x16\x03\x01\x02\0\x01\0", b"hello\r\n\r\n", long.as_bytes(), many.as_bytes()]
    {
        let answer = say(&address, garbage);
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    }
    // As many as are answered at once, but one, who say half of something and wait.
    let mut slow: Vec<TcpStream> = (0..31).map(|_| connect(&address)).collect();
    for stream in &mut slow {
        stream.write_all(b"GET /hea").expect("it listens");
    }
    assert_eq!(ask(&address, "GET", "/healthz").0, 200);
    for mut stream in slow {
        let mut answer = vec![];
        let ended = stream.read_to_end(&mut answer);
        assert!(ended.is_ok() || ended.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset));
        assert_eq!(answer, b"");
    }
    // One who leaves at once.
    connect(&address).shutdown(Shutdown::Both).expect("gone");
    assert_eq!(ask(&address, "GET", "/healthz").0, 200);
}

#[test]
fn an_address_that_cannot_be_had_is_named_at_the_start() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = taken.local_addr().map(|address| (taken, address)).expect("an address");
    let home = Home::new();
    home.write("gateway.json", json!({"version": 1, "health": {"listen": taken.1}}).to_string());
    let refused = finish(home.command(&["run", "--model", "sim"]), "");
    assert_eq!(refused.status.code(), Some(1));
    assert!(refused.stderr.contains(&format!("cannot listen on {}: ", taken.1)), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("hint: set the address with `health.listen` in gateway.json"),
        "{}",
        refused.stderr
    );
}

/// Regression: all was well before a start that was then refused.
#[test]
fn an_address_that_cannot_be_had_was_found_at_the_start_only() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address");
    let home = Home::new();
    let examined = |listen: &str| {
        home.write("gateway.json", json!({"version": 1, "model": "sim", "health": {"listen": listen}}).to_string());
        home.run(&["doctor", "--offline"], "")
    };
    let told = examined(&address.to_string());
    assert_eq!(told.status.code(), Some(1), "{}", told.stdout);
    assert!(told.stdout.contains(&format!("✗ health        cannot listen on {address}: ")), "{}", told.stdout);
    assert!(told.stdout.contains("hint: set the address with `health.listen` in gateway.json"), "{}", told.stdout);
    let told = examined("127.0.0.1:0");
    assert!(!told.stdout.contains("cannot listen on"), "{}", told.stdout);
}
