//! `experiment` as an operator meets it.

use serde_json::json;

use super::{asks, users, write};
use crate::{
    health::{is_stopped, signal},
    operator::terminal::{Terminal, admin_log},
    readers::{CHINESE, in_chinese},
    support::{Finished, Home, Running, component, finish, until},
};

/// Without what differs from run to run and from build to build.
const FILTERS: [(&str, &str); 5] = [
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "[time]"),
    (r"[0-9a-f]{64}", "[sha256]"),
    (r"/[^ `]*/plugins/", "plugins/"),
    (r"milliseconds an answer +.*", "milliseconds an answer [..]"),
    (r"每則回答的毫秒 +.*", "每則回答的毫秒    [..]"),
];

/// Regression: what they are for was called an error, and in Chinese even for machines.
#[test]
fn a_missing_command_was_reported_as_the_description_of_the_others() {
    let home = Home::new();
    for language in ["en_US.UTF-8", CHINESE] {
        for of in ["experiment", "policy"] {
            let mut command = home.command(&["--json", of]);
            command.env("LC_ALL", language);
            let Finished { status, stderr, .. } = finish(command, "");
            assert_eq!(status.code(), Some(2), "{stderr}");
            let told: serde_json::Value = serde_json::from_str(&stderr).expect("an object");
            let (message, hint) = ("a command is missing", "run with `--help` to see the commands");
            assert_eq!(told, json!({"type": "error", "message": message, "hint": hint}));
        }
    }
}

#[test]
fn start_stop_and_promote() {
    let mut terminal = Terminal { home: Home::new(), shown: String::new() };
    let strict = component("strict");
    let arms = json!([
        {"name": "now"},
        {"name": "tight", "weight": 3, "policy": {"files": [strict], "settings": {"strict": {"max-session-tokens": 9000}}}},
        {"name": "tighter", "shadow": true, "policy": {"settings": {"standard": {"max-session-tokens": 4000}}}},
    ]);
    let good = json!({"name": "tight", "control": "now", "arms": arms});
    let mut bad_file = good.clone();
    bad_file["arms"][1]["policy"]["files"] = json!(["gone.wasm"]);
    let mut bad_setting = good.clone();
    bad_setting["arms"][1]["policy"]["settings"] = json!({"strict": {"seed-cap": "much"}});
    let mut idle_setting = good.clone();
    idle_setting["arms"][1]["policy"]["settings"] = json!({"tight": {"seed-cap": 9000}});
    let mut bad_control = good.clone();
    bad_control["control"] = json!("then");
    for (name, text) in [
        ("good.json", good.to_string()),
        ("bad-file.json", bad_file.to_string()),
        ("bad-setting.json", bad_setting.to_string()),
        ("idle-setting.json", idle_setting.to_string()),
        ("bad-control.json", bad_control.to_string()),
        ("no.json", "[]".into()),
    ] {
        terminal.home.write(name, text);
    }
    let path = |name: &str| terminal.home.path().join(name).display().to_string();
    let [good, bad_file, bad_setting, idle_setting, bad_control, no, missing] =
        ["good", "bad-file", "bad-setting", "idle-setting", "bad-control", "no", "missing"]
            .map(|name| path(&format!("{name}.json")));
    for arguments in [
        &["experiment", "status"][..],
        &["experiment", "start"],
        &["experiment", "stop"],
        &["experiment", "promote", "tight"],
        &["experiment", "start", "--file", &missing],
        &["experiment", "start", "--file", &no],
        &["experiment", "start", "--file", &bad_control],
        &["experiment", "start", "--file", &bad_file],
        &["experiment", "start", "--file", &bad_setting],
        &["experiment", "start", "--file", &idle_setting],
        &["experiment", "start", "--file", &good],
        &["experiment", "start", "--file", &good],
        &["experiment", "status"],
        &["--json", "experiment", "status"],
        &["experiment", "stop"],
        &["experiment", "stop"],
        &["experiment", "status"],
        &["--json", "experiment", "start"],
        &["experiment", "promote", "loose"],
        &["--json", "experiment", "promote", "tight"],
        &["experiment", "status", "older"],
    ] {
        terminal.run(arguments);
    }
    terminal.shown.push_str(&terminal.config());
    let home = terminal.home.path().display().to_string();
    insta::with_settings!({filters => FILTERS}, {
        insta::assert_snapshot!(terminal.all().replace(&home, "[home]"));
    });
    assert!(admin_log(&terminal.home).contains(r#""experiment.promote" [loose] false"#));
}

#[test]
fn the_status_says_what_is_shown_and_what_is_not() {
    let home = Home::new();
    let small = json!({"settings": {"standard": {"max-session-tokens": 500}}});
    write(&home, "less", &json!([{"name": "all"}, {"name": "few", "policy": small}]));
    let few: Vec<String> = users(4).iter().map(|user| asks(&format!("Ev{user}"), user, "hello")).collect();
    home.run(&["run", "--model", "sim"], &few.join("\n")).ok();
    let early = home.run(&["experiment", "status"], "").ok().stdout;
    assert!(early.contains("no conclusion before each has 12 conversations"), "{early}");
    let early_in_chinese = in_chinese(&home, &["experiment", "status"]);
    let everybody = users(60);
    let input: Vec<String> = (0..6)
        .flat_map(|round| {
            everybody.iter().map(move |user| {
                asks(&format!("Ev{round}{user}"), user, &format!("Fact {round}: {}", "filler ".repeat(200)))
            })
        })
        .collect();
    home.run(&["run", "--model", "sim"], &input.join("\n")).ok();
    let status = home.run(&["experiment", "status"], "").ok().stdout;
    insta::with_settings!({filters => FILTERS.into_iter().chain([(r"\d\.\d\n", "[s]\n")])}, {
        insta::assert_snapshot!(status);
        insta::assert_snapshot!("the_status_in_chinese", early_in_chinese + &in_chinese(&home, &["experiment", "status"]));
    });
    // Under a name that has found something, nothing else begins.
    home.run(&["experiment", "stop"], "").ok();
    let again = home.run(&["experiment", "start"], "");
    assert!(again.stderr.starts_with("error: an experiment `less` has already run\n  hint: "), "{}", again.stderr);
    home.write("gateway.json", r#"{"version":1}"#);
    let last = home.run(&["--json", "experiment", "status"], "").ok().json();
    assert_eq!((&last["experiment"], &last["state"]), (&json!("less"), &json!("off")));
    assert_eq!((&last["arms"][0]["role"], &last["arms"][1]["role"]), (&json!("control"), &json!("arm")));
}

/// Regression: it was said to have run before, and whoever stopped it as another hint said lost the comparison.
#[test]
fn the_hints_for_an_experiment_that_runs_led_to_its_end_instead_of_to_its_weights() {
    let home = Home::new();
    let weighing = |weight: u32| json!([{"name": "a"}, {"name": "b", "weight": weight}]);
    write(&home, "less", &weighing(1));
    home.run(&["run", "--model", "sim"], &asks("Ev1", "U1", "hello")).ok();
    let heavier = json!({"name": "less", "control": "a", "arms": weighing(3)});
    let file = home.write("heavier.json", heavier.to_string()).display().to_string();
    let refused = home.run(&["experiment", "start", "--file", &file], "").stderr;
    assert!(refused.starts_with("error: experiment `less` is running\n"), "{refused}");
    assert!(refused.contains("edit `experiment` in gateway.json while it runs"), "{refused}");
    write(&home, "less", &weighing(3));
    home.run(&["run", "--model", "sim"], &asks("Ev2", "U2", "hello")).ok();
    let status = home.run(&["--json", "experiment", "status"], "").ok().json();
    assert_eq!((&status["experiment"], &status["arms"][1]["weight"]), (&json!("less"), &json!(3)), "{status:#}");
    home.run(&["experiment", "stop"], "").ok();
    let refused = home.run(&["experiment", "start", "--file", &file], "").stderr;
    assert!(refused.starts_with("error: an experiment `less` has already run\n"), "{refused}");
    assert!(refused.contains("edit `experiment` in gateway.json while"), "{refused}");
}

/// Once, it was `experiment`: invalid value: integer `-1`, expected u32.
#[test]
fn what_makes_no_sense_in_an_experiments_file_is_named_with_its_place() {
    let home = Home::new();
    let experiment = json!({"name": "t", "control": "a", "arms": [{"name": "a"}, {"name": "b", "weight": -1}]});
    let file = home.write("t.json", experiment.to_string()).display().to_string();
    let refused = home.run(&["experiment", "start", "--file", &file], "").stderr;
    let wanted = "error: `experiment.arms[1].weight` is -1, not a whole number from 0 to 1000000\n  hint: ";
    assert!(refused.starts_with(wanted), "{refused}");
}

#[test]
fn an_arm_is_only_promoted_while_it_is_on_and_can_be_loaded() {
    let home = Home::new();
    let arms = json!([{"name": "now"}, {"name": "b", "policy": {"files": ["gone.wasm"]}}]);
    let experiment = json!({"name": "t", "control": "now", "arms": arms, "start": "2026-05-07T09:00:00Z"});
    let written = json!({"version": 1, "experiment": experiment}).to_string();
    home.write("gateway.json", &written);
    let shown = home.run(&["experiment", "status"], "").ok().stderr;
    assert!(shown.contains("the gateway cannot start it as it is defined: arm `b`"), "{shown}");
    let promoted = home.run(&["experiment", "promote", "b"], "");
    assert_eq!(promoted.status.code(), Some(1));
    assert!(promoted.stderr.contains("gone.wasm` does not exist"), "{}", promoted.stderr);
    let unchanged = std::fs::read_to_string(home.path().join("gateway.json")).expect("the file");
    assert_eq!(unchanged, written, "the next start works");
    home.run(&["experiment", "stop"], "").ok();
    let promoted = home.run(&["experiment", "promote", "now"], "");
    assert!(promoted.stderr.contains("experiment `t` is not running"), "{}", promoted.stderr);
}

#[test]
fn what_policy_use_had_chosen_went_on_although_promote_said_that_the_arm_serves() {
    let home = Home::new();
    let arms = json!([{"name": "now"}, {"name": "b", "policy": {"files": ["recall"]}}]);
    let experiment = json!({"name": "t", "control": "now", "arms": arms, "start": "2026-05-07T09:00:00Z"});
    let policy = json!({"files": ["recall"]});
    home.write("gateway.json", json!({"version": 1, "policy": policy, "experiment": experiment}).to_string());
    let _running = Running::start(home.command(&["run", "--model", "sim"]));
    home.await_events("experiment.on", 1);
    home.run(&["policy", "use", "strict"], "").ok();
    let promoted = home.run(&["experiment", "promote", "b"], "").ok();
    assert!(promoted.stderr.contains("`t` is over; gateway.json names the policies of `b`"), "{}", promoted.stderr);
    assert!(promoted.stderr.contains("the running gateway still uses `strict 1.0.0"), "{}", promoted.stderr);
    let status = home.run(&["status"], "").stdout;
    assert!(status.contains("  policies     strict 1.0.0"), "{status}");
    // The command that the hint names, word for word.
    let named = promoted.stderr.split('`').find(|part| part.starts_with("pmk-host --home ")).expect("a command");
    assert!(named.ends_with(" policy use recall"), "{named}");
    let words: Vec<&str> = named.split(' ').skip(3).collect();
    home.run(&words, "").ok();
    let status = home.run(&["status"], "").stdout;
    assert!(status.contains("  policies     recall 1.0.0"), "{status}");
    // Where nobody has chosen anything, it serves at once.
    home.run(&["policy", "use", "--previous"], "").ok();
    home.write("gateway.json", json!({"version": 1, "experiment": experiment}).to_string());
    home.await_events("experiment.on", 2);
    let promoted = home.run(&["--json", "experiment", "promote", "b"], "").ok();
    assert_eq!(promoted.json()["serves"], json!(true));
}

/// Once, only the policies were compared, and `promote` said that such an arm decides in every conversation.
#[test]
fn an_arm_whose_settings_alone_differ_from_what_serves_was_said_to_serve() {
    let home = Home::new();
    let arm = json!({"settings": {"standard": {"seed-cap": 900}}});
    let arms = json!([{"name": "now"}, {"name": "b", "policy": arm}]);
    let experiment = json!({"name": "t", "control": "now", "arms": arms, "start": "2026-05-07T09:00:00Z"});
    home.write("gateway.json", json!({"version": 1, "policy": arm, "experiment": experiment}).to_string());
    // As for an experiment that ended before the gateway looked: gateway.json names the arm's, and others decide.
    let running = Running::start(home.command(&["run", "--model", "sim", "--set", "standard.seed-cap=700"]));
    home.await_events("experiment.on", 1);
    let promoted = home.run(&["--json", "experiment", "promote", "b"], "").ok();
    assert_eq!(promoted.json()["serves"], json!(false));
    assert!(promoted.stderr.contains("still uses `standard 1.0.0` with other settings"), "{}", promoted.stderr);
    assert!(promoted.stderr.contains(" policy use standard`"), "{}", promoted.stderr);
    drop(running);
    // With the settings of gateway.json, it serves.
    home.write("gateway.json", json!({"version": 1, "policy": arm, "experiment": experiment}).to_string());
    let _running = Running::start(home.command(&["run", "--model", "sim"]));
    home.await_events("experiment.on", 2);
    assert_eq!(home.run(&["--json", "experiment", "promote", "b"], "").ok().json()["serves"], json!(true));
}

/// Once, the arm decided with other settings after a restart, and nobody was told.
#[test]
fn settings_of_an_arm_that_options_or_the_environment_override_after_a_restart_were_not_told() {
    let home = Home::new();
    let arm = json!({"settings": {"standard": {"seed-cap": 900}}});
    let arms = json!([{"name": "now"}, {"name": "b", "policy": arm}]);
    let experiment = json!({"name": "t", "control": "now", "arms": arms, "start": "2026-05-07T09:00:00Z"});
    home.write("gateway.json", json!({"version": 1, "experiment": experiment}).to_string());
    let mut command = home.command(&["run", "--model", "sim", "--set", "standard.low-water=60"]);
    command.env("PMK_SEED_CAP", "700");
    let running = Running::start(command);
    home.await_events("experiment.on", 1);
    let promoted = home.run(&["--json", "experiment", "promote", "b"], "").ok();
    assert_eq!(promoted.json()["serves"], json!(true), "until then, it decides as in the experiment");
    let overridden = json!([
        {"policy": "standard", "setting": "low-water", "value": 60, "instead_of": 70, "by": "--set"},
        {"policy": "standard", "setting": "seed-cap", "value": 700, "instead_of": 900, "by": "PMK_SEED_CAP"},
    ]);
    assert_eq!(promoted.json()["overridden_after_restart"], overridden);
    for told in ["`--set` makes `standard.low-water` 60 instead of 70", "`PMK_SEED_CAP` makes `standard.seed-cap` 700"]
    {
        assert!(promoted.stderr.contains(told), "{}", promoted.stderr);
    }
    assert!(running.end().0.success());
    let started = home.run(&["run", "--model", "sim", "--set", "standard.seed-cap=800"], "").ok().stderr;
    assert!(started.contains("gateway.json: `--set` makes `standard.seed-cap` 800 instead of 900"), "{started}");
}

/// Regression: `still in use afterwards` was said of its files alone, and `--persist` wrote nothing else.
#[test]
fn a_promoted_arm_that_was_gone_back_to_had_other_settings_after_a_restart() {
    let policy = |tokens: u64| json!({"files": ["strict"], "settings": {"strict": {"max-session-tokens": tokens}}});
    let arms = json!([{"name": "now"}, {"name": "b", "policy": policy(9_000)}]);
    let experiment = json!({"name": "t", "control": "now", "arms": arms, "start": "2026-05-07T09:00:00Z"});
    let (none, persist, set): (&[&str], &[&str], &[&str]) = (&[], &["--persist"], &["--set", "standard.low-water=60"]);
    let others = "gateway.json has other settings for them; `--persist` writes these there";
    let precedence = "`--set` or the environment takes precedence over gateway.json";
    for (set, tokens, persist, otherwise) in [
        (none, 9_000, none, None),
        (none, 8_000, none, Some(others)),
        (none, 8_000, persist, None),
        (set, 8_000, persist, Some(precedence)),
    ] {
        let home = Home::new();
        home.write("gateway.json", json!({"version": 1, "experiment": experiment}).to_string());
        let _running = Running::start(home.command(&[&["run", "--model", "sim"][..], set].concat()));
        home.await_events("experiment.on", 1);
        home.run(&["experiment", "promote", "b"], "").ok();
        home.await_events("policy.swapped", 1);
        home.run(&["policy", "use", "caps"], "").ok();
        home.write("gateway.json", json!({"version": 1, "policy": policy(tokens)}).to_string());
        let back = [&["--json", "policy", "use", "--previous"][..], persist].concat();
        let back = home.run(&back, "").ok().json();
        assert_eq!(back["serving"][0]["name"], "strict", "{back:#}");
        assert_eq!(back["survives_restart"], json!(otherwise.is_none()), "{back:#}");
        let told = back["otherwise"].as_str().unwrap_or_default();
        assert!(told.ends_with(otherwise.unwrap_or_default()), "{back:#}");
        let written = std::fs::read_to_string(home.path().join("gateway.json")).expect("gateway.json");
        let written: serde_json::Value = serde_json::from_str(&written).expect("JSON");
        assert_eq!(written["policy"], policy(if persist.is_empty() { tokens } else { 9_000 }));
    }
}

/// Regression: `--persist` left only those of the arm, also where a start would have given it the same.
#[test]
fn going_back_to_a_promoted_arm_took_the_settings_of_other_policies_away() {
    let strict = |tokens: u64| json!({"max-session-tokens": tokens});
    let caps = json!({"by-name": "thread=100000"});
    let policy = |settings: &serde_json::Value| json!({"files": ["strict"], "settings": settings});
    let arms = json!([{"name": "now"}, {"name": "b", "policy": policy(&json!({"strict": strict(9_000)}))}]);
    let experiment = json!({"name": "t", "control": "now", "arms": arms, "start": "2026-05-07T09:00:00Z"});
    let same = json!({"caps": caps, "standard": {"low-water": 70}, "strict": strict(9_000)});
    for (settings, persisted) in [
        (
            json!({"caps": caps, "standard": {"low-water": 60}, "strict": strict(8_000)}),
            json!({"caps": caps, "strict": strict(9_000)}),
        ),
        (same.clone(), same),
    ] {
        let home = Home::new();
        home.write("gateway.json", json!({"version": 1, "experiment": experiment}).to_string());
        let _running = Running::start(home.command(&["run", "--model", "sim"]));
        home.await_events("experiment.on", 1);
        home.run(&["experiment", "promote", "b"], "").ok();
        home.await_events("policy.swapped", 1);
        home.run(&["policy", "use", "caps"], "").ok();
        home.write("gateway.json", json!({"version": 1, "policy": policy(&settings)}).to_string());
        let back = home.run(&["--json", "policy", "use", "--previous", "--persist"], "").ok().json();
        assert_eq!(back["survives_restart"], json!(true), "{back:#}");
        let written = std::fs::read_to_string(home.path().join("gateway.json")).expect("gateway.json");
        let written: serde_json::Value = serde_json::from_str(&written).expect("JSON");
        assert_eq!(written["policy"], policy(&persisted));
    }
}

/// Once, neither figures nor guard rail said anything about its arms, and nobody was told why.
#[test]
fn a_control_of_weight_0_switched_the_comparison_off_in_silence() {
    let home = Home::new();
    let arms = json!([{"name": "now", "weight": 0}, {"name": "b", "policy": {"files": ["strict"]}}]);
    let file = home.write("t.json", json!({"name": "t", "control": "now", "arms": arms}).to_string());
    let told = "its control `now` has weight 0, so no arm is compared with it, nor stopped for being worse";
    let file = file.display().to_string();
    for arguments in [&["experiment", "start", "--file", &file][..], &["experiment", "status"]] {
        let warned = home.run(arguments, "").ok().stderr;
        assert!(warned.contains(&format!("warning: nothing can be learnt from this experiment: {told}\n")), "{warned}");
    }
    let log = home.run(&["run", "--model", "sim"], &asks("Ev1", "U1", "hello")).ok().stderr;
    assert!(log.contains(told), "{log}");
}

#[test]
fn settings_that_an_arm_did_without_are_told() {
    let home = Home::new();
    let arms = json!([{"name": "now"}, {"name": "b", "policy": {"files": [component("strict")]}}]);
    let experiment = json!({"name": "t", "control": "now", "arms": arms, "start": "2026-05-07T09:00:00Z"});
    let policy = json!({"settings": {"standard": {"low-water": 60}}});
    home.write("gateway.json", json!({"version": 1, "policy": policy, "experiment": experiment}).to_string());
    let promoted = home.run(&["experiment", "promote", "b"], "").ok();
    assert!(promoted.stderr.contains("no longer has settings for `standard`"), "{}", promoted.stderr);
}

/// Regression: it was said to be running, and `status` did not mention it.
#[test]
fn an_experiment_that_the_gateway_had_refused_was_said_to_be_running() {
    let home = Home::new();
    let arms = |file: &str| json!([{"name": "a"}, {"name": "b", "policy": {"files": [file]}}]);
    write(&home, "less", &arms("gone.wasm"));
    let gateway = Running::start(home.command(&["run", "--model", "sim"]));
    let status = || Some(home.run(&["status"], "")).filter(|shown| shown.status.success());
    let named = |shown: &Finished| shown.stdout.contains("experiment `less` was not started: arm `b`: ");
    let shown = until("it is named as not in use", || status().filter(named));
    assert!(shown.stdout.contains("\n  not in use") && shown.stdout.starts_with("healthy"), "{}", shown.stdout);
    assert!(shown.stderr.contains("hint: correct `experiment` in gateway.json"), "{}", shown.stderr);
    let document = home.run(&["--json", "status"], "").ok().json();
    assert_eq!(document["experiment"]["name"], "less", "{document}");
    let figures = home.run(&["experiment", "status"], "").ok().stdout;
    assert!(figures.starts_with("experiment less: not started: arm `b`: "), "{figures}");
    assert!(figures.contains("gone.wasm"), "{figures}");
    let chinese = in_chinese(&home, &["experiment", "status"]);
    assert!(chinese.contains("實驗 less：沒有開始："), "{chinese}");
    assert!(in_chinese(&home, &["status"]).contains("實驗 `less` 沒有開始："));
    assert_eq!(home.run(&["--json", "experiment", "status"], "").ok().json()["state"], "not-started");

    write(&home, "less", &arms("strict"));
    home.await_events("experiment.on", 1);
    let figures = home.run(&["experiment", "status"], "").ok().stdout;
    assert!(figures.starts_with("experiment less: running since "), "{figures}");
    let shown = status().expect("it is healthy");
    assert!(!shown.stdout.contains("not in use"), "{}", shown.stdout);
    assert!(gateway.end().0.success());
}

/// Regression: the admins read that it was not started, and no status said that the change is not used.
#[test]
fn a_running_experiment_whose_change_was_refused_was_said_not_to_be_started() {
    let home = Home::new();
    let arms = |file: &str| json!([{"name": "a"}, {"name": "b", "policy": {"files": [file]}}]);
    write(&home, "less", &arms("strict"));
    let gateway = Running::start(home.command(&["run", "--model", "sim"]));
    home.await_events("experiment.on", 1);
    write(&home, "less", &json!([{"name": "b", "policy": {"files": ["gone.wasm"]}, "weight": 3}, {"name": "a"}]));
    home.await_events("experiment.refused", 1);
    let told = std::iter::repeat_with(|| gateway.next_of("notice")).find(|told| told["channel"] == "U0ADMIN");
    let text = told.as_ref().and_then(|told| told["text"].as_str()).unwrap_or_default();
    assert!(text.contains("實驗 `less` 的修改沒有採用，先前的實驗組照常進行"), "{told:?}");
    let shown = home.run(&["status"], "").ok();
    let line = "not in use   the change to experiment `less`, whose previous arms go on: arm `b`: ";
    assert!(shown.stdout.contains(line) && shown.stdout.starts_with("healthy"), "{}", shown.stdout);
    let document = home.run(&["--json", "status"], "").ok().json();
    assert_eq!(document["experiment"]["goes_on"], true, "{document}");
    let figures = home.run(&["experiment", "status"], "").ok().stdout;
    assert!(figures.starts_with("experiment less: running since "), "{figures}");
    assert!(figures.contains(" without its last change, which cannot be used: arm `b`: "), "{figures}");
    let chinese = in_chinese(&home, &["experiment", "status"]);
    assert!(chinese.contains("進行中，最近的修改無法採用："), "{chinese}");
    let document = home.run(&["--json", "experiment", "status"], "").ok().json();
    assert_eq!(document["state"], "on");
    assert!(document["refused"].as_str().is_some_and(|why| why.contains("gone.wasm")), "{document}");
    assert_eq!((&document["control"], &document["arms"][1]["weight"]), (&json!("a"), &json!(1)), "as they go on");

    write(&home, "less", &arms("strict"));
    home.await_events("experiment.on", 2);
    let document = home.run(&["--json", "experiment", "status"], "").ok().json();
    assert_eq!((&document["state"], &document["refused"]), (&json!("on"), &json!(null)));
    assert!(gateway.end().0.success());
}

/// Once, the arm was said to decide in every conversation. Where the experiment was started again before the gateway had
/// looked, it went on as if nothing had been promoted.
#[test]
fn a_promotion_that_the_gateway_cannot_hear_of_yet_is_followed_once_it_goes_on() {
    let arms = json!([{"name": "now"}, {"name": "b", "policy": {"files": ["strict"]}}]);
    let experiment = json!({"name": "t", "control": "now", "arms": arms, "start": "2026-05-07T09:00:00Z"});
    for again in [false, true] {
        let home = Home::new();
        home.write("gateway.json", json!({"version": 1, "experiment": experiment}).to_string());
        let gateway = Running::start(home.command(&["run", "--model", "sim"]));
        home.await_events("experiment.on", 1);
        signal(gateway.pid(), "STOP");
        until("every thread has stopped", || is_stopped(gateway.pid()).then_some(()));
        let promoted = home.run(&["--json", "experiment", "promote", "b"], "").ok();
        assert_eq!(promoted.json()["serves"], json!(false));
        assert!(promoted.stderr.contains("the running gateway does not answer"), "{}", promoted.stderr);
        if again {
            home.run(&["experiment", "start"], "").ok();
        }
        signal(gateway.pid(), "CONT");
        let over = home.await_events("experiment.off", 1);
        assert_eq!(over[0]["promoted"], json!("b"), "{over:#?}");
        let status = home.run(&["status"], "").stdout;
        assert!(status.contains("  policies     strict 1.0.0"), "{status}");
        home.await_events("experiment.on", 1 + usize::from(again));
        assert!(gateway.end().0.success());
    }
}
