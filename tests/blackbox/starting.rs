//! What is said before anything starts: configuration, environment and arguments that cannot be.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::{
    support::{Finished, Home, component, finish, program, question},
    terminal::Terminal,
};

/// Runs to the end of an empty input with these variables.
fn run_with(home: &Home, arguments: &[&str], variables: &[(&str, &str)]) -> Finished {
    let mut command = home.command(arguments);
    command.envs(variables.iter().copied());
    finish(command, "")
}

#[test]
fn errors_are_one_object_where_json_is_asked_for() {
    let home = Home::new();
    for (arguments, code) in [
        (&["--json", "run", "--policy", "/nowhere.wasm"][..], 1),
        (&["--json", "plan", "--history", "/nowhere"], 1),
        (&["--json", "policy", "inspect", "/nowhere.wasm"], 1),
        (&["--json", "sessions", "list"], 1),
        (&["--json", "run", "--window", "many"], 2),
        (&["--json", "dance"], 2),
    ] {
        let finished = home.run(arguments, "");
        assert_eq!((finished.status.code(), finished.stdout.as_str()), (Some(code), ""), "{arguments:?}");
        let error: Value = serde_json::from_str(&finished.stderr).unwrap_or_else(|_| panic!("{}", finished.stderr));
        assert_eq!(error["type"], "error");
        assert!(error["message"].is_string() && error["hint"].is_string(), "{error}");
    }
}

#[test]
fn a_window_too_small_to_ask_anything_is_refused_with_the_least_that_does() {
    let home = Home::new();
    let run = |window: &str| {
        let mut command = home.command(&["run", "--model", "sim", "--window", window]);
        command.env_remove("LANG");
        finish(command, &question("Ev1", "hello"))
    };
    let refused = run("50");
    assert_eq!((refused.status.code(), refused.stdout.as_str()), (Some(1), ""));
    let (_, rest) =
        refused.stderr.split_once("use a `--window` of at least ").unwrap_or_else(|| panic!("{}", refused.stderr));
    let least: u64 = rest.split(',').next().and_then(|number| number.parse().ok()).expect("a number");
    assert_eq!(run(&(least - 1).to_string()).status.code(), Some(1));
    let lines = run(&least.to_string()).ok().lines();
    let reply = lines.iter().find(|line| line["type"] == "reply").expect("a reply");
    assert!(!reply["text"].as_str().expect("a text").starts_with(":x:"), "{reply}");
}

#[test]
fn the_missing_slack_token_is_the_one_that_is_named() {
    let home = Home::new();
    let run = |arguments: &[&str], variables: &[(&str, &str)]| {
        run_with(&home, &[&["run", "--model", "sim"], arguments].concat(), variables)
    };
    assert!(run(&[], &[("LANG", "C")]).ok().stderr.contains("because there are no Slack tokens"));
    let refused = run(&["--front", "slack"], &[("PMK_SLACK_BOT_TOKEN", "xoxb-1")]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(refused.stderr.contains("error: cannot connect to Slack: the Slack app token"), "{}", refused.stderr);
    assert!(refused.stderr.contains("hint: set PMK_SLACK_APP_TOKEN, or"), "{}", refused.stderr);
}

/// Once, who had chosen Slack and had not set its tokens yet talked to the console, and was told nothing of it.
#[test]
fn slack_without_its_tokens_is_told_at_a_terminal_and_refused_without_one() {
    let home = Home::new();
    home.write("gateway.json", r#"{"version":1,"language":"en","model":"sim","slack":{"replyIn":"thread"}}"#);
    let refused = home.run(&["run"], "");
    assert_eq!(refused.status.code(), Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains("error: cannot connect to Slack as gateway.json asks"), "{}", refused.stderr);
    assert!(refused.stderr.contains("`--front console` does not need Slack"), "{}", refused.stderr);
    home.run(&["run", "--front", "console"], "").ok();
    let mut terminal = Terminal::start(home.command(&["run"]));
    terminal.wait_for("Slack is not connected", 1);
    terminal.wait_for("›", 1);
    assert!(terminal.end().success());
}

#[test]
fn an_address_of_slack_is_refused_where_slack_is_not_connected() {
    let home = Home::new();
    let url = ["--slack-api-url", "http://127.0.0.1:1/api"];
    let run = |front: &[&str]| {
        let finished = home.run(&[&["run", "--model", "sim"], front, &url].concat(), "");
        assert_eq!(finished.status.code(), Some(1), "{}", finished.stderr);
        finished.stderr
    };
    assert!(run(&[]).contains("no Slack tokens are set"));
    assert!(run(&["--front", "console"]).contains("the console does not use `--slack-api-url`"));
}

#[test]
fn an_empty_variable_is_not_set() {
    let home = Home::new();
    let finished = run_with(
        &home,
        &["run", "--model", "sim"],
        &[("PMK_MAX_SESSION_TOKENS", ""), ("PMK_SLACK_APP_TOKEN", ""), ("PMK_SLACK_API_URL", "")],
    );
    assert!(!finished.ok().stderr.contains("PMK_MAX_SESSION_TOKENS"));
    // `--home` is on every command of these tests; without it an empty variable means `~/.pmk`.
    let mut command = std::process::Command::new(program());
    command.env_clear().env("HOME", home.path()).env("PMK_HOME", "").args(["sessions", "list"]);
    let shown = finish(command, "").stderr;
    assert!(shown.contains(&home.path().join(".pmk").display().to_string()), "{shown}");
}

#[test]
fn an_invalid_variable_is_warned_of_once_with_its_range() {
    let home = Home::new();
    let finished =
        run_with(&home, &["run", "--model", "sim", "--policy", &component("strict")], &[("PMK_SEED_CAP", "many")]);
    let stderr = finished.ok().stderr;
    assert_eq!(stderr.matches("PMK_SEED_CAP").count(), 1, "{stderr}");
    assert!(stderr.contains("not an integer from 1 to 4294967295; ignored for `strict`, `standard`"), "{stderr}");
}

#[test]
fn settings_of_a_policy_that_is_not_loaded_are_told() {
    let home = Home::new();
    home.write("gateway.json", r#"{"version":1,"model":"sim","policy":{"settings":{"strickt":{"seed-cap":5}}}}"#);
    let stderr = home.run(&["run"], "").ok().stderr;
    assert!(stderr.contains("`policy.settings.strickt` has no effect, policy `strickt` is not loaded"), "{stderr}");
}

#[test]
fn a_blocklist_that_cannot_be_read_stops_the_start() {
    let home = Home::new();
    home.write("gateway.json", json!({"version": 1, "model": "sim", "blocklist": "U9"}).to_string());
    let finished = home.run(&["run"], "");
    assert_eq!(finished.status.code(), Some(1));
    assert!(finished.stderr.contains("`blocklist` is a string, not a list of user ids"), "{}", finished.stderr);
}

#[test]
fn a_policy_of_the_configuration_is_looked_for_in_the_home() {
    let home = Home::new();
    home.write("gateway.json", r#"{"version":1,"model":"sim","policy":{"files":["mine.wasm"]}}"#);
    let missing = home.run(&["run"], "");
    let path = home.path().join("mine.wasm").display().to_string();
    assert!(missing.stderr.contains(&format!("policy `{path}` does not exist")), "{}", missing.stderr);
    std::fs::copy(component("strict"), &path).expect("a component");
    home.run(&["run"], "").ok();
}

/// Regression: each correction brought up the next refusal.
#[test]
fn of_several_policies_or_tokens_that_cannot_be_had_a_start_spoke_of_one() {
    let home = Home::new();
    let of_home = format!("pmk-host --home {}", home.path().display());
    let refused = |file: Value, arguments: &[&str]| {
        home.write("gateway.json", file.to_string());
        let refused = home.run(&[&["run"], arguments].concat(), "");
        assert_eq!(refused.status.code(), Some(1), "{}", refused.stderr);
        refused.stderr
    };
    let files = json!({"version": 1, "model": "sim", "policy": {"files": ["./one.wasm", "./two.wasm"]}});
    let told = refused(files, &[]);
    let all = format!("does not exist (and 1 more)\n  hint: `{of_home} config check` lists all problems\n");
    assert!(told.contains(&all), "{told}");
    let told = refused(json!({"version": 1, "model": "sim"}), &["--policy", "one.wasm", "--policy", "two.wasm"]);
    assert!(told.contains(&format!("(and 1 more)\n  hint: `{of_home} doctor --offline --policy /")), "{told}");
    let slack = json!({"appToken": {"env": "APPX"}, "botToken": {"env": "BOTX"}});
    let told = refused(json!({"version": 1, "model": "sim", "slack": slack}), &[]);
    let all =
        format!("`APPX`, which is not set (and 1 more)\n  hint: `{of_home} doctor --offline` lists all problems\n");
    assert!(told.contains(&all), "{told}");
}

#[test]
fn nothing_is_said_before_an_error_of_the_start() {
    let home = Home::new();
    let finished = home.run(&["run", "--policy", "/nowhere.wasm"], "");
    assert!(finished.stderr.starts_with("error: "), "{}", finished.stderr);
    home.write("gateway.json", r#"{"version":1,"apiKey":"sk-1"}"#);
    let finished = home.run(&["run"], "");
    assert!(finished.stderr.starts_with("error: gateway.json does not set `model`"), "{}", finished.stderr);
}

#[test]
fn a_damaged_compile_cache_is_no_news() {
    let home = Home::cold();
    home.run(&["run", "--model", "sim"], "").ok();
    let mut folders = vec![home.path().join("cache")];
    let mut damaged = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("the cache") {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                std::fs::write(path, "garbage").expect("a damaged entry");
                damaged += 1;
            }
        }
    }
    assert!(damaged > 0);
    let stderr = home.run(&["run", "--model", "sim"], "").ok().stderr;
    assert!(!stderr.contains("WARN"), "{stderr}");
}

/// Regression: one was ignored without a word, and the other switched everything off, even that the gateway is ready.
#[test]
fn a_mistyped_filter_of_the_log_was_ignored_or_silenced_it_without_a_word() {
    let home = Home::new();
    for (filter, is_ignored) in [("nonsense===", true), ("debg", true), ("warn", false), ("", false)] {
        let mut command = home.command(&["run", "--model", "sim"]);
        command.env("PMK_LOG", filter).env_remove("LANG");
        let log = finish(command, &question("Ev1", "hello")).ok().stderr;
        let warned = log.contains(&format!("`PMK_LOG` is ignored: `{filter}` does not say what to log"));
        assert_eq!((warned, log.contains(" ready ")), (is_ignored, filter != "warn"), "{filter}: {log}");
    }
}

/// Regression: the exit code said that it had been written.
#[test]
fn help_that_could_not_be_written_ended_well() {
    let home = Home::new();
    for language in ["C", "zh_TW.UTF-8"] {
        let mut command = home.command(&["--help"]);
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("the full device");
        command.env("LC_ALL", language).stdout(full).stderr(Stdio::piped());
        let ended = command.output().expect("the program");
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!((ended.status.code(), said.lines().count()), (Some(1), 1), "{said}");
    }
}

#[test]
fn the_log_has_one_line_at_the_start_and_one_a_turn() {
    let home = Home::new();
    let mut command = home.command(&["run", "--model", "sim", "--policy", "strict"]);
    command.env_remove("PMK_LOG");
    let input = question("Ev1", "hello") + "\n" + &question("Ev2", "/pmk help") + "\n" + &question("Ev3", "hello");
    let log = finish(command, &input).ok().stderr;
    let lines: Vec<&str> = log.lines().filter_map(|line| line.split_once(" INFO ")).map(|(_, line)| line).collect();
    let [ready, turns @ ..] = &lines[..] else { panic!("{log}") };
    let home = home.path().display();
    let version = env!("CARGO_PKG_VERSION");
    let starts = format!("ready version=\"{version}\" model=\"sim:sim\" policies=\"strict 1.0.0 over standard 1.0.0\"");
    assert!(ready.starts_with(&starts) && ready.contains(&format!("home={home}")), "{ready}");
    assert_eq!(turns.len(), 3, "{log}");
    for (turn, says) in turns.iter().zip(["policy=\"strict\" tokens=", "command=\"pmk\"", "policy=\"strict\" tokens="])
    {
        assert!(turn.starts_with("turn session=console:dm:U1 event_id=\"Ev") && turn.contains(says), "{turn}");
        assert!(turn.contains(" ms="), "{turn}");
    }
}
