//! Slack's tokens and API keys: where they come from, when they are got, and what is said of one that does not do.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
};

use pmk_stand_ins::{
    openai::{self, OpenAi, Reply},
    slack::Slack,
};
use serde_json::{Value, json};

use crate::{
    support::{Finished, Home, PATIENCE, finish, is_alive, question, until},
    workspace::{Gateway, command, rules},
};

/// Runs to the end of an empty input with this configuration and these variables. What is asked of Slack goes nowhere.
fn run_with(config: &Value, arguments: &[&str], variables: &[(&str, &str)]) -> Finished {
    let home = Home::new();
    home.write("gateway.json", config.to_string());
    let mut command = home.command(&[&["run", "--model", "sim"], arguments].concat());
    command.env("PMK_SLACK_API_URL", "http://127.0.0.1:9/api").envs(variables.iter().copied());
    finish(command, "")
}

fn with_slack(app: &Value, bot: &Value) -> Value {
    json!({"version": 1, "slack": {"appToken": app, "botToken": bot}})
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_of_a_variable_and_of_a_command_connect_slack() {
    let slack = Slack::start(rules()).await;
    let home = Home::new();
    let counted = home.path().join("counted");
    let print = format!("echo run >> {}; echo {}", counted.display(), slack.rules().bot_token);
    home.write("gateway.json", with_slack(&json!({"env": "MY_APP_TOKEN"}), &json!({"cmd": print})).to_string());
    let mut command = command(&home, &slack, &[]);
    command.env_remove("PMK_SLACK_APP_TOKEN").env_remove("PMK_SLACK_BOT_TOKEN");
    command.env("MY_APP_TOKEN", &slack.rules().app_token);
    let gateway = Gateway::spawn(&home, command);
    assert!(slack.await_connected(PATIENCE).await);
    assert!(slack.await_reply(&slack.dm("U1", "hello"), PATIENCE).await.is_some());
    assert!(gateway.terminate().success());
    assert_eq!(std::fs::read_to_string(counted).expect("it ran"), "run\n", "once");
}

/// By its path, and as systemd hands a credential over: by its name.
#[tokio::test(flavor = "multi_thread")]
async fn tokens_of_files_connect_slack() {
    let slack = Slack::start(rules()).await;
    let home = Home::new();
    let app = home.write("app-token", format!("{}\n", slack.rules().app_token));
    home.write("bot-token", &slack.rules().bot_token);
    home.write("gateway.json", with_slack(&json!({"file": app}), &json!({"file": "bot-token"})).to_string());
    let mut command = command(&home, &slack, &[]);
    command.env_remove("PMK_SLACK_APP_TOKEN").env_remove("PMK_SLACK_BOT_TOKEN");
    command.env("CREDENTIALS_DIRECTORY", home.path());
    let gateway = Gateway::spawn(&home, command);
    assert!(slack.await_connected(PATIENCE).await);
    assert!(gateway.terminate().success());
    let credential = json!({"file": "bot-token"});
    let refused = run_with(&with_slack(&credential, &credential), &[], &[]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(refused.stderr.contains("names the credential `bot-token`, but no service manager"), "{}", refused.stderr);
}

/// Once, a key's command was run whatever model was asked, and a token could be neither a variable nor a command.
#[test]
fn a_secret_that_is_not_needed_is_not_got() {
    let failing = json!({"cmd": "echo should not be run >&2; exit 1"});
    let mut config = with_slack(&failing, &failing);
    config["apiKey"] = failing;
    let finished = run_with(&config, &["--front", "console"], &[]).ok();
    assert!(!finished.stderr.contains("should not be run"), "{}", finished.stderr);
    // The environment goes before the file.
    let tokens = [("PMK_SLACK_APP_TOKEN", "xapp-1"), ("PMK_SLACK_BOT_TOKEN", "xoxb-1")];
    let finished = run_with(&config, &[], &tokens);
    assert!(finished.stderr.contains("did not reach Slack"), "{}", finished.stderr);
    assert!(!finished.stderr.contains("should not be run"), "{}", finished.stderr);
}

#[test]
fn a_command_that_takes_its_time_keeps_the_gateway_from_nobody_who_looks_or_stops_it() {
    let home = Home::new();
    let waits = json!({"cmd": "sleep 3600"});
    home.write("gateway.json", with_slack(&waits, &waits).to_string());
    let mut gateway = home.command(&["run", "--model", "sim"]).spawn().expect("the program");
    let looked = until("it is seen", || {
        let looked = home.run(&["--json", "status"], "");
        (looked.status.code() == Some(1)).then(|| looked.json())
    });
    assert_eq!((&looked["level"], &looked["phase"]), (&"degraded".into(), &"starting".into()), "{looked:#}");
    assert_eq!(home.run(&["stop"], "").ok().stdout, "stopped\n");
    assert!(!gateway.wait().expect("it is stopping").success());
}

/// Once, nothing said that it was waited for, and it went on without the gateway.
#[test]
fn a_command_that_is_waited_for_is_named_and_does_not_outlive_a_gateway_that_is_killed() {
    let home = Home::new();
    let pids = home.path().join("pids");
    let waits = json!({"cmd": format!("sleep 3600 & echo $$ $! > {}; wait", pids.display())});
    home.write("gateway.json", with_slack(&waits, &waits).to_string());
    let mut command = home.command(&["run", "--model", "sim"]);
    let mut gateway = command.stderr(Stdio::piped()).spawn().expect("the program");
    let log = BufReader::new(gateway.stderr.take().expect("a pipe"));
    let told = log.lines().map(|line| line.expect("text")).find(|line| line.contains("waiting for"));
    assert!(told.is_some_and(|told| told.contains("`slack.appToken.cmd` of gateway.json")));
    let pids = std::fs::read_to_string(pids).expect("it runs");
    gateway.kill().expect("killed");
    gateway.wait().expect("it is stopping");
    for pid in pids.split_whitespace() {
        until("the end of what it has started", || (!is_alive(pid)).then_some(()));
    }
}

#[test]
fn what_gives_no_token_is_one_clear_line() {
    let mut shown = String::new();
    let good = json!("xoxb-1");
    let folder = tempfile::tempdir().expect("a folder");
    let empty = folder.path().join("empty");
    std::fs::write(&empty, "\n").expect("a file");
    for (what, app) in [
        ("a variable that is not set", json!({"env": "PMK_NO_SUCH_TOKEN"})),
        ("a command that fails", json!({"cmd": "exit 3"})),
        ("a command that prints nothing", json!({"cmd": "true"})),
        ("a file that is not there", json!({"file": "/no/such/token"})),
        ("a file with nothing in it", json!({"file": empty})),
        ("a credential without who hands it over", json!({"file": "token"})),
        ("none of these", json!({"path": "token"})),
    ] {
        let finished = run_with(&with_slack(&app, &good), &[], &[]);
        assert_eq!(finished.status.code(), Some(1), "{what}");
        let home = finished.stderr.split('`').nth(1).and_then(|path| path.strip_suffix("/gateway.json"));
        let stderr = home.map_or_else(|| finished.stderr.clone(), |home| finished.stderr.replace(home, "[home]"));
        let stderr = stderr.replace(&folder.path().display().to_string(), "[folder]");
        shown += &format!("== {what}\n{stderr}");
    }
    insta::assert_snapshot!(shown);
}

/// Once, `xoxp-` went to Slack as the bot token.
#[test]
fn a_token_of_the_wrong_kind_is_told_before_slack_is_asked() {
    let mut shown = String::new();
    for (app, bot) in [
        ("xoxb-1", "xapp-1"),
        ("xapp-1", "xapp-1"),
        ("xapp-1", "xoxp-1"),
        ("xapp-1", "sk-secret"),
        ("xapp-1", "xoxb-1\u{7}"),
    ] {
        let finished = run_with(&with_slack(&json!(app), &json!(bot)), &[], &[]);
        assert_eq!(finished.status.code(), Some(1), "{app} {bot}");
        assert!(!finished.stderr.contains("sk-secret"), "{}", finished.stderr);
        shown += &format!("== {app} {}\n{}", bot.escape_default(), finished.stderr);
    }
    insta::assert_snapshot!(shown);
    let rotated = run_with(&with_slack(&json!("xapp-1"), &json!("xoxe.xoxb-1")), &[], &[]);
    assert!(rotated.stderr.contains("did not reach Slack"), "{}", rotated.stderr);
}

/// Once, a gateway with one token was a console that nobody talked to.
#[test]
fn half_a_pair_of_tokens_is_an_error_and_no_silent_console() {
    let home = Home::new();
    let run = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = home.command(&[&["run", "--model", "sim"], arguments].concat());
        command.envs(variables.iter().copied());
        finish(command, "")
    };
    let mut shown = String::new();
    for half in [("PMK_SLACK_APP_TOKEN", "xapp-1"), ("PMK_SLACK_BOT_TOKEN", "xoxb-1")] {
        let refused = run(&[], &[half]);
        assert_eq!(refused.status.code(), Some(1), "{}", refused.stderr);
        shown += &refused.stderr;
        run(&["--front", "console"], &[half]).ok();
    }
    insta::assert_snapshot!(shown);
}

/// Once, `audience set` in a fresh home made the next `run` want `claude`.
#[test]
fn a_file_that_a_command_has_written_names_no_model_and_wants_none() {
    let home = Home::new();
    home.run(&["audience", "set", "U1", "pm"], "").ok();
    let mut command = home.command(&["run"]);
    command.env("LANG", "C");
    let started = finish(command, "").ok();
    assert!(started.stderr.contains("model: sim"), "{}", started.stderr);
    for set_up in [json!({"apiKey": "sk-1"}), json!({"slack": {"appToken": "xapp-1", "botToken": "xoxb-1"}})] {
        let mut config = set_up;
        config["version"] = json!(1);
        home.write("gateway.json", config.to_string());
        let refused = home.run(&["run", "--front", "console"], "");
        assert!(refused.stderr.starts_with("error: gateway.json does not set `model`"), "{}", refused.stderr);
    }
}

/// Once, a server that repeats what it was sent had the key printed and logged.
#[test]
fn a_key_that_the_server_repeats_is_in_no_output() {
    let repeated = json!({"error": {"message": format!("invalid key: Bearer {}", openai::KEY), "type": "odd"}});
    let replies =
        [Reply::Error(401, repeated.clone()), Reply::Error(400, repeated.clone()), Reply::ErrorEvent(repeated)];
    for reply in replies {
        let server = OpenAi::start();
        server.when("", reply);
        let home = Home::new();
        let with_key = |arguments: &[&str]| {
            let mut command = home.command(&[arguments, &["--model", "openai:made-up"]].concat());
            command.env("OPENAI_API_KEY", openai::KEY).env("OPENAI_BASE_URL", server.url());
            command
        };
        let ran = finish(with_key(&["run"]), &question("Ev1", "hello"));
        let looked = finish(with_key(&["doctor"]), "");
        for said in [&ran.stdout, &ran.stderr, &looked.stdout, &looked.stderr] {
            assert!(!said.contains(openai::KEY), "{said}");
        }
        assert!(ran.stderr.contains("invalid key: Bearer [key]"), "{}", ran.stderr);
    }
}

/// Commands like `sessions parked` could not be run at all beside the service: not even PGPASSWORD was looked at.
#[test]
fn a_command_beside_the_service_takes_the_password_from_the_usual_places_or_says_how_to_get_the_services() {
    let home = Home::new();
    let password = json!({"file": "pmk-store-password"});
    let config = json!({"version": 1, "store": "postgres://pmk@127.0.0.1:1/pmk", "storePassword": password});
    home.write("gateway.json", config.to_string());
    let listed = |password: Option<&str>| {
        let mut command = home.command(&["sessions", "parked"]);
        command.env_remove("CREDENTIALS_DIRECTORY").env_remove("PGPASSFILE").env("HOME", home.path());
        match password {
            Some(password) => command.env("PGPASSWORD", password),
            None => command.env_remove("PGPASSWORD"),
        };
        let listed = finish(command, "");
        assert_eq!(listed.status.code(), Some(1), "{}", listed.stdout);
        listed.stderr
    };
    let told = listed(None);
    let way =
        format!(" -p LoadCredential=pmk-store-password pmk-host --home {} sessions parked`", home.path().display());
    // Relative paths are meant from here, and the account may not be allowed in here.
    let here = std::env::current_dir().expect("a folder");
    let there = format!("systemd-run --pty -p WorkingDirectory=-{} -p User=", here.display());
    assert!(told.contains(&there) && told.contains(&way), "{told}");
    assert!(listed(Some("secret")).contains("cannot reach the database"), "{}", listed(Some("secret")));
}

/// Regression: a command that waited for somebody kept `status` and `doctor` for as long as it took.
#[test]
fn the_command_of_the_stores_password_was_waited_for_without_end() {
    let home = Home::new();
    let (store, password) = ("postgres://pmk@127.0.0.1:1/pmk", json!({"cmd": "sleep 3600"}));
    let config = json!({"version": 1, "model": "sim", "store": store, "storePassword": password});
    home.write("gateway.json", config.to_string());
    let looked = home.run(&["status"], "");
    assert_eq!(looked.status.code(), Some(3), "{}", looked.stderr);
    let told = |seconds| format!("`storePassword` in gateway.json was not available within {seconds} s");
    assert!(looked.stderr.contains(&told(5)), "{}", looked.stderr);
    let examined = home.run(&["doctor", "--offline"], "");
    assert_eq!(examined.status.code(), Some(1), "{}", examined.stdout);
    assert!(examined.stdout.contains(&told(10)), "{}", examined.stdout);
}
