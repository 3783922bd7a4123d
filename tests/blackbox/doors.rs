//! What comes in from outside is looked at where it comes in: ids from Slack, files that an operator names, texts
//! that others wrote.

use std::{
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use pmk_stand_ins::slack::{Slack, dm_channel};
use serde_json::{Value, json};

use crate::{
    component::{Component, DATA},
    support::{Home, PATIENCE, Running, component, exit, question, repository, until_async},
    workspace::{Gateway, rules},
};

/// Once, `thread_ts: "1 2"` was stored under a key that nobody could read back, and the next start said that the
/// store was damaged.
#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_id_is_refused_at_slacks_door() {
    let slack = Slack::start(rules().unlimited()).await;
    let home = Home::new();
    let gateway = Gateway::start(&home, &slack, &[]);
    assert!(slack.await_connected(PATIENCE).await);
    let said = json!({
        "type": "message", "channel": dm_channel("U1"), "channel_type": "im", "user": "U1",
        "ts": "1700000000.000100", "text": "a secret",
    });
    for (field, id) in [
        ("thread_ts", "1 2"),
        ("thread_ts", "1700000000.000100:2"),
        ("thread_ts", ""),
        ("thread_ts", "1\u{1b}[2J"),
        ("user", "U1:1700000000.000100"),
        ("channel", "D1\u{202e}"),
        ("ts", &"1".repeat(1_000)),
    ] {
        let mut event = said.clone();
        event[field] = id.into();
        let event = slack.send_event(event);
        assert!(slack.await_ack(&event, PATIENCE).await.is_some(), "{field} {id:?} would come again");
    }
    let asked = slack.dm("U1", "hello");
    assert!(slack.await_reply(&asked, PATIENCE).await.is_some(), "{}", gateway.log());

    let sessions = home.run(&["--json", "sessions", "list"], "").ok().json();
    let keys: Vec<&Value> = sessions.as_array().expect("a list").iter().map(|session| &session["key"]).collect();
    assert_eq!(keys, ["slack:dm:U1"], "nothing else is stored");
    until_async("seven events", || (home.events("front.malformed").len() == 7).then_some(())).await;
    let fields: Vec<Value> = home.events("front.malformed").iter().map(|event| event["field"].clone()).collect();
    assert_eq!(fields, ["thread_ts", "thread_ts", "thread_ts", "thread_ts", "user", "channel", "ts"]);
    let audit = home.run(&["audit"], "").ok().stdout;
    assert!(audit.contains("7 events of the front were malformed"), "{audit}");
    assert!(gateway.log().contains("WARN") && !gateway.log().contains("a secret"), "{}", gateway.log());
    assert!(gateway.terminate().success());
}

/// A home with things in it that are no files: a pipe that nobody writes to, and what never ends.
fn special_files(home: &Home) -> [PathBuf; 2] {
    let pipe = home.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo is installed").success());
    let endless = home.path().join("endless");
    symlink("/dev/zero", &endless).expect("a link");
    [pipe, endless]
}

/// What a command says of a file that it cannot take; it must end, and is ended when it does not.
fn refused(home: &Home, arguments: &[&str]) -> String {
    struct Ended(Child);
    impl Drop for Ended {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
    let log = home.path().join("refused.log");
    let mut command = home.command(arguments);
    command.env_remove("LANG").stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(std::fs::File::create(&log).expect("a file"));
    let mut child = Ended(command.spawn().expect("the program starts"));
    let status = exit(&mut child.0);
    let said = std::fs::read_to_string(&log).expect("the log");
    assert_eq!(status.code(), Some(1), "{arguments:?}: {said}");
    said
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// Once, `policy inspect` of a pipe waited for ever, and of a link to `/dev/zero` took all memory.
#[test]
fn no_command_waits_for_a_file_that_is_none() {
    let home = Home::new();
    let (strict, histories) = (component("strict"), repository("tests/fixtures"));
    let histories = text(&histories);
    for special in special_files(&home) {
        let special = text(&special);
        for arguments in [
            &["policy", "inspect", special][..],
            &["policy", "check", special],
            &["policy", "check", &strict, "--history", special],
            &["policy", "bench", special],
            &["run", "--model", "sim", "--policy", special],
            &["plan", "--policy", special, "--history", special],
            &["plan", "--history", special],
            &["compare", "--policy", "standard", "--policy", special, "--histories", histories],
            &["sessions", "import", special],
        ] {
            let said = refused(&home, arguments);
            let errors: Vec<&str> = said.lines().filter(|line| line.starts_with("error: ")).collect();
            assert!(errors.len() == 1 && errors[0].contains("is not a regular file"), "{arguments:?}: {said}");
            assert!(said.contains("hint: "), "{arguments:?}: {said}");
        }
    }
}

/// Once, such a file held the lock of swaps until the gateway was started again.
#[test]
fn a_running_gateway_takes_no_pipe_for_a_policy() {
    let home = Home::new();
    let mut gateway = Running::start(home.command(&["run", "--model", "sim"]));
    assert!(gateway.say(&question("Ev1", "hello")));
    gateway.next_of("turn");
    for special in special_files(&home) {
        let said = refused(&home, &["policy", "use", text(&special)]);
        assert!(said.contains("is not a regular file") && said.contains("hint: "), "{said}");
    }
    home.run(&["policy", "use", &component("strict")], "").ok();
    assert!(gateway.say(&question("Ev2", "hello")));
    assert_eq!(gateway.next_of("turn")["policy"]["name"], "strict");
}

/// Once, only a gateway asked `policy.allow`: at the desk anything was compiled and run.
#[test]
fn what_is_not_allowed_is_not_run_at_the_desk_either() {
    let home = Home::new();
    let strict = component("strict");
    let open = home.run(&["policy", "inspect", &strict], "").ok().stdout;
    assert!(open.contains("allowed   not checked: gateway.json has no `policy.allow`\n"), "{open}");
    let document = home.run(&["--json", "policy", "inspect", &strict], "").ok().json();
    assert_eq!(document["allowed"], Value::Null);
    home.write("gateway.json", json!({"version": 1, "policy": {"allow": []}}).to_string());
    for command in ["inspect", "check", "bench"] {
        let said = refused(&home, &["policy", command, &strict]);
        assert!(said.contains("is not in `policy.allow`") && said.contains("hint: "), "{command}: {said}");
    }
    let allow = json!({"version": 1, "policy": {"allow": [document["sha256"]]}});
    home.write("gateway.json", allow.to_string());
    let allowed = home.run(&["policy", "inspect", &strict], "").ok().stdout;
    assert!(allowed.contains("allowed   yes, by `policy.allow`\n"), "{allowed}");
    assert_eq!(home.run(&["--json", "policy", "inspect", &strict], "").ok().json()["allowed"], true);
}

/// Once, a component could write its line backwards.
#[test]
fn a_component_says_nothing_that_is_not_seen() {
    let home = Home::new();
    let about = "keeps\u{202e} all\u{200b}of it\u{2066}";
    let escaped: String = about.bytes().map(|byte| format!("\\{byte:02x}")).collect();
    let body = format!("(call $about (local.get $description) (i32.const {DATA}) (i32.const {}))", about.len());
    let file = home.write("test.wasm", Component::new().describing(&body).data(&escaped).build());
    let shown = home.run(&["policy", "inspect", text(&file)], "").ok().stdout;
    assert!(shown.contains("about     keeps allof it\n"), "{shown}");
}

/// Once, `--json` wrote such characters as they came, and the terminal showed the line as its writer wished.
#[test]
fn json_shows_what_is_not_seen_and_parses_to_the_same() {
    let home = Home::new();
    let text = "pay\u{202e}lap\u{2066} \u{1b}[2J\u{9b}2J\u{200b} 預算";
    let said = home.run(&["run", "--model", "sim"], &question("Ev1", text)).ok().stdout;
    let shown = home.run(&["--json", "sessions", "show", "console:dm:U1"], "").ok().stdout;
    for output in [&said, &shown] {
        assert_eq!(pmk_core::text::printable(output), output.as_str());
    }
    assert!(shown.contains(r"pay\u202elap\u2066 \u001b[2J\u009b2J\u200b 預算"), "{shown}");
    let document: Value = serde_json::from_str(&shown).expect("JSON");
    let texts = document["messages"].as_array().expect("a list").iter().map(|message| &message["content"][0]["text"]);
    assert!(texts.into_iter().any(|found| found == text), "{shown}");
}

/// Once, a file of lines was read to the end of one however far that was.
#[test]
fn a_line_without_an_end_is_not_imported() {
    let home = Home::new();
    let header = "{\"pmk-host-sessions\":{\"version\":1}}\n";
    let question = "{\"role\":\"user\",\"content\":\"q\"}\n";
    for (name, start, key) in [("export.jsonl", header, &[][..]), ("users.jsonl", question, &["--key", "slack:dm:U1"])]
    {
        let path = home.write(name, start);
        // A hole in it is as good as a text.
        let file = std::fs::File::options().append(true).open(&path).expect("a file");
        file.set_len(200 << 20).expect("a hole");
        let said = refused(&home, &[&["sessions", "import"], key, &[text(&path)]].concat());
        let lines: Vec<&str> = said.lines().filter(|line| line.contains("line 2 is longer than the")).collect();
        assert!(lines.len() == 1 && said.contains("hint: "), "{name}: {said}");
    }
}

/// Once, at the level `trace` the log had the ticket that opens a connection to Slack.
#[tokio::test(flavor = "multi_thread")]
async fn the_log_never_has_the_ticket_of_a_connection() {
    let slack = Slack::start(rules().unlimited()).await;
    let home = Home::new();
    for filter in ["trace", "tungstenite=trace,hyper=trace", "tungstenite::handshake::client=trace"] {
        let mut command = crate::workspace::command(&home, &slack, &[]);
        let log = home.path().join("trace.log");
        command.env("PMK_LOG", filter).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(std::fs::File::create(&log).expect("a file"));
        let mut gateway = command.spawn().expect("the program starts");
        let connected = slack.await_connected(PATIENCE).await;
        gateway.kill().expect("SIGKILL");
        gateway.wait().expect("it is gone");
        assert!(connected);
        assert!(slack.await_sockets(0, PATIENCE).await);
        let log = std::fs::read_to_string(&log).expect("the log");
        let line = log.lines().find(|line| line.contains("ticket="));
        assert!(line.is_none(), "{filter}: {}", line.unwrap_or_default());
    }
}
