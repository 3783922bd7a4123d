//! `config`: gateway.json checked, shown and described.

use serde_json::{Value, json};

use crate::support::{Finished, Home, Running, finish, question};

fn shown(home: &Home, finished: &Finished) -> String {
    let text = format!("{}{}", finished.stdout, finished.stderr);
    format!("{}\n{}", finished.status, text.replace(&home.path().display().to_string(), "HOME"))
}

fn columns(line: &str) -> Vec<&str> {
    line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect()
}

#[test]
fn whatever_is_odd_is_named_with_what_was_meant() {
    let home = Home::new();
    let mut pages = shown(&home, &home.run(&["config", "check"], ""));
    for file in [
        json!({"version": 1, "model": "sim", "queue": {"most": 5}}),
        json!({"version": 1, "langauge": "en", "slack": {"appTokn": "xapp-1"}, "audience": {"users": {"U1": "king"}}}),
        json!({"version": 1, "model": "gpt", "limits": {"modelIdleSecond": 5}, "queue": {"mode": "colect", "most": 0}}),
        json!({"version": 1, "model": "gpt"}),
        json!({"version": 1, "apiKey": {"environment": "sk-ant-secret"}}),
        json!({"version": 1, "policy": {"files": ["strict", "plugins/gone.wasm"]}}),
        json!({"version": 2}),
    ] {
        home.write("gateway.json", file.to_string());
        pages += &shown(&home, &home.run(&["config", "check"], ""));
    }
    home.write("gateway.json", r#"{"version": 1, "slack": {"replyIn": "thread"}, "model": "sim", "slack": {}}"#);
    pages += &shown(&home, &home.run(&["config", "check"], ""));
    insta::assert_snapshot!(pages);
    assert!(!pages.contains("sk-ant-secret"), "{pages}");
    home.write("gateway.json", json!({"version": 2}).to_string());
    let document = home.run(&["--json", "config", "check"], "");
    assert_eq!((document.status.code(), document.json()["ok"].clone()), (Some(1), json!(false)));
    assert_eq!(document.json()["problems"][0]["level"], "error");
}

/// What `check` lets pass a start takes, and what it does not a start refuses in the same words.
#[test]
fn a_start_says_what_the_check_says() {
    let home = Home::new();
    home.write("gateway.json", r#"{"version":1,"model":"sim","policy":{"limits":{"fuelBas":1}},"presense":{}}"#);
    let (checked, refused) = (home.run(&["--json", "config", "check"], ""), home.run(&["run"], ""));
    assert_eq!((checked.status.code(), refused.status.code()), (Some(1), Some(1)));
    let problems = checked.json()["problems"].clone();
    for problem in problems.as_array().expect("a list").iter().filter(|problem| problem["level"] == "error") {
        let what = problem["message"].as_str().expect("a text");
        assert!(refused.stderr.contains(what), "{}", refused.stderr);
    }
    home.write("gateway.json", r#"{"version":1,"model":"sim","presense":{}}"#);
    let (checked, started) = (home.run(&["config", "check"], "").ok(), home.run(&["run"], "").ok());
    let warning = "unknown key `presense` is ignored; did you mean `presence`?";
    assert!(checked.stdout.contains(warning) && started.stderr.contains(warning), "{}", started.stderr);
    home.write("gateway.json", r#"{"version":1,"model":"sim:window=5"}"#);
    let (checked, refused) = (home.run(&["config", "check"], ""), home.run(&["run"], ""));
    assert_eq!((checked.status.code(), refused.status.code()), (Some(1), Some(1)));
    let why = "unknown setting `window`; use `factor`, `overhead` or `delay`";
    assert!(checked.stdout.contains(why) && refused.stderr.contains(why), "{}", refused.stderr);
}

/// Regression: it was `pmk-host config check`, which looks at another home.
#[test]
fn the_advice_to_check_the_file_left_out_the_home() {
    let home = Home::new();
    home.write("gateway.json", r#"{"version":1,"model":"sim","queue":{"most":0}}"#);
    let refused = home.run(&["run"], "");
    assert_eq!(refused.status.code(), Some(1));
    let command = format!("`pmk-host --home {} config check` lists all problems", home.path().display());
    assert!(refused.stderr.contains(&command), "{}", refused.stderr);
}

/// Regression: the start did not say where that name is written, and the check did not say what to do about it.
#[test]
fn a_model_of_the_file_that_is_none_was_refused_as_that_of_the_command_line() {
    let home = Home::new();
    home.write("gateway.json", r#"{"version":1,"model":"OpenAI:x"}"#);
    let problem = home.run(&["--json", "config", "check"], "").json()["problems"][0].clone();
    let what = problem["message"].as_str().expect("a text");
    assert!(what.starts_with("`model`: unknown model provider `OpenAI`"), "{problem}");
    assert!(problem["hint"].is_string(), "{problem}");
    let refused = home.run(&["run"], "");
    assert!(refused.stderr.contains(&format!("error: gateway.json: {what}")), "{}", refused.stderr);
    let named = home.run(&["run", "--model", "OpenAI:x"], "");
    assert!(named.stderr.contains("error: unknown model provider `OpenAI`"), "{}", named.stderr);
}

/// Everything that a start refuses without asking anybody.
#[test]
fn tokens_and_policies_are_checked_as_a_start_does() {
    let home = Home::new();
    let mut pages = String::new();
    for (slack, policy) in [
        (json!({"botToken": "xoxb-a1"}), json!({})),
        (json!({"appToken": {"cmd": "touch made"}}), json!({})),
        (json!({"botToken": "xapp-a1", "appToken": "xoxb-a1"}), json!({})),
        (json!({"botToken": {"cmd": ""}, "appToken": {"env": "APP"}}), json!({})),
        (json!({}), json!({"files": ["strict"], "settings": {"strict": {"nope": 1}}})),
        (json!({}), json!({"files": ["strict"], "settings": {"strict": {"max-session-tokens": "abc"}}})),
        (json!({}), json!({"files": ["strict"], "settings": {"strickt": {"max-session-tokens": 5}}})),
    ] {
        home.write("gateway.json", json!({"version": 1, "model": "sim", "slack": slack, "policy": policy}).to_string());
        let (checked, started) = (home.run(&["config", "check"], ""), home.run(&["run"], ""));
        assert_eq!(checked.status.code(), started.status.code(), "{}", started.stderr);
        let mut said = checked.stdout.lines().map(|line| line.trim_start_matches(['✗', '!', ' ']));
        assert!(said.any(|said| started.stderr.contains(said)), "{}\n{}", checked.stdout, started.stderr);
        pages += &shown(&home, &checked);
    }
    // A token is looked at by itself, and nothing is run to get one.
    let made = home.path().join("made");
    let slack = json!({"botToken": "xapp-a1", "appToken": {"cmd": format!("touch '{}'", made.display())}});
    let arms = json!([{"name": "a"}, {"name": "b", "policy": {"files": ["gone.wasm"]}}]);
    for file in [
        json!({"version": 1, "model": "sim", "slack": slack}),
        json!({"version": 1, "model": "sim", "experiment": {"name": "e", "control": "a", "arms": arms}}),
    ] {
        home.write("gateway.json", file.to_string());
        pages += &shown(&home, &home.run(&["config", "check"], ""));
    }
    assert!(!made.exists());
    insta::assert_snapshot!(pages);
}

/// Regression: each correction brought up the next problem, and nothing had said that more is checked.
#[test]
fn all_that_is_wrong_with_policies_and_arms_is_named_at_once() {
    let home = Home::new();
    let said = |file: &Value| {
        home.write("gateway.json", file.to_string());
        let document = home.run(&["--json", "config", "check"], "").json();
        let problems = document["problems"].as_array().expect("a list").iter();
        let problems: Vec<String> =
            problems.map(|problem| problem["message"].as_str().expect("a text").to_owned()).collect();
        let more = home.run(&["config", "check"], "").stdout.contains("- more is checked once this is corrected\n");
        assert_eq!(document["complete"], json!(!more), "{document}");
        (problems, more)
    };
    // What is said of the policies before a start.
    let examined = || {
        let document = home.run(&["--json", "doctor", "--offline"], "").json();
        let findings = document["findings"].as_array().expect("a list").iter();
        let of_policies = findings.filter(|finding| finding["check"] == "policies");
        of_policies.map(|finding| finding["what"].as_str().expect("a text").to_owned()).collect::<Vec<_>>()
    };
    let named = |problems: &[String], wanted: &[&str]| {
        for wanted in wanted {
            assert_eq!(problems.iter().filter(|told| told.contains(wanted)).count(), 1, "{wanted}: {problems:?}");
        }
    };
    let mut file = json!({"version": 1, "model": "gpt-4o", "historyTurns": "x",
        "policy": {"files": ["strict", "./one.wasm", "./two.wasm"], "settings": {"strict": {"aa": 1, "bb": 2}}}});
    let (problems, more) = said(&file);
    named(&problems, &["`historyTurns`"]);
    assert!(more, "{problems:?}");
    file["historyTurns"] = json!(5);
    let (problems, more) = said(&file);
    named(&problems, &["`gpt-4o`", "one.wasm`", "two.wasm`", "no setting `aa`", "no setting `bb`"]);
    assert!(more, "{problems:?}");
    named(&examined(), &["one.wasm`", "two.wasm`", "no setting `aa`", "no setting `bb`"]);
    let wrong = json!({"files": ["./gone.wasm"], "settings": {"standard": {"cc": 1, "dd": 2}}});
    let idle = json!({"settings": {"one": {"a": 1}, "two": {"a": 1}}});
    let arms = json!([{"name": "a"}, {"name": "b", "policy": wrong}, {"name": "c", "policy": idle}]);
    file = json!({"version": 1, "model": "sim", "experiment": {"name": "e", "control": "a", "arms": arms}});
    let wanted = ["gone.wasm`", "no setting `cc`", "no setting `dd`", "`settings.one`", "`settings.two`"];
    named(&said(&file).0, &wanted);
    named(&examined(), &wanted);
    file["experiment"]["arms"] = json!([{"name": "a"}, {"name": "b b"}, {"name": "a"}]);
    let (problems, more) = said(&file);
    named(&problems, &["`experiment.arms[1].name`", "`experiment.arms[2].name`"]);
    assert!(more, "{problems:?}");
}

/// Regression: `"complete": true` was said of a check that could not tell which settings have no effect.
#[test]
fn settings_that_could_not_be_checked_for_want_of_a_policy_passed_for_checked() {
    let home = Home::new();
    let said = |policy: &Value, arm: &Value| {
        let arms = json!([{"name": "a"}, {"name": "b", "policy": arm}]);
        let experiment = json!({"name": "e", "control": "a", "arms": arms});
        let file = json!({"version": 1, "model": "sim", "policy": policy, "experiment": experiment});
        home.write("gateway.json", file.to_string());
        let document = home.run(&["--json", "config", "check"], "").json();
        (document["problems"].to_string().contains("`other` is not loaded"), document["complete"].clone())
    };
    let with = |file: &str| json!({"files": [file], "settings": {"other": {"a": 1}}});
    let (none, well) = (json!({}), json!({"files": ["strict"]}));
    assert_eq!(said(&none, &well), (false, json!(true)));
    for (policy, arm, expected) in [
        (with("./gone.wasm"), well.clone(), (false, json!(false))),
        (with("strict"), well, (true, json!(true))),
        (none.clone(), with("./gone.wasm"), (false, json!(false))),
        (none, with("strict"), (true, json!(true))),
    ] {
        assert_eq!(said(&policy, &arm), expected, "{policy} {arm}");
    }
}

/// What an editor of another system saves.
#[test]
fn a_file_that_is_no_plain_utf_8_is_named_for_what_it_is() {
    let home = Home::new();
    let mut pages = String::new();
    for content in [&b"\xff\xfe{\0}\0"[..], b"\xef\xbb\xbf{\"version\":1}"] {
        home.write("gateway.json", content);
        for arguments in [&["config", "check"][..], &["run"], &["audience", "set", "U1", "pm"]] {
            pages += &shown(&home, &home.run(arguments, ""));
        }
        let kept = std::fs::read(home.path().join("gateway.json")).expect("the file");
        assert_eq!(kept, content);
    }
    insta::assert_snapshot!(pages);
}

#[test]
fn every_setting_is_shown_with_where_it_comes_from_and_no_secret() {
    let home = Home::new();
    home.write(
        "gateway.json",
        json!({
            "version": 1, "language": "en", "limits": {"modelIdleSeconds": 20}, "apiKey": {"cmd": "echo sk-ant-secret"},
            "slack": {"appToken": "xapp-secret", "botToken": {"env": "BOT"}}, "github": {"token": "ghp-secret"},
        })
        .to_string(),
    );
    let run = |arguments: &[&str]| {
        let mut command = home.command(arguments);
        command.env("PMK_SLACK_BOT_TOKEN", "xoxb-secret").env("PMK_MRA_WORKSPACE", "/srv/code");
        command.env("PMK_SEED_CAP", "5000").env("OPENAI_API_KEY", "sk-secret");
        finish(command, "").ok()
    };
    let page = run(&["config", "show"]);
    // How wide the columns are depends on where homes are.
    let narrow: Vec<String> = shown(&home, &page).lines().map(|line| columns(line).join(" | ")).collect();
    insta::assert_snapshot!(narrow.join("\n"));
    let document = run(&["--json", "config", "show"]);
    for secret in ["xapp-secret", "xoxb-secret", "sk-ant-secret", "sk-secret", "ghp-secret"] {
        assert!(!page.stdout.contains(secret) && !document.stdout.contains(secret), "{secret}");
    }
    let of = |key: &str| -> Value {
        let settings = document.json();
        let found = settings.as_array().expect("a list").iter().find(|setting| setting["key"] == key);
        found.unwrap_or_else(|| panic!("{key}")).clone()
    };
    assert_eq!(of("home")["from"], "command-line");
    assert_eq!(of("limits.modelIdleSeconds"), json!({"key": "limits.modelIdleSeconds", "value": 20, "from": "file"}));
    assert_eq!(of("limits.modelTotalSeconds")["from"], "default");
    assert_eq!(of("slack.botToken")["from"], json!({"environment": "PMK_SLACK_BOT_TOKEN"}));
    assert_eq!(of("slack.appToken")["value"], json!({"secret": "a secret"}));
}

/// Regression: the store of gateway.json was shown.
#[test]
fn the_store_that_the_command_line_names_is_the_one_that_is_shown() {
    let home = Home::new();
    home.write("gateway.json", r#"{"version": 1, "store": "postgres://pmk@db/pmk"}"#);
    let store = |named: &[&str]| {
        let mut command = home.command(&[named, &["--json", "config", "show"]].concat());
        command.env("PMK_STORE", "postgres://pmk@other/pmk");
        let settings = finish(command, "").ok().json();
        settings.as_array().expect("a list").iter().find(|setting| setting["key"] == "store").expect("it").clone()
    };
    let variable = json!({"environment": "PMK_STORE"});
    assert_eq!(store(&[]), json!({"key": "store", "value": "postgres://pmk@other/pmk", "from": variable}));
    assert_eq!(store(&["--store", "sqlite"]), json!({"key": "store", "value": "sqlite", "from": "command-line"}));
    let secret = store(&["--store", "postgres://pmk:secret@db/pmk"]);
    assert_eq!(secret["from"], "command-line");
    assert!(!secret.to_string().contains("secret@"), "{secret}");
}

/// The pages said that any `slack` in the file was enough, and that a token in the environment was not.
#[test]
fn which_model_decides_where_none_is_named_depends_on_the_file_and_on_a_token_or_key() {
    for (file, has_token, model) in [
        (None, false, "sim"),
        (None, true, "sim"),
        (Some(json!({})), false, "sim"),
        (Some(json!({})), true, "claude-cli"),
        (Some(json!({"slack": {"replyIn": "thread"}})), false, "sim"),
        (Some(json!({"slack": {"replyIn": "thread"}})), true, "claude-cli"),
        (Some(json!({"slack": {"botToken": "xoxb-1"}})), false, "claude-cli"),
        (Some(json!({"apiKey": "sk-1"})), false, "claude-cli"),
    ] {
        let home = Home::new();
        let told = format!("{file:?} {has_token}");
        if let Some(mut file) = file {
            file["version"] = json!(1);
            home.write("gateway.json", file.to_string());
        }
        let mut command = home.command(&["--json", "config", "show"]);
        if has_token {
            command.env("PMK_SLACK_APP_TOKEN", "xapp-1");
        }
        let settings = finish(command, "").ok().json();
        let found = settings.as_array().expect("a list").iter().find(|setting| setting["key"] == "model").cloned();
        assert_eq!(found, Some(json!({"key": "model", "value": model, "from": "default"})), "{told}");
    }
}

/// Regression: the check was content, and the start was refused.
#[test]
fn a_token_in_a_file_whose_path_is_not_whole_is_refused_by_the_check_as_by_the_start() {
    let home = Home::new();
    let token = |name: &str| json!({"file": format!("secrets/{name}")});
    let slack = json!({"appToken": token("app"), "botToken": token("bot")});
    home.write("gateway.json", json!({"version": 1, "slack": slack}).to_string());
    for arguments in [&["config", "check"][..], &["run", "--model", "sim"]] {
        let refused = home.run(arguments, "");
        let said = format!("{}{}", refused.stdout, refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{said}");
        assert!(said.contains("secrets/app"), "{said}");
    }
}

#[test]
fn the_schema_is_one_document() {
    let home = Home::new();
    let schema = home.run(&["config", "schema"], "").ok().json();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    let wall = &schema["properties"]["policy"]["properties"]["limits"]["properties"]["wallMs"];
    assert_eq!((&wall["minimum"], &wall["maximum"], &wall["default"]), (&json!(100), &json!(600_000), &json!(5_000)));
}

/// Regression: a comment was a key that must be a string, or an expected value.
#[test]
fn a_comment_was_not_said_to_be_one() {
    let home = Home::new();
    for (file, line) in [
        ("{\n  // the model\n  \"model\": \"sim\"\n}\n", 2),
        ("{\n  \"model\": \"sim\" # the model\n}\n", 2),
        ("/* ours */\n{}\n", 1),
        ("{}\n// the end\n", 2),
    ] {
        home.write("gateway.json", file);
        let refused = home.run(&["config", "check"], "");
        let expected = format!("not a JSON object: line {line} has a comment, which JSON must not have");
        assert!(!refused.status.success(), "{file}");
        assert!(format!("{}{}", refused.stdout, refused.stderr).contains(&expected), "{}", refused.stderr);
    }
}

#[test]
fn where_the_store_is_nobody_guesses_from_a_file_that_makes_no_sense() {
    let home = Home::new();
    for (file, what) in [
        (r#"{"version": 1, "store": "postgres://pmk@db/pmk""#, "not a JSON object"),
        (r#"{"version": 1, "store": ["postgres://pmk@db/pmk"]}"#, "`store`: invalid type"),
        (r#"{"version": 1, "storePassword": 7}"#, "`storePassword`"),
    ] {
        home.write("gateway.json", file);
        for arguments in [&["sessions", "list"][..], &["audit"], &["case", "list"]] {
            let refused = home.run(arguments, "");
            assert!(!refused.status.success() && refused.stderr.contains(what), "{arguments:?}: {}", refused.stderr);
            assert!(refused.stderr.contains("gateway.json") && refused.stderr.contains("hint: correct the file"));
        }
        // Who names it needs no file.
        let named = home.run(&["--store", "sqlite", "sessions", "list"], "").stderr;
        assert!(named.contains("there is no store"), "{named}");
        // Whether somebody is at work can be told all the same.
        let status = home.run(&["status"], "");
        assert!(
            status.stdout.starts_with("down") && status.stderr.contains(what),
            "{}{}",
            status.stdout,
            status.stderr
        );
    }
}

/// As where what mounts it has not come up.
#[test]
fn a_link_to_a_gateway_json_that_is_not_there_was_taken_for_none_and_another_gateway_ran() {
    let home = Home::new();
    let link = home.path().join("gateway.json");
    std::os::unix::fs::symlink("/gone/gateway.json", &link).expect("a link");
    for arguments in [&["config", "check"][..], &["run", "--model", "sim"], &["admin", "add", "U1"]] {
        let finished = home.run(arguments, "");
        let said = format!("{}{}", finished.stdout, finished.stderr);
        assert_eq!(finished.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(said.contains("it is a link to `/gone/gateway.json`, which does not exist"), "{arguments:?}: {said}");
        assert!(said.contains("hint: ") && !said.contains("--home"), "{arguments:?}: {said}");
    }
    assert!(link.is_symlink(), "nobody puts a file in its place");
}

/// Regression: the check was content, there were no admins, and what `status` advised nobody could do.
#[test]
fn a_file_that_was_deleted_under_a_running_gateway_was_taken_for_one_that_never_was() {
    let home = Home::new();
    let file = home.write("gateway.json", r#"{"version":1,"model":"sim","admins":["U1"],"blocklist":["U9"]}"#);
    let mut gateway = Running::start(home.command(&["run"]));
    gateway.say(&question("Ev1", "hello"));
    gateway.next_of("turn");
    std::fs::remove_file(&file).expect("deleted");
    for arguments in [
        &["status"][..],
        &["config", "check"],
        &["config", "show"],
        &["doctor", "--offline"],
        &["admin", "list"],
        &["admin", "add", "U2"],
        &["audience", "list"],
        &["escalation", "list"],
        &["experiment", "status"],
    ] {
        let finished = home.run(arguments, "");
        let said = format!("{}{}", finished.stdout, finished.stderr);
        assert_eq!(finished.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(said.contains("no longer exists, and the gateway goes by what it said"), "{arguments:?}: {said}");
        assert!(said.contains("hint: put it back, or stop the gateway first"), "{arguments:?}: {said}");
    }
    let mut command = home.command(&["admin", "list"]);
    command.env("LC_ALL", "zh_TW.UTF-8");
    let chinese = finish(command, "").stderr;
    assert!(chinese.contains("提示：請放回檔案，或先停止閘道"), "{chinese}");
    assert!(gateway.end().0.success());
    for (arguments, what) in [(["config", "check"], "defaults are used"), (["admin", "list"], "there are no admins")] {
        let finished = home.run(&arguments, "").ok();
        let said = format!("{}{}", finished.stdout, finished.stderr);
        assert!(said.contains(what), "{arguments:?}: {said}");
    }
}

/// Regression: after a move to PostgreSQL, they read and erased in the old file, which was still in the home.
#[test]
fn the_commands_about_the_store_took_the_default_one_when_the_file_was_deleted_under_a_running_gateway() {
    let home = Home::new();
    let file = home.write("gateway.json", r#"{"version":1,"model":"sim"}"#);
    let mut gateway = Running::start(home.command(&["run"]));
    gateway.say(&question("Ev1", "hello"));
    gateway.next_of("turn");
    let exported = home.path().join("all.jsonl").display().to_string();
    home.run(&["sessions", "export", "--all", "--to", &exported], "").ok();
    std::fs::remove_file(&file).expect("deleted");
    for arguments in [
        &["sessions", "list"][..],
        &["sessions", "import", &exported],
        &["sessions", "parked"],
        &["case", "list"],
        &["store", "check"],
        &["audit"],
        &["policy", "inspect", "strict"],
    ] {
        let refused = home.run(arguments, "");
        assert_eq!(refused.status.code(), Some(1), "{arguments:?}: {}{}", refused.stdout, refused.stderr);
        assert!(refused.stderr.contains("no longer exists, and the gateway goes"), "{arguments:?}: {}", refused.stderr);
    }
    let status = home.run(&["status"], "").stderr;
    assert!(status.contains("cannot tell which process uses the store: "), "{status}");
    // Who names it needs no file.
    let named = home.run(&["--store", "sqlite", "sessions", "list"], "").ok().stdout;
    assert!(named.contains("console:dm:U1"), "{named}");
    assert!(gateway.end().0.success());
    let listed = home.run(&["sessions", "list"], "").ok().stdout;
    assert!(listed.contains("console:dm:U1"), "{listed}");
}

/// Regression: what was reported was a path that nobody had written, without any advice.
#[test]
fn a_misspelt_built_in_policy_was_only_a_file_that_does_not_exist() {
    let home = Home::new();
    let write = |file: &str| {
        let policy = json!({"files": [file]});
        home.write("gateway.json", json!({"version": 1, "model": "sim", "policy": policy}).to_string())
    };
    write("strikt");
    for arguments in [&["config", "check"][..], &["doctor", "--offline"], &["run"]] {
        let refused = home.run(arguments, "");
        let said = format!("{}{}", refused.stdout, refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(said.contains("hint: specify a file by its path, or a built-in policy by its name: `caps`"), "{said}");
        assert!(said.contains("`tool-lean`; did you mean `strict`?"), "{arguments:?}: {said}");
    }
    let document = home.run(&["--json", "config", "check"], "").json();
    let hint = document["problems"][0]["hint"].as_str().unwrap_or_default();
    assert!(hint.ends_with("did you mean `strict`?"), "{document}");
    let mut command = home.command(&["config", "check"]);
    command.env("LC_ALL", "zh_TW.UTF-8");
    let chinese = finish(command, "").stdout;
    assert!(chinese.contains("內建的策略用名稱：`caps`") && chinese.contains("你是指 `strict` 嗎？"), "{chinese}");
    write("strikt.wasm");
    let file = home.run(&["config", "check"], "").stdout;
    assert!(file.contains("does not exist") && !file.contains("did you mean"), "{file}");
}
