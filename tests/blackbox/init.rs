//! From nothing to a gateway that answers.

use std::{fs::Permissions, os::unix::fs::PermissionsExt, process::Command};

use dialoguer::console::{measure_text_width, strip_ansi_codes};
use pmk_models::Provider;
use pmk_stand_ins::{
    anthropic::{self, Anthropic},
    openai::{self, OpenAi},
    slack::Slack,
};
use serde_json::json;

use crate::{
    doctor::{between, examine},
    support::{Home, Running, finish, question},
    terminal::Terminal,
    workspace::rules,
};

/// A home that nobody else may enter.
fn home() -> Home {
    let home = Home::new();
    std::fs::set_permissions(home.path(), Permissions::from_mode(0o700)).expect("a mode");
    home
}

fn written(home: &Home) -> serde_json::Value {
    let text = std::fs::read_to_string(home.path().join("gateway.json")).expect("gateway.json");
    serde_json::from_str(&text).expect("JSON")
}

/// Without what differs between machines.
fn shown(home: &Home, told: &str) -> String {
    let told = told.replace(&home.path().display().to_string(), "HOME");
    told.lines().map(|line| between(line, "tls           ", " root", "N") + "\n").collect()
}

#[test]
fn flags_say_all_of_it_and_the_gateway_runs_with_what_was_written() {
    let home = home();
    let flags = ["init", "--model", "sim", "--language", "en", "--front", "console", "--offline"];
    let told = home.run(&flags, "").ok();
    assert_eq!(told.stdout, "", "no manifest");
    insta::assert_snapshot!(shown(&home, &told.stderr));
    assert_eq!(written(&home), json!({"version": 1, "language": "en", "model": "sim"}));
    let mode = std::fs::metadata(home.path().join("gateway.json")).expect("the file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let answered = home.run(&["run"], r#"{"text":"hello"}"#).ok();
    assert!(answered.stdout.contains("I am sim"), "{}", answered.stdout);
}

/// Regression: `--store` was checked and not written.
#[test]
fn a_store_is_written_and_its_password_is_not() {
    let home = home();
    let flags = ["init", "--model", "sim", "--language", "en", "--front", "console", "--offline"];
    let init = |store: &str| home.run(&[&["--store", store], &flags[..]].concat(), "");
    init("sqlite").ok();
    let refused = init("postgres://pmk:hunter2@127.0.0.1/db");
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        refused.stderr.contains("contains a password") && !refused.stderr.contains("hunter2"),
        "{}",
        refused.stderr
    );
    assert_eq!(written(&home)["store"], "sqlite");
}

#[test]
fn slack_comes_with_its_manifest_and_what_has_to_be_set() {
    let home = home();
    let slack_flags = ["--app-token", "env:APP", "--bot-token", "cmd:pass slack/bot", "--api-key", "env:KEY"];
    let flags = ["init", "--model", "anthropic-api", "--language", "en", "--offline"];
    let told = home.run(&[&flags[..], &slack_flags].concat(), "").ok();
    assert_eq!(told.json()["settings"]["socket_mode_enabled"], true);
    insta::assert_snapshot!(shown(&home, &told.stderr));
    let tokens = json!({"replyIn": "thread", "appToken": {"env": "APP"}, "botToken": {"cmd": "pass slack/bot"}});
    let mut expected =
        json!({"version": 1, "language": "en", "model": "anthropic-api", "apiKey": {"env": "KEY"}, "slack": tokens});
    assert_eq!(written(&home), expected);
    // Nobody is moved elsewhere who is used to the channel.
    let slack = expected["slack"].as_object_mut().expect("an object");
    slack.remove("replyIn");
    home.write("gateway.json", expected.to_string());
    home.run(&[&flags[..], &slack_flags].concat(), "").ok();
    assert_eq!(written(&home), expected);
}

/// Once, the file that the first day makes held what was said of it, too.
#[test]
fn what_goes_to_a_file_is_the_manifest_and_nothing_else() {
    let home = home();
    for language in ["en", "zh-TW"] {
        let flags = ["init", "--model", "sim", "--front", "slack", "--offline", "--language", language];
        let told = home.run(&flags, "").ok();
        assert_eq!(told.json()["display_information"]["name"], "pmk");
        let last = told.stderr.lines().last().expect("what is next");
        assert!(last.ends_with(" run --front slack"), "{}", told.stderr);
    }
}

/// Once, `init` refused a token that `run` takes.
#[test]
fn a_bot_token_that_is_rotated_is_taken() {
    let home = home();
    let mut command = home.command(&["init", "--model", "sim", "--bot-token", "env:BOT", "--offline"]);
    command.env("BOT", "xoxe.xoxb-1-rotated");
    finish(command, "").ok();
    assert_eq!(written(&home)["slack"]["botToken"], json!({"env": "BOT"}));
}

/// What systemd hands over is not here yet when somebody sets the service up.
#[test]
fn what_a_service_manager_hands_over_is_awaited() {
    let home = home();
    let tokens = ["--app-token", "file:pmk-slack-app-token", "--bot-token", "file:pmk-slack-bot-token"];
    let flags = ["init", "--language", "en", "--model", "anthropic-api", "--api-key", "file:pmk-model-key"];
    let told = home.run(&[&flags[..], &tokens].concat(), "").ok();
    assert_eq!(told.json()["settings"]["socket_mode_enabled"], true);
    insta::assert_snapshot!(shown(&home, &told.stderr));
    let document = home.run(&[&flags[..], &tokens, &["--json"]].concat(), "").ok().json();
    assert_eq!(document["variables"], json!([]));
    assert_eq!(document["credentials"], json!(["pmk-model-key", "pmk-slack-bot-token", "pmk-slack-app-token"]));
    assert_eq!(document["next"], "systemctl enable --now pmk-host");
}

/// Nobody was told to put it anywhere, and the unit did not pass it on: the service could not start.
#[test]
fn the_password_of_a_store_that_a_service_manager_hands_over_is_awaited() {
    let home = home();
    let password = json!({"file": "pmk-store-password"});
    let config = json!({"version": 1, "store": "postgres://pmk@127.0.0.1:1/pmk", "storePassword": password});
    home.write("gateway.json", config.to_string());
    let flags = ["init", "--model", "sim", "--language", "en", "--front", "console", "--offline"];
    let told = home.run(&flags, "").ok().stderr;
    assert!(told.contains("Put pmk-store-password in /etc/credstore"), "{told}");
    let document = home.run(&[&flags[..], &["--json"]].concat(), "").ok().json();
    assert_eq!(document["credentials"], json!(["pmk-store-password"]));
    assert_eq!((&document["next"], &document["note"]), (&json!("systemctl enable --now pmk-host"), &json!(null)));
    let unit = include_str!("../../packaging/pmk-host.service");
    assert!(unit.lines().any(|line| line == "LoadCredential=pmk-store-password"), "{unit}");
}

/// systemd has no credential in a folder, and nothing expands `~`: the service could not start.
#[test]
fn a_path_that_is_neither_whole_nor_a_credential_is_refused() {
    let home = home();
    for path in ["~/bot", "secrets/bot", "./bot"] {
        let source = format!("file:{path}");
        let told = home.run(&["init", "--language", "en", "--model", "sim", "--bot-token", &source, "--offline"], "");
        assert_eq!(told.status.code(), Some(1), "{path}: {}", told.stderr);
        assert!(told.stderr.contains("`--bot-token` is neither a full path nor the name of"), "{}", told.stderr);
        assert!(!home.path().join("gateway.json").exists(), "{path}");
    }
}

/// It reads the file at its start.
#[test]
fn a_gateway_that_runs_is_to_be_started_again_after_a_change() {
    let home = home();
    let mut gateway = Running::start(home.command(&["run", "--model", "sim"]));
    gateway.say(&question("Ev1", "hello"));
    gateway.next_of("turn");
    let flags = ["init", "--model", "sim", "--language", "en", "--front", "console", "--offline"];
    let told = home.run(&flags, "").ok();
    let told = shown(&home, &told.stderr);
    assert!(told.contains("Next: pmk-host --home HOME stop && pmk-host --home HOME run\n"), "{told}");
}

/// It was to be restarted as a service, which it is not.
#[test]
fn a_gateway_that_was_started_by_hand_is_stopped_before_its_service_starts() {
    let home = home();
    let [app, bot] = ["pmk-slack-app-token", "pmk-slack-bot-token"].map(|name| json!({"file": name}));
    home.write("gateway.json", json!({"version": 1, "slack": {"appToken": app, "botToken": bot}}).to_string());
    let next = |supervised: bool| {
        let mut run = home.command(&["run", "--model", "sim", "--front", "console"]);
        if supervised {
            run.env("INVOCATION_ID", "0123456789abcdef0123456789abcdef");
        }
        let mut gateway = Running::start(run);
        gateway.say(&question(if supervised { "Ev2" } else { "Ev1" }, "hello"));
        gateway.next_of("turn");
        let flags = ["--json", "init", "--model", "sim", "--language", "en", "--front", "console", "--offline"];
        let document = home.run(&flags, "").ok().json();
        [&document["next"], &document["note"]].map(|said| shown(&home, said.as_str().unwrap_or("none")))
    };
    let again = "pmk-host --home HOME stop && systemctl enable --now pmk-host\n";
    assert_eq!(next(false), [again, "none\n"]);
    let [command, note] = next(true);
    assert_eq!(command, "none\n", "prose is no command");
    assert!(note.starts_with("restart the service that runs the gateway") && note.ends_with(again), "{note}");
}

/// A gateway that was started by hand has none of the tokens in the environment of the service.
#[test]
fn a_gateway_that_a_service_runs_is_not_to_be_started_by_hand() {
    let home = home();
    let mut run = home.command(&["run", "--model", "sim"]);
    run.env("INVOCATION_ID", "0123456789abcdef0123456789abcdef");
    let mut gateway = Running::start(run);
    gateway.say(&question("Ev1", "hello"));
    gateway.next_of("turn");
    let flags = ["init", "--model", "sim", "--language", "en", "--front", "console", "--offline"];
    let told = home.run(&flags, "").ok();
    let told = shown(&home, &told.stderr);
    let again = "pmk-host --home HOME stop && pmk-host --home HOME run\n";
    assert!(told.contains("Next: restart the service that runs the gateway"), "{told}");
    assert!(told.contains(&format!("If none does: {again}")), "{told}");
}

/// A server of one's own: once, there was no place for its address, and it was asked for a model of OpenAI's.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_speaks_openais_api_is_set_up_by_flags_and_answers() {
    let (home, server) = (home(), OpenAi::start());
    let (address, flags) = (server.url(), ["init", "--language", "en", "--front", "console"]);
    let mut command = home.command(&[&flags[..], &["--model", "openai:llama3.2", "--base-url", &address]].concat());
    command.args(["--api-key", "env:KEY"]).env("KEY", openai::KEY);
    let told = examine(command).await.ok();
    assert!(told.stderr.contains("✓ model         openai:llama3.2 answers"), "{}", told.stderr);
    let expected = json!({
        "version": 1, "language": "en", "model": "openai:llama3.2", "apiKey": {"env": "KEY"}, "baseUrl": address,
    });
    assert_eq!(written(&home), expected);
    assert_eq!(server.requests()[0]["model"], "llama3.2");
    // What the file has for one provider, another one does not get.
    let mut other = home.command(&["doctor", "--model", "anthropic-api"]);
    other.env("KEY", openai::KEY);
    let told = examine(other).await.stdout;
    assert!(told.contains("`anthropic-api` needs a key, but ANTHROPIC_API_KEY is not set"), "{told}");
    // Nor where `init` is told of the other one.
    let told = home.run(&[&flags[..], &["--model", "anthropic-api", "--offline"]].concat(), "").ok();
    assert!(told.stderr.contains("`apiKey` and `baseUrl` of openai were removed"), "{}", told.stderr);
    assert_eq!(written(&home), json!({"version": 1, "language": "en", "model": "anthropic-api"}));
}

/// Regression: it went to whatever server was named next.
#[test]
fn a_key_was_kept_for_a_server_that_it_does_not_belong_to() {
    let flags = ["init", "--language", "en", "--front", "console", "--offline", "--model", "openai:llama3.2"];
    let init = |before: &[(&str, &str)], after: &str| {
        let home = home();
        let mut config = json!({"version": 1, "model": "openai:gpt-5", "apiKey": "sk-very-secret"});
        before.iter().for_each(|(key, value)| config[key] = json!(value));
        home.write("gateway.json", config.to_string());
        let told = home.run(&[&flags[..], &["--base-url", after]].concat(), "").ok().stderr;
        assert_eq!(told.contains("`apiKey` was removed"), written(&home)["apiKey"].is_null(), "{told}");
        (written(&home)["apiKey"].as_str() == Some("sk-very-secret"), written(&home)["baseUrl"] == json!(after))
    };
    let [one, other] = ["http://localhost:11434/v1", "http://localhost:8000/v1"];
    assert_eq!(init(&[], one), (false, true), "that of OpenAI");
    assert_eq!(init(&[("baseUrl", one)], other), (false, true));
    assert_eq!(init(&[("baseUrl", one)], "http://localhost:11434/v1/"), (true, true));
    assert_eq!(init(&[], "https://api.openai.com/v1"), (true, true));
}

#[test]
fn what_is_there_already_stays() {
    let home = home();
    home.write("gateway.json", r#"{"version":1,"admins":["U1"],"strange":[1],"language":"zh-TW"}"#);
    home.run(&["init", "--model", "sim", "--language", "en", "--offline"], "").ok();
    let expected = json!({"version": 1, "admins": ["U1"], "strange": [1], "language": "en", "model": "sim"});
    assert_eq!(written(&home), expected);
    home.write("gateway.json", "{");
    let refused = home.run(&["init", "--model", "sim"], "");
    assert!(!refused.status.success() && refused.stderr.contains("gateway.json"), "{}", refused.stderr);
    assert_eq!(std::fs::read_to_string(home.path().join("gateway.json")).expect("the file"), "{");
}

/// Once, the next step went to Slack, or was to mend the Slack that had just been declined.
#[test]
fn whoever_declined_slack_in_a_home_with_its_tokens_was_sent_to_slack() {
    for (bot, app) in [(json!("xoxb-1-secret"), json!("xapp-1-secret")), (json!({"env": "BOT"}), json!({"env": "APP"}))]
    {
        let home = home();
        let slack = json!({"botToken": bot, "appToken": app});
        home.write("gateway.json", json!({"version": 1, "slack": slack}).to_string());
        let flags = ["init", "--model", "sim", "--language", "en", "--front", "console", "--offline"];
        let told = home.run(&flags, "").ok().stderr;
        let last = told.lines().last().expect("a line");
        assert!(last.starts_with("Next: pmk-host ") && last.ends_with(" run --front console"), "{told}");
        assert!(told.contains("Slack's tokens are still set: without `--front console`"), "{told}");
        assert_eq!(written(&home)["slack"], slack);
        let next = home.run(&[&flags[..], &["--json"]].concat(), "").ok().json()["next"].clone();
        assert!(next.as_str().is_some_and(|next| next.ends_with(" run --front console")), "{next}");
    }
}

/// Once, it was `no model is set`.
#[test]
fn a_model_that_the_home_has_was_to_be_given_again() {
    let home = home();
    home.write("gateway.json", r#"{"version":1,"model":"sim"}"#);
    home.run(&["init", "--language", "zh-TW", "--offline"], "").ok();
    assert_eq!(written(&home), json!({"version": 1, "model": "sim", "language": "zh-TW"}));
}

/// Once, a key that the file had already was to be set all the same.
#[test]
fn only_what_is_missing_is_to_be_set() {
    let home = home();
    home.write("gateway.json", r#"{"version":1,"apiKey":{"cmd":"echo key"}}"#);
    let awaited = |model: &str, set: &[(&str, &str)]| {
        let mut command = home.command(&["init", "--json", "--offline", "--model", model]);
        command.envs(set.iter().copied());
        finish(command, "").ok().json()["variables"].clone()
    };
    assert_eq!(awaited("anthropic-api", &[]), json!([]));
    assert_eq!(awaited("openai:x", &[]), json!(["OPENAI_API_KEY"]));
    assert_eq!(awaited("openai:x", &[("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")]), json!([]));
}

#[test]
fn what_cannot_be_is_said_and_nothing_is_written() {
    let home = home();
    let mut told = String::new();
    let sim = ["init", "--model", "sim"];
    for arguments in [
        &["init"][..],
        &["init", "--model", "gpt"],
        &[&sim[..], &["--bot-token", "xoxb-secret"]].concat(),
        &[&sim[..], &["--bot-token", "env:WRONG_KIND"]].concat(),
        &[&sim[..], &["--api-key", "env:KEY"]].concat(),
        &["init", "--model", "openai", "--base-url", "http://127.0.0.1:11434/v1"],
        &["init", "--model", "openai:x", "--base-url", "http://gpu.example.com:11434/v1"],
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
    let home = home();
    let mut command = home.command(&["init", "--offline"]);
    command.env("TERM", "xterm");
    let mut terminal = Terminal::start(command);
    terminal.wait_for("Language / 語言", 1);
    terminal.type_in(b"\r");
    terminal.wait_for("Which model answers?", 1);
    terminal.type_in(b"\r");
    terminal.wait_for("Model name", 1);
    terminal.type_in(b"\r");
    terminal.wait_for("Key", 1);
    terminal.type_unseen(b"sk-very-secret\r");
    terminal.wait_for("Where do people talk?", 1);
    terminal.type_in(b"\r");
    terminal.wait_for("Bot token", 1);
    terminal.type_unseen(b"xapp-wrong\r");
    terminal.wait_for("Wrong token", 1);
    terminal.type_unseen(b"xoxb-hidden\r");
    terminal.wait_for("App-level token", 1);
    terminal.type_unseen(b"\r");
    terminal.wait_for("skipped", 1);
    terminal.wait_for("Set PMK_SLACK_APP_TOKEN where", 1);
    terminal.wait_for("Next: ", 1);
    terminal.wait_for("run --front slack", 1);
    assert!(terminal.wait().success());
    assert!(!terminal.screen.contains("secret") && !terminal.screen.contains("hidden"), "{}", terminal.screen);
    let expected = json!({
        "version": 1, "language": "en", "model": "anthropic-api", "apiKey": "sk-very-secret",
        "slack": {"replyIn": "thread", "botToken": "xoxb-hidden"},
    });
    assert_eq!(written(&home), expected);
}

/// Somebody with Ollama: an address, a name that has no default there, and no key.
#[test]
fn somebody_with_a_server_of_their_own_is_asked_where_it_is_and_what_it_has() {
    let home = home();
    let mut command = home.command(&["init", "--offline", "--language", "en", "--front", "console"]);
    command.env("TERM", "xterm");
    let mut terminal = Terminal::start(command);
    terminal.wait_for("Which model answers?", 1);
    terminal.type_in(b"\x1b[B\r");
    terminal.wait_for("Address", 1);
    terminal.type_in(b"http://gpu.example.com/v1\r");
    terminal.wait_for("https://…, or http:// on this machine", 1);
    terminal.type_in(b"http://localhost:11434/v1\r");
    terminal.wait_for("Model name", 1);
    terminal.type_in(b"\r");
    terminal.wait_for("That server has no default model", 1);
    terminal.type_in(b"llama3.2\r");
    terminal.wait_for("Key", 1);
    terminal.type_unseen(b"\r");
    terminal.wait_for("Next: ", 1);
    assert!(terminal.wait().success());
    let expected = json!({
        "version": 1, "language": "en", "model": "openai:llama3.2", "baseUrl": "http://localhost:11434/v1",
    });
    assert_eq!(written(&home), expected);
}

/// Regression: Enter took another language, another provider and Slack, and that removed the key.
#[test]
fn enter_alone_changed_a_home_that_was_set_up() {
    let home = home();
    let before = json!({
        "version": 1, "language": "zh-TW", "model": "openai:llama3.2", "baseUrl": "http://localhost:11434/v1",
        "apiKey": "sk-very-secret",
    });
    home.write("gateway.json", before.to_string());
    let mut command = home.command(&["init", "--offline"]);
    command.env("TERM", "xterm");
    let mut terminal = Terminal::start(command);
    let questions = ["Language / 語言", "由哪個模型回答？", "按 Enter 會保留 http://localhost:11434/v1", "模型名稱"];
    for question in questions {
        terminal.wait_for(question, 1);
        terminal.type_in(b"\r");
    }
    terminal.wait_for("留空表示保留 gateway.json 裡的值", 1);
    terminal.type_unseen(b"\r");
    terminal.wait_for("保留", 3);
    terminal.wait_for("大家在哪裡對話？", 1);
    terminal.type_in(b"\r");
    terminal.wait_for("接下來", 1);
    assert!(terminal.wait().success());
    assert_eq!(written(&home), before);
}

/// Regression: the other server's model was the default there, and its key was said to be kept.
#[test]
fn a_new_address_was_offered_the_model_and_the_key_of_the_old_one() {
    let home = home();
    let before = json!({
        "version": 1, "language": "en", "model": "openai:llama3.2", "baseUrl": "http://localhost:11434/v1",
        "apiKey": "sk-very-secret",
    });
    home.write("gateway.json", before.to_string());
    let mut command = home.command(&["init", "--offline", "--language", "en", "--front", "console"]);
    command.env("TERM", "xterm");
    let mut terminal = Terminal::start(command);
    terminal.wait_for("Which model answers?", 1);
    terminal.type_in(b"\r");
    terminal.wait_for("Enter keeps http://localhost:11434/v1", 1);
    terminal.type_in(b"http://localhost:8000/v1\r");
    terminal.wait_for("Model name", 1);
    terminal.type_in(b"\r");
    terminal.wait_for("That server has no default model", 1);
    terminal.type_in(b"qwen3\r");
    terminal.wait_for("The key is not shown.", 1);
    terminal.type_unseen(b"\r");
    terminal.wait_for("`apiKey` was removed", 1);
    terminal.wait_for("Next: ", 1);
    assert!(terminal.wait().success());
    let expected =
        json!({"version": 1, "language": "en", "model": "openai:qwen3", "baseUrl": "http://localhost:8000/v1"});
    assert_eq!(written(&home), expected);
}

/// Regression: a model that is the default now was no longer named, and a later version would have asked another one. Of
/// a token that is there, nothing said how it begins.
#[test]
fn enter_did_not_keep_a_model_that_the_home_has_pinned() {
    let home = home();
    let slack = json!({"botToken": "xoxb-1-secret", "appToken": "xapp-1-secret"});
    let pinned = format!("anthropic-api:{}", Provider::AnthropicApi.default_model().expect("a model"));
    let before = json!({
        "version": 1, "language": "en", "model": pinned, "apiKey": "sk-very-secret", "slack": slack,
    });
    home.write("gateway.json", before.to_string());
    let mut command = home.command(&["init", "--offline", "--language", "en", "--front", "slack"]);
    command.env("TERM", "xterm");
    let mut terminal = Terminal::start(command);
    for question in ["Which model answers?", "Model name"] {
        terminal.wait_for(question, 1);
        terminal.type_in(b"\r");
    }
    terminal.wait_for("Key", 1);
    terminal.type_unseen(b"\r");
    for (question, begins) in [("Bot token", "It begins with xoxb-."), ("App-level token", "It begins with xapp-.")] {
        terminal.wait_for(begins, 1);
        terminal.wait_for(question, 1);
        terminal.type_unseen(b"\r");
    }
    terminal.wait_for("Next: ", 1);
    assert!(terminal.wait().success());
    assert_eq!(written(&home), before);
}

/// Once, a choice that was left hid the cursor of the shell, and a secret what was typed there.
#[test]
fn whoever_leaves_a_question_has_their_terminal_back() {
    let start = |home: &Home, flags: &[&str]| {
        let mut command = home.command(&[&["init", "--offline", "--language", "en"], flags].concat());
        command.env("TERM", "xterm");
        Terminal::start(command)
    };
    let home = home();
    let mut choosing = start(&home, &[]);
    choosing.wait_for("Which model answers?", 1);
    assert_eq!(choosing.press_until_it_ends(b"\x03").code(), Some(130));
    choosing.read_until_its_end();
    let (hidden, shown) = ("\x1b[?25l", "\x1b[?25h");
    assert!(choosing.screen.contains(hidden), "{:?}", choosing.screen);
    assert!(choosing.screen.rfind(shown) > choosing.screen.rfind(hidden), "{:?}", choosing.screen);
    let mut typing = start(&home, &["--model", "anthropic-api"]);
    typing.wait_for("Key", 1);
    typing.wait_until_unseen();
    typing.interrupt();
    assert_eq!(typing.wait().code(), Some(130));
    assert!(typing.shows_typing());
    assert!(!home.path().join("gateway.json").exists());
}

/// Once, what is asked for was longer than a line, of which half was left behind at each answer.
#[test]
fn every_question_fits_a_terminal_of_forty_columns() {
    for (language, questions, left_out) in
        [("en", ["Bot token", "App-level token"], "skipped"), ("zh-TW", ["bot token", "app token"], "略過")]
    {
        let home = home();
        let flags = ["init", "--offline", "--front", "slack", "--model", "sim", "--language", language];
        let mut command = home.command(&flags);
        command.env("TERM", "xterm");
        let mut terminal = Terminal::of_columns(40, command);
        for (at, question) in questions.into_iter().enumerate() {
            terminal.type_unseen(b"\r");
            terminal.wait_for(left_out, at + 1);
            let screen = strip_ansi_codes(&terminal.screen).into_owned();
            let mut lines = screen.lines().filter(|line| line.contains('›') && line.contains(question));
            let line = lines.next().unwrap_or_else(|| panic!("no `{question}` in {screen}"));
            assert!(measure_text_width(line.trim_end()) < 40, "{line:?}");
        }
        terminal.wait_for("PMK_SLACK_APP_TOKEN", 2);
        assert!(terminal.wait().success());
        assert!(!terminal.screen.contains("***"), "stars for nothing: {}", terminal.screen);
    }
}

/// `init` that is told where both of Slack's tokens and the key are, and where they go.
fn with_slack(home: &Home, slack: &Slack, anthropic: &Anthropic, more: &[&str]) -> Command {
    let given = ["init", "--model", "anthropic-api:claude-haiku-4-5", "--api-key", "env:KEY"];
    let tokens = ["--app-token", "env:APP", "--bot-token", "env:BOT"];
    let mut command = home.command(&[&given[..], &tokens, more].concat());
    let rules = slack.rules();
    command.env("APP", &rules.app_token).env("BOT", &rules.bot_token).env("KEY", anthropic::KEY);
    command.env("PMK_SLACK_API_URL", slack.api_url()).env("ANTHROPIC_BASE_URL", anthropic.url());
    command
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_given_is_tried_at_once() {
    let (home, slack, anthropic) = (home(), Slack::start(rules()).await, Anthropic::start().await);
    let told = examine(with_slack(&home, &slack, &anthropic, &["--language", "en"])).await.ok();
    insta::assert_snapshot!(shown(&home, &told.stderr));
    assert!(!slack.calls("auth.test").is_empty() && !anthropic.requests().is_empty());
    let before = (slack.call_count("auth.test"), anthropic.requests().len());
    examine(with_slack(&home, &slack, &anthropic, &["--offline"])).await.ok();
    assert_eq!((slack.call_count("auth.test"), anthropic.requests().len()), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bot_token_that_slack_refuses_is_found_out_and_the_file_is_written() {
    let (home, slack, anthropic) = (home(), Slack::start(rules()).await, Anthropic::start().await);
    let mut page = String::new();
    for language in ["en", "zh-TW"] {
        let mut command = with_slack(&home, &slack, &anthropic, &["--language", language]);
        command.env("BOT", "xoxb-revoked");
        let told = examine(command).await.ok();
        page += &told.stderr;
        assert_eq!(written(&home)["slack"]["botToken"], json!({"env": "BOT"}));
    }
    let page = page.lines().map(|line| between(line, "這個系統的 ", " 張", "N") + "\n").collect::<String>();
    insta::assert_snapshot!(shown(&home, &page));
    let mut command = with_slack(&home, &slack, &anthropic, &["--json", "--language", "zh-TW"]);
    command.env("BOT", "xoxb-revoked");
    let document = examine(command).await.ok().json();
    let findings = document["findings"].as_array().expect("a list");
    let bot = findings.iter().find(|finding| finding["check"] == "slack bot").expect("a finding");
    assert_eq!(bot["state"], "bad");
    assert!(document["next"].as_str().is_some_and(|next| next.ends_with(" doctor")), "{document}");
}
