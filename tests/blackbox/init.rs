//! From nothing to a gateway that answers.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::{
    support::{Home, finish},
    terminal::Terminal,
};

fn written(home: &Home) -> serde_json::Value {
    let text = std::fs::read_to_string(home.path().join("gateway.json")).expect("gateway.json");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn flags_say_all_of_it_and_the_gateway_runs_with_what_was_written() {
    let home = Home::new();
    let told = home.run(&["init", "--model", "sim", "--language", "en", "--front", "console"], "").ok();
    insta::assert_snapshot!(told.stdout.replace(&home.path().display().to_string(), "HOME"));
    assert_eq!(written(&home), json!({"version": 1, "language": "en", "model": "sim"}));
    let mode = std::fs::metadata(home.path().join("gateway.json")).expect("the file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let answered = home.run(&["run"], r#"{"text":"hello"}"#).ok();
    assert!(answered.stdout.contains("I am sim"), "{}", answered.stdout);
}

#[test]
fn slack_comes_with_its_manifest_and_what_has_to_be_set() {
    let home = Home::new();
    let slack = ["--app-token", "env:APP", "--bot-token", "cmd:pass slack/bot", "--api-key", "env:KEY"];
    let told = home.run(&[&["init", "--model", "anthropic-api", "--language", "en"][..], &slack].concat(), "").ok();
    let (manifest, rest) = told.stdout.rsplit_once("}\n").expect("a manifest");
    assert!(manifest.contains("\"socket_mode_enabled\": true"), "{manifest}");
    insta::assert_snapshot!(rest.replace(&home.path().display().to_string(), "HOME"));
    assert!(told.stderr.contains("connections:write"), "{}", told.stderr);
    let tokens = json!({"appToken": {"env": "APP"}, "botToken": {"cmd": "pass slack/bot"}});
    let expected =
        json!({"version": 1, "language": "en", "model": "anthropic-api", "apiKey": {"env": "KEY"}, "slack": tokens});
    assert_eq!(written(&home), expected);
}

#[test]
fn what_is_there_already_stays() {
    let home = Home::new();
    home.write("gateway.json", r#"{"version":1,"admins":["U1"],"strange":[1],"language":"zh-TW"}"#);
    home.run(&["init", "--model", "sim", "--language", "en"], "").ok();
    let expected = json!({"version": 1, "admins": ["U1"], "strange": [1], "language": "en", "model": "sim"});
    assert_eq!(written(&home), expected);
    home.write("gateway.json", "{");
    let refused = home.run(&["init", "--model", "sim"], "");
    assert!(!refused.status.success() && refused.stderr.contains("gateway.json"), "{}", refused.stderr);
    assert_eq!(std::fs::read_to_string(home.path().join("gateway.json")).expect("the file"), "{");
}

#[test]
fn what_cannot_be_is_said_and_nothing_is_written() {
    let home = Home::new();
    let mut told = String::new();
    let sim = ["init", "--model", "sim"];
    for arguments in [
        &["init"][..],
        &["init", "--model", "gpt"],
        &[&sim[..], &["--bot-token", "xoxb-secret"]].concat(),
        &[&sim[..], &["--bot-token", "env:WRONG_KIND"]].concat(),
        &[&sim[..], &["--api-key", "env:KEY"]].concat(),
        &[&sim[..], &["--front", "console", "--app-token", "env:APP"]].concat(),
    ] {
        let mut command = home.command(arguments);
        command.env("WRONG_KIND", "xapp-1-secret");
        let refused = finish(command, "");
        assert_eq!(refused.status.code(), Some(1), "{arguments:?}");
        told.push_str(&refused.stderr);
    }
    insta::assert_snapshot!(told);
    assert!(!told.contains("secret-") && !told.contains("xoxb-secret") && !told.contains("xapp-1"), "{told}");
    assert!(!home.path().join("gateway.json").exists());
}

#[test]
fn a_terminal_is_asked_and_shows_no_secret() {
    let home = Home::new();
    let mut command = home.command(&["init"]);
    command.env("TERM", "xterm");
    let mut terminal = Terminal::start(command);
    terminal.wait_for("Language / 語言", 1);
    terminal.type_in(b"\r");
    terminal.wait_for("What answers?", 1);
    terminal.type_in(b"\r");
    terminal.wait_for("Anthropic's key", 1);
    terminal.type_unseen(b"sk-very-secret\r");
    terminal.wait_for("Where do people talk?", 1);
    terminal.type_in(b"\r");
    terminal.wait_for("The bot token", 1);
    terminal.type_unseen(b"xapp-wrong\r");
    terminal.wait_for("That is another token", 1);
    terminal.type_unseen(b"xoxb-hidden\r");
    terminal.wait_for("The app-level token", 1);
    terminal.type_unseen(b"\r");
    terminal.wait_for("PMK_SLACK_APP_TOKEN is to be set", 1);
    terminal.wait_for("Next: ", 1);
    assert!(terminal.wait().success());
    assert!(!terminal.screen.contains("secret") && !terminal.screen.contains("hidden"), "{}", terminal.screen);
    let expected = json!({
        "version": 1, "language": "en", "model": "anthropic-api", "apiKey": "sk-very-secret",
        "slack": {"botToken": "xoxb-hidden"},
    });
    assert_eq!(written(&home), expected);
}
