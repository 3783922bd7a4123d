//! Experiments: conversations of real arms, moved off a bad one before anybody goes without an answer.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{
    component::Component,
    support::{Home, Running, component, of_type, question, replies, until},
};

mod commands;
mod slack;

/// gateway.json with this experiment, on since a while ago.
fn write(home: &Home, name: &str, arms: &Value) {
    let experiment = json!({
        "name": name, "start": "2026-01-01T00:00:00Z", "control": arms[0]["name"], "arms": arms,
    });
    home.write("gateway.json", json!({"version": 1, "admins": ["U0ADMIN"], "experiment": experiment}).to_string());
}

/// One question of somebody.
fn asks(event_id: &str, user: &str, text: &str) -> String {
    json!({"type": "message", "user": user, "channel": format!("D{user}"), "thread_ts": null, "text": text,
           "event_id": event_id})
    .to_string()
}

fn users(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("U{n}")).collect()
}

/// The arm of each conversation's last turn.
fn arms(lines: &[Value]) -> BTreeMap<String, String> {
    let turns = of_type(lines, "turn").into_iter();
    turns.filter_map(|turn| Some((turn["session"].as_str()?.to_owned(), turn["arm"].as_str()?.to_owned()))).collect()
}

/// A policy that fails whenever it is asked what the model is to see.
fn failing(home: &Home) -> String {
    home.write("failing.wasm", Component::pruning("unreachable").build()).display().to_string()
}

/// Once, the figures of both were added up as if nothing had happened.
#[test]
fn an_arm_whose_file_was_changed_is_compared_as_a_new_one() {
    let home = Home::new();
    let holds = |policy: &str| home.write("arm.wasm", std::fs::read(component(policy)).expect("a component"));
    write(&home, "less", &json!([{"name": "a"}, {"name": "b", "policy": {"files": ["arm.wasm"]}}]));
    let mut round = 0;
    let mut ask = |users: &[String]| {
        round += 1;
        let input: Vec<String> =
            users.iter().map(|user| asks(&format!("Ev{round}{user}"), user, &format!("Question {round}"))).collect();
        home.run(&["run", "--model", "sim"], &input.join("\n")).ok()
    };
    let status = || home.run(&["--json", "experiment", "status"], "").ok().json();
    let everybody = users(60);
    holds("strict");
    ask(&everybody[..20]);
    ask(&everybody[..30]);
    let before = status();
    assert_eq!(
        (&before["arms"][1]["policies_changed_at"], &before["arms"][1]["compared"]["policies_changed"]),
        (&Value::Null, &Value::Null),
        "a restart changes nothing"
    );
    holds("recall");
    let told = ask(&everybody).stderr;
    assert!(told.contains("an arm decides by these policies only from now on"), "{told}");
    let after = status();
    let of = |status: &Value, key: &str| ["arm", "control"].map(|of| status["arms"][1][key][of].as_u64().unwrap_or(0));
    assert!(after["arms"][1]["policies_changed_at"].is_string() && after["arms"][0]["policies_changed_at"].is_null());
    assert_eq!(of(&before, "compared").iter().sum::<u64>(), 30);
    assert_eq!(of(&after, "compared").iter().sum::<u64>(), 30, "the others were drawn before");
    assert_eq!(after["arms"][1]["compared"]["policies_changed"]["arm"], "b");
    let page = home.run(&["experiment", "status"], "").ok().stdout;
    assert!(page.contains("\n  b has decided by these policies only since 20"), "{page}");
}

#[test]
fn a_conversation_keeps_its_arm_over_restarts_and_other_weights() {
    let home = Home::new();
    let strict = component("strict");
    let with = |weight_a: u32, weight_b: u32| json!([{"name": "a", "weight": weight_a}, {"name": "b", "weight": weight_b, "policy": {"files": [strict]}}]);
    let ask = |round: u32, users: &[String]| {
        let input: Vec<String> =
            users.iter().map(|user| asks(&format!("Ev{round}{user}"), user, &format!("Question {round}"))).collect();
        home.run(&["run", "--model", "sim"], &input.join("\n")).ok().lines()
    };
    let everybody = users(40);
    write(&home, "less", &with(1, 1));
    let lines = ask(1, &everybody[..20]);
    let first = arms(&lines);
    let of_b = first.values().filter(|arm| *arm == "b").count();
    assert!((4..=16).contains(&of_b), "both arms have some: {first:?}");
    for turn in of_type(&lines, "turn") {
        let policy = if turn["arm"] == "b" { "strict" } else { "standard" };
        assert_eq!((&turn["policy"]["name"], &turn["experiment"]), (&json!(policy), &json!("less")), "{turn}");
    }
    write(&home, "less", &with(0, 1));
    let second = arms(&ask(2, &everybody));
    assert!(first.iter().all(|(session, arm)| second[session] == *arm), "{first:?}\n{second:?}");
    let new = everybody[20..].iter().map(|user| format!("console:dm:{user}"));
    assert!(new.into_iter().all(|session| second[&session] == "b"), "{second:?}");
    // Every event of a turn says whose decisions it went by.
    for event in home.ledger() {
        if ["turn.processed", "token.usage"].iter().any(|kind| event["type"] == *kind) {
            assert_eq!(event["experiment"], "less", "{event}");
            assert!(event["arm"].is_string() && event["policySha256"].as_str().map(str::len) == Some(64), "{event}");
        }
    }
    // Without an experiment, nobody has an arm.
    home.write("gateway.json", r#"{"version":1}"#);
    let lines = ask(3, &everybody[..3]);
    assert!(arms(&lines).is_empty() && of_type(&lines, "turn").len() == 3, "{lines:#?}");
}

/// Once, it had its sums and none of its findings, as soon as gateway.json had another. Where its section was edited
/// for the next round, it was shown with those arms.
#[test]
fn an_experiment_of_before_keeps_its_findings() {
    let home = Home::new();
    let strict = json!({"files": [component("strict")]});
    let ask = |round: u32| {
        let input: Vec<String> = users(40)
            .iter()
            .map(|user| asks(&format!("Ev{round}{user}"), user, &format!("Question {round}")))
            .collect();
        home.run(&["run", "--model", "sim"], &input.join("\n")).ok();
    };
    let status = |more: &[&str]| home.run(&[&["--json", "experiment", "status"], more].concat(), "").ok().json();
    let arms = json!([{"name": "a"}, {"name": "b", "policy": strict, "weight": 3}, {"name": "c", "policy": strict, "shadow": true}]);
    write(&home, "less", &arms);
    ask(1);
    let before = status(&[]);
    assert_eq!((&before["control"], before["arms"][1]["differences"].as_array().map(Vec::len)), (&json!("a"), Some(8)));
    let next = json!({"name": "less", "control": "b", "arms": [{"name": "b"}, {"name": "a", "policy": strict}]});
    home.write("gateway.json", json!({"version": 1, "experiment": next}).to_string());
    let edited = status(&[]);
    assert_eq!((&edited["state"], &edited["control"], &edited["arms"]), (&json!("off"), &json!("a"), &before["arms"]));
    write(&home, "more", &json!([{"name": "x"}, {"name": "y", "policy": strict}]));
    ask(2);
    let after = status(&["less"]);
    assert_eq!((&after["state"], &after["experiment"]), (&json!("off"), &json!("less")));
    for key in ["control", "arms"] {
        assert_eq!(after[key], before[key], "{key}");
    }
    assert_eq!(status(&[])["experiment"], "more");
}

#[test]
fn an_arm_whose_policy_fails_is_stopped_and_everybody_is_answered() {
    let home = Home::new();
    let bad = json!({"name": "bad", "policy": {"files": [failing(&home)]}});
    write(&home, "broken", &json!([{"name": "good", "weight": 2}, bad]));
    let everybody = users(60);
    let round = |round: u32, users: &[String]| {
        let input: Vec<String> =
            users.iter().map(|user| asks(&format!("Ev{round}{user}"), user, &format!("Question {round}"))).collect();
        home.run(&["run", "--model", "sim"], &input.join("\n")).ok().lines()
    };
    // After five failures a policy is suspended until the next start, and seven conversations are enough.
    let lines = [round(1, &everybody[..30]), round(1, &everybody[30..])].concat();
    assert_eq!(replies(&lines).len(), 60);
    let stopped = home.events("experiment.arm-stopped");
    let [stopped] = &stopped[..] else { panic!("once: {stopped:#?}") };
    assert_eq!((&stopped["stopped"], &stopped["worse"]), (&json!("bad"), &json!("failures")), "{stopped}");
    assert_eq!(stopped["controlConversations"], 0);
    assert!(stopped["evidence"].as_f64() >= stopped["bound"].as_f64(), "{stopped}");
    let told = of_type(&lines, "notice");
    assert!(told.iter().any(|it| it["channel"] == "U0ADMIN" && it["text"].to_string().contains("`bad`")), "{lines:#?}");
    // Everybody goes on with the control, over a restart, too.
    let lines = round(2, &everybody);
    assert_eq!(replies(&lines).len(), 60);
    assert!(arms(&lines).values().all(|arm| arm == "good"), "{:?}", arms(&lines));
    assert_eq!(home.events("experiment.arm-stopped").len(), 1);
    let status = home.run(&["--json", "experiment", "status"], "").ok().json();
    let bad = &status["arms"][1];
    assert_eq!(bad["moved"], bad["conversations"], "{status:#}");
    let reason = bad["stopped"]["reason"].as_str().expect("a reason");
    assert!(reason.starts_with("failures in ") && reason.contains("the control's in 0 of "), "{reason}");
}

/// Once, those for whom the suspended policy was only skipped counted as conversations in trouble, and the arm was
/// stopped for `failures in 7 of 7 conversations`.
#[test]
fn an_arm_is_not_stopped_for_the_failures_of_one_conversation() {
    let home = Home::new();
    write(&home, "shared", &json!([{"name": "good"}, {"name": "bad", "policy": {"files": [failing(&home)]}}]));
    let mut gateway = Running::start(home.command(&["run", "--model", "sim"]));
    let mut ask = |event_id: &str, user: &str| {
        assert!(gateway.say(&asks(event_id, user, "hello")));
        gateway.next_of("turn")["arm"] == "bad"
    };
    let mut is_suspended = false;
    for user in users(24) {
        if ask(&format!("Ev{user}"), &user) && !is_suspended {
            assert!((2..=5).all(|n| ask(&format!("Ev{n}{user}"), &user)));
            is_suspended = true;
        }
    }
    assert!(gateway.end().0.success());
    assert_eq!((home.events("policy.failed").len(), home.events("policy.suspended").len()), (5, 1));
    assert_eq!(home.events("experiment.arm-stopped"), [] as [Value; 0]);
    let bad = &home.run(&["--json", "experiment", "status"], "").ok().json()["arms"][1];
    assert_eq!((&bad["conversations"], &bad["turns"], &bad["failed"]), (&json!(11), &json!(15), &json!(5)), "{bad:#}");
}

/// Regression: of an arm whose policy is skipped, only the ledger told.
#[test]
fn the_status_did_not_say_that_the_policy_of_an_arm_is_suspended() {
    let home = Home::new();
    write(&home, "shared", &json!([{"name": "good"}, {"name": "bad", "policy": {"files": [failing(&home)]}}]));
    let mut gateway = Running::start(home.command(&["run", "--model", "sim"]));
    let mut ask = |event_id: &str, user: &str| {
        assert!(gateway.say(&asks(event_id, user, "hello")));
        gateway.next_of("turn")["arm"] == "bad"
    };
    let user = users(24).into_iter().find(|user| ask(&format!("Ev{user}"), user)).expect("a conversation of the arm");
    assert!((2..=6).all(|n| ask(&format!("Ev{n}{user}"), &user)));
    home.await_events("policy.suspended", 1);
    let status = home.run(&["--json", "experiment", "status"], "").ok().json();
    let suspended = &status["suspended"][0];
    assert_eq!((&suspended["arm"], &suspended["decision"]), (&json!("bad"), &json!("prune")), "{status:#}");
    assert_eq!(status["suspensions"]["bad"]["count"], 1, "{status:#}");
    let now = "\nbad: `test 1.0` is suspended: the next one decides `prune`";
    let past = "\nsuspensions of bad so far: 1; the last one at ";
    let shown = home.run(&["experiment", "status"], "").ok().stdout;
    assert!(shown.contains(now) && shown.contains(past), "{shown}");
    assert!(gateway.end().0.success());
    let shown = home.run(&["experiment", "status"], "").ok().stdout;
    assert!(!shown.contains(now) && shown.contains(past), "{shown}");
}

/// Once, a suspension of before hid the failures of the control, and an arm with the same file was stopped.
#[test]
fn an_experiment_that_begins_while_the_serving_policy_is_suspended_asks_it_again() {
    let home = Home::new();
    let policy = json!({"files": [failing(&home)]});
    home.write("gateway.json", json!({"version": 1, "policy": policy}).to_string());
    let mut gateway = Running::start(home.command(&["run", "--model", "sim"]));
    let mut ask = |event_id: &str, user: &str| {
        assert!(gateway.say(&asks(event_id, user, "hello")));
        gateway.next_of("turn");
    };
    for n in 0..6 {
        ask(&format!("Ev{n}"), "U9000");
    }
    home.await_events("policy.suspended", 1);
    let arms = json!([{"name": "now"}, {"name": "same", "policy": policy}]);
    let experiment = json!({"name": "shared", "start": "2026-01-01T00:00:00Z", "control": "now", "arms": arms});
    home.write("gateway.json", json!({"version": 1, "policy": policy, "experiment": experiment}).to_string());
    home.await_events("experiment.on", 1);
    // One after the other: of those that are asked at once, more than five would fail.
    for user in users(24) {
        ask(&format!("Ev{user}"), &user);
    }
    assert!(gateway.end().0.success());
    assert_eq!(home.events("experiment.arm-stopped"), [] as [Value; 0]);
    let status = home.run(&["--json", "experiment", "status"], "").ok().json();
    let failed = [0, 1].map(|at| status["arms"][at]["failed"].clone());
    assert_eq!(failed, [json!(5), json!(5)], "{status:#}");
}

#[test]
fn a_running_gateway_begins_and_ends_an_experiment() {
    let home = Home::new();
    let strict = component("strict");
    let file = home.write(
        "less.json",
        json!({"name": "less", "control": "a", "arms": [
            {"name": "a", "weight": 0}, {"name": "b", "policy": {"files": [strict], "settings": {"strict": {"seed-cap": 9}}}},
        ]})
        .to_string(),
    );
    let file = file.display().to_string();
    let mut gateway = Running::start(home.command(&["run", "--model", "sim"]));
    let mut ask = |event_id: &str| {
        assert!(gateway.say(&question(event_id, "hello")));
        gateway.next_of("turn")
    };
    assert_eq!(ask("Ev1")["arm"], Value::Null);
    home.run(&["experiment", "start", "--file", &file], "").ok();
    let on = &home.await_events("experiment.on", 1)[0];
    assert_eq!(on["arms"][1]["policy"], "strict", "{on}");
    let turn = ask("Ev2");
    assert_eq!((&turn["arm"], &turn["policy"]["name"]), (&json!("b"), &json!("strict")), "{turn}");
    home.run(&["experiment", "promote", "b"], "").ok();
    let turn = ask("Ev3");
    assert_eq!((&turn["arm"], &turn["policy"]["name"]), (&Value::Null, &json!("strict")), "{turn}");
    assert_eq!(home.await_events("experiment.off", 1)[0]["promoted"], "b");
    let swapped = &home.await_events("policy.swapped", 1)[0];
    assert_eq!((&swapped["by"], &swapped["serving"][0]["name"]), (&json!("promotion"), &json!("strict")), "{swapped}");
    home.run(&["policy", "use", "--previous"], "").ok();
    assert_eq!(ask("Ev4")["policy"]["name"], "standard", "what served before can come back");
    let (status, _) = gateway.end();
    assert!(status.success());
    let lines = home.run(&["run", "--model", "sim"], &question("Ev5", "hello")).ok().lines();
    assert_eq!(of_type(&lines, "turn")[0]["policy"]["name"], "strict", "after a restart, too");
}

/// What `--set` is for was not loaded any more: the next start was refused.
#[test]
fn an_arm_that_the_options_of_the_gateway_keep_from_the_next_start_is_not_promoted() {
    let home = Home::new();
    let arms = json!([{"name": "a", "weight": 0}, {"name": "b", "policy": {"files": ["strict"]}}]);
    let file = home.write("less.json", json!({"name": "less", "control": "a", "arms": arms}).to_string());
    let file = file.display().to_string();
    let run = |options: &[&str]| {
        let mut gateway = Running::start(home.command(&[&["run", "--model", "sim"], options].concat()));
        assert!(gateway.say(&question(&format!("Ev{}", options.join("")), "hello")));
        gateway.next_of("turn");
        gateway
    };
    home.write("gateway.json", json!({"version": 1, "policy": {"files": ["recall"]}}).to_string());
    let gateway = run(&["--set", "recall.recent=40"]);
    home.run(&["experiment", "start", "--file", &file], "").ok();
    home.await_events("experiment.on", 1);
    let before = std::fs::read_to_string(home.path().join("gateway.json")).expect("gateway.json");
    let refused = home.run(&["experiment", "promote", "b"], "");
    assert_eq!(refused.status.code(), Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains("started again with the same options, would refuse `b`: "), "{}", refused.stderr);
    let after = std::fs::read_to_string(home.path().join("gateway.json")).expect("gateway.json");
    assert_eq!(before, after);
    assert!(gateway.end().0.success());
    // With `--policy` it decides, but not after a restart.
    let gateway = run(&["--policy", "recall"]);
    home.await_events("experiment.on", 2);
    let promoted = home.run(&["--json", "experiment", "promote", "b"], "").ok();
    assert_eq!(promoted.json()["survives_restart"], false, "{}", promoted.stdout);
    assert!(promoted.stderr.contains("it does not decide after a restart"), "{}", promoted.stderr);
    assert!(gateway.end().0.success());
}

#[test]
fn an_experiment_was_said_to_run_without_any_gateway() {
    let home = Home::new();
    let arms = json!([{"name": "a"}, {"name": "b", "policy": {"files": ["strict"]}}]);
    let file = home.write("less.json", json!({"name": "less", "control": "a", "arms": arms}).to_string());
    let started = home.run(&["experiment", "start", "--file", &file.display().to_string()], "").ok().stderr;
    assert!(started.contains("`: no gateway is running here: ") && !started.contains("is running; "), "{started}");
}

/// Once, it said nothing, as if the arm had proved itself.
#[test]
fn an_arm_that_had_never_decided_was_promoted_without_a_word() {
    let home = Home::new();
    let told = "`b` has decided in no conversation of `less`";
    for (weight, is_told) in [(0, true), (1, false)] {
        let arms = json!([{"name": "a", "weight": 1 - weight}, {"name": "b", "weight": weight, "policy": {"files": ["strict"]}}]);
        write(&home, "less", &arms);
        home.run(&["run", "--model", "sim"], &asks(&format!("Ev{weight}"), &format!("U{weight}"), "hello")).ok();
        let promoted = home.run(&["experiment", "promote", "b"], "").ok();
        assert_eq!(promoted.stderr.contains(told), is_told, "{}", promoted.stderr);
    }
}

/// Regression: the store was asked once the file was changed.
#[test]
fn a_promotion_that_failed_at_the_store_had_changed_gateway_json() {
    let home = Home::new();
    let arms = json!([{"name": "a"}, {"name": "b", "policy": {"files": ["strict"]}}]);
    let experiment = json!({"name": "less", "start": "2026-01-01T00:00:00Z", "control": "a", "arms": arms});
    let config = json!({"version": 1, "store": "postgres://pmk@127.0.0.1:1/pmk", "experiment": experiment}).to_string();
    home.write("gateway.json", &config);
    for arm in ["a", "b"] {
        let failed = home.run(&["experiment", "promote", arm], "");
        assert_eq!(failed.status.code(), Some(1), "{arm}: {}", failed.stderr);
        assert!(failed.stderr.contains("cannot reach the database"), "{arm}: {}", failed.stderr);
        let now = std::fs::read_to_string(home.path().join("gateway.json")).expect("gateway.json");
        assert_eq!(now, config, "{arm}");
    }
}

/// Once, it was refused for settings in gateway.json that a start only warns of.
#[test]
fn a_changed_file_of_a_promoted_arm_was_loaded_with_other_settings_than_the_arms() {
    let home = Home::new();
    let bytes = |name: &str| std::fs::read(component(name)).expect("a component");
    let mine = home.write("mine.wasm", bytes("strict"));
    let settings = json!({"standard": {"seed-cap": 900}});
    let arm = json!({"files": ["mine.wasm"], "settings": settings});
    write(&home, "less", &json!([{"name": "a"}, {"name": "b", "policy": arm}]));
    let gateway = Running::start(home.command(&["run", "--model", "sim"]));
    home.await_events("experiment.on", 1);
    home.run(&["experiment", "promote", "b"], "").ok();
    home.await_events("policy.swapped", 1);
    let policy = json!({"files": ["mine.wasm"], "settings": {"recall": {"recent": 40}}});
    home.write("gateway.json", json!({"version": 1, "policy": policy}).to_string());
    std::fs::write(mine, bytes("rolling-summary")).expect("a file");
    let swapped = &home.await_events("policy.swapped", 2)[1];
    assert_eq!((&swapped["by"], &swapped["serving"][0]["name"]), (&json!("file"), &json!("rolling-summary")));
    assert_eq!(home.events("policy.refused"), Vec::<Value>::new());
    let status = || home.run(&["--json", "status"], "").json();
    let now = || Some(status()).filter(|status| status["policies"][0]["name"] == "rolling-summary");
    assert_eq!(until("it decides", now)["settings"], settings);
    assert!(gateway.end().0.success());
}

#[test]
fn an_arm_that_cannot_be_loaded_keeps_the_experiment_from_beginning_and_nobody_from_an_answer() {
    let home = Home::new();
    write(&home, "less", &json!([{"name": "a"}, {"name": "b", "policy": {"files": ["gone.wasm"]}}]));
    let finished = home.run(&["run", "--model", "sim"], &question("Ev1", "hello")).ok();
    let lines = finished.lines();
    assert_eq!(of_type(&lines, "turn")[0]["arm"], Value::Null);
    assert_eq!(replies(&lines).len(), 1);
    let refused = &home.events("experiment.refused")[0];
    assert!(
        refused["reason"].as_str().is_some_and(|why| why.contains("arm `b`") && why.contains("gone.wasm")),
        "{refused}"
    );
    assert!(of_type(&lines, "notice").iter().any(|notice| notice["channel"] == "U0ADMIN"), "{lines:#?}");
}

/// Regression: only another change of gateway.json, or a restart, had it tried again.
#[test]
fn a_mended_file_of_an_experiment_that_was_refused_was_not_looked_at() {
    let home = Home::new();
    let settings = json!({"strict": {"max-session-tokens": 900}});
    let mine = json!({"files": ["mine.wasm"], "settings": settings});
    write(
        &home,
        "less",
        &json!([{"name": "a"}, {"name": "b", "policy": mine, "weight": 2}, {"name": "c", "shadow": true}]),
    );
    let gateway = Running::start(home.command(&["run", "--model", "sim"]));
    home.await_events("experiment.refused", 1);
    home.write("mine.wasm", b"oops");
    home.await_events("experiment.refused", 2);
    home.write("mine.wasm", std::fs::read(component("strict")).expect("a component"));
    let on = &home.await_events("experiment.on", 1)[0];
    assert_eq!(on["arms"][1]["policy"], "strict", "{on}");
    assert_eq!((&on["control"], &on["arms"][1]["weight"]), (&json!("a"), &json!(2)), "{on}");
    assert_eq!(on["arms"][1]["settings"], settings, "{on}");
    assert_eq!((&on["arms"][2]["weight"], &on["arms"][2]["shadow"]), (&json!(0), &json!(true)), "{on}");
    assert!(gateway.end().0.success());
    assert_eq!(home.events("experiment.refused").len(), 2, "each file is refused once");
}

#[test]
fn a_shadow_arm_decides_and_does_nothing() {
    let home = Home::new();
    let small = json!({"settings": {"standard": {"max-session-tokens": 600}}});
    write(
        &home,
        "watch",
        &json!([{"name": "a"}, {"name": "b", "shadow": true, "policy": small},
                {"name": "c", "shadow": true, "policy": {"files": [failing(&home)]}}]),
    );
    let input: Vec<String> =
        (0..8).map(|n| question(&format!("Ev{n}"), &format!("Question {n}: {}", "filler ".repeat(80)))).collect();
    // One at a time: a shadow arm that is busy sits a turn out.
    let mut gateway = Running::start(home.command(&["run", "--model", "sim"]));
    for (n, line) in (1..).zip(&input) {
        assert!(gateway.say(line));
        assert_eq!(gateway.next_of("turn")["turns_dropped"], 0);
        home.await_events("experiment.shadow", 2 * n);
    }
    assert!(gateway.end().0.success());
    let seen = home.events("experiment.shadow");
    let of = |arm: &str| seen.iter().filter(|event| event["shadow"] == arm).cloned().collect::<Vec<Value>>();
    let last = of("b").pop().expect("one a turn");
    assert_eq!((&last["arm"], &last["agrees"]), (&json!("a"), &json!(false)), "{last}");
    assert!(last["tokensAfter"].as_u64() < last["actingTokensAfter"].as_u64(), "{last}");
    assert!(last["turnsDropped"].as_u64() > Some(0) && last["actingTurnsDropped"] == 0, "{last}");
    assert!(of("c").iter().all(|event| event["failures"] == 1 && event["agrees"] == true), "{:#?}", of("c"));
    assert_eq!(home.events("policy.failed"), [] as [Value; 0], "it decides nothing");
}

/// Regression: the ledger told what policies that act read of conversations, and nothing of those that are only tried.
#[test]
fn what_a_shadow_arm_read_was_not_told() {
    let home = Home::new();
    let read = "(call $text (local.get $transcript) (i32.const 0) (i32.const 0) (i32.const 7) (i32.const 256))";
    let reader = home.write("reader.wasm", Component::pruning(read).build()).display().to_string();
    write(&home, "watch", &json!([{"name": "a"}, {"name": "b", "shadow": true, "policy": {"files": [reader]}}]));
    let mut gateway = Running::start(home.command(&["run", "--model", "sim"]));
    assert!(gateway.say(&asks("Ev0", "U7", "The launch is on Friday.")));
    let told = &home.await_events("policy.read", 1)[0];
    assert_eq!((&told["actor"], &told["arm"], &told["shadow"]), (&json!("U7"), &json!("a"), &json!("b")), "{told}");
    assert_eq!((&told["policy"], &told["chars"]), (&json!("test"), &json!(7)), "{told}");
    assert!(gateway.end().0.success());
}

/// Once, nothing said how many turns a shadow arm had not looked at; and one without policies of its own looked at none.
#[test]
fn a_shadow_arm_counts_the_turns_that_it_was_too_busy_for() {
    let home = Home::new();
    write(&home, "watch", &json!([{"name": "a"}, {"name": "b", "shadow": true}]));
    let mut command = home.command(&["run", "--model", "sim"]);
    command.env("PMK_LOG", "pmk_host::policies::experiment=debug");
    let log = home.path().join("log");
    let mut gateway = Running::telling(command, std::fs::File::create(&log).expect("a file"));
    let everybody = users(40);
    for user in &everybody {
        assert!(gateway.say(&asks(&format!("Ev{user}"), user, &"filler ".repeat(400))));
    }
    // Of each turn it is known in the end whether it was looked at.
    let known = |turns: usize| {
        until("what became of each turn", || {
            let seen = home.events("experiment.shadow");
            let log = std::fs::read_to_string(&log).expect("the log");
            let sat_out = log.matches("skip a turn").count();
            (seen.len() + sat_out == turns).then_some((seen, sat_out))
        })
    };
    let mut turns = everybody.len();
    let (mut before, _) = known(turns);
    // One that it has looked at says of all before.
    loop {
        assert!(gateway.say(&asks(&format!("Ev{turns}"), "U0", "and now?")));
        turns += 1;
        let (seen, sat_out) = known(turns);
        assert!(seen.iter().all(|event| event["agrees"] == true), "what serves acts: {seen:#?}");
        if seen.len() > before.len() {
            let told: u64 = seen.iter().map(|event| event["satOut"].as_u64().expect("a number")).sum();
            assert_eq!(told, sat_out as u64);
            break;
        }
        before = seen;
    }
    assert!(gateway.end().0.success());
}
