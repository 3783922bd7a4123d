//! `plan`: decisions about recorded conversations, on paper.

use serde_json::{Value, json};

use crate::{
    component::Component,
    support::{Home, component, repository},
};

/// The indexes in a list.
fn indexes(value: &Value) -> Vec<usize> {
    let list = value.as_array().unwrap_or_else(|| panic!("{value} is no list"));
    list.iter().map(|at| at.as_u64().expect("an index") as usize).collect()
}

fn plan(home: &Home, history: &Value, more: &[&str]) -> Value {
    let path = home.write("history.json", history.to_string()).display().to_string();
    let strict = component("strict");
    let mut arguments = vec!["--json", "plan", "--policy", &strict, "--history", &path];
    arguments.extend(more);
    home.run(&arguments, "").ok().json()
}

/// A pmk session: the seed pair, then this many turns, then a question.
fn session(turns: usize, words: usize) -> Value {
    let mut messages = vec![
        json!({"role": "user", "content": "我先把 workspace 的 PKB context 給你（請當作 ground truth）：…"}),
        json!({"role": "assistant", "content": "了解，已載入 workspace PKB context。請繼續。"}),
    ];
    for n in 0..turns {
        messages.push(json!({"role": "user", "content": format!("Question {n}? {}", "why ".repeat(words))}));
        messages.push(json!({"role": "assistant", "content": format!("Answer {n}. {}", "so ".repeat(words))}));
    }
    messages.push(json!({"role": "user", "content": "and now?"}));
    json!({"userId": "U1", "displayName": "?", "messages": messages, "lastActiveAt": 0, "approxTokens": 0, "turns": turns})
}

/// A turn of `tools` parallel calls, as Anthropic writes it.
fn tool_turn(tools: usize, size: usize) -> Vec<Value> {
    let calls: Vec<Value> = (0..tools)
        .map(|n| json!({"type": "tool_use", "id": format!("t{n}"), "name": "grep", "input": {"n": n}}))
        .collect();
    let results: Vec<Value> = (0..tools)
        .map(|n| json!({"type": "tool_result", "tool_use_id": format!("t{n}"), "content": "found it ".repeat(size)}))
        .collect();
    vec![
        json!({"role": "user", "content": "look it up"}),
        json!({"role": "assistant", "content": calls}),
        json!({"role": "user", "content": results}),
        json!({"role": "assistant", "content": "there it is"}),
    ]
}

/// What every plan must satisfy, checked on the file and the document alone.
fn check(history: &Value, plan: &Value) {
    let messages = history["messages"].as_array().expect("messages");
    let kept = indexes(&plan["kept"]);
    let dropped = indexes(&plan["dropped"]);
    let mut all: Vec<usize> = kept.iter().chain(&dropped).copied().collect();
    all.sort_unstable();
    assert_eq!(all, (0..messages.len()).collect::<Vec<_>>(), "kept and dropped together are every index");
    if let Some(new) = plan["new_message"].as_u64() {
        assert!(kept.contains(&(new as usize)));
    }
    let blocks = |at: usize, kind: &str| -> Vec<&Value> {
        let content = messages[at]["content"].as_array();
        content.map(|blocks| blocks.iter().filter(|block| block["type"] == kind).collect()).unwrap_or_default()
    };
    for &at in &kept {
        if !blocks(at, "tool_use").is_empty() {
            assert!(kept.contains(&(at + 1)), "message {at} lost its results");
        }
        if !blocks(at, "tool_result").is_empty() {
            assert!(kept.contains(&(at - 1)), "message {at} lost its calls");
        }
    }
    assert!(plan["markers"].as_array().expect("markers").len() <= 1);
    let tokens = &plan["tokens"];
    assert!(tokens["after"].as_u64() <= tokens["before"].as_u64());
}

/// Once, the settings of the home applied, and nothing said so.
#[test]
fn what_was_planned_with_settings_of_the_home_did_not_say_so() {
    let home = Home::new();
    home.write("gateway.json", r#"{"version":1,"policy":{"settings":{"strict":{"seed-cap":900}}}}"#);
    let history = session(3, 10);
    assert_eq!(plan(&home, &history, &[])["settings"], json!({"strict": {"seed-cap": 900}}));
    let path = home.path().join("history.json").display().to_string();
    let shown = home.run(&["plan", "--policy", "strict", "--history", &path], "").ok().stdout;
    assert!(shown.lines().any(|line| line.ends_with("  strict.seed-cap=900")), "{shown}");
    let shown = home.run(&["plan", "--policy", "caps", "--history", &path], "").ok().stdout;
    assert!(!shown.contains("seed-cap"), "{shown}");
}

#[test]
fn strict_keeps_the_seed_and_ten_turns() {
    let home = Home::new();
    let history = session(40, 600);
    let plan = plan(&home, &history, &[]);
    check(&history, &plan);
    let last_turns: Vec<usize> = [0, 1].into_iter().chain(62..83).collect();
    assert_eq!(indexes(&plan["kept"]), last_turns);
    assert_eq!(plan["decided_by"], "strict");
    assert_eq!(plan["new_message"], 82);
    assert_eq!(
        plan["markers"],
        json!([{"before": 62, "turns": 30, "text": "(此處省略 30 輪較舊的對話以節省 context)"}])
    );
    assert_eq!(plan["guard"], json!({"verdict": "accepted", "rules": []}));
    assert_eq!(plan["policy"]["sha256"].as_str().map(str::len), Some(64));
    assert!(plan["cost"]["fuel"].as_u64() > Some(0));
}

#[test]
fn nothing_is_done_below_the_budget() {
    let home = Home::new();
    let history = session(5, 10);
    let plan = plan(&home, &history, &[]);
    check(&history, &plan);
    assert_eq!(plan["dropped"], json!([]));
    assert_eq!(plan["markers"], json!([]));
    assert_eq!(plan["tokens"]["before"], plan["tokens"]["after"]);
}

#[test]
fn a_marker_that_is_there_is_counted_on() {
    let home = Home::new();
    let mut history = session(40, 600);
    let marker = json!({"role": "user", "content": "(此處省略 12 輪較舊的對話以節省 context)"});
    history["messages"].as_array_mut().expect("messages").insert(2, marker);
    let plan = plan(&home, &history, &[]);
    check(&history, &plan);
    assert_eq!(plan["markers"][0]["turns"], 42);
    assert!(indexes(&plan["dropped"]).contains(&2), "the old marker is replaced");
}

#[test]
fn every_budget_down_to_nothing_is_kept() {
    let home = Home::new();
    let mut messages = Vec::new();
    for tools in [1, 3, 10] {
        messages.extend(tool_turn(tools, 200));
    }
    messages.push(json!({"role": "user", "content": "and now?"}));
    let history = json!({"system": "be brief", "messages": messages});
    for budget in [20_000, 6_000, 3_000, 1_500, 700, 300, 100, 20] {
        let plan = plan(&home, &history, &["--budget", &budget.to_string()]);
        check(&history, &plan);
        assert_eq!(plan["tokens"]["limit"], budget);
        assert!(plan["tokens"]["after"].as_u64() <= Some(budget), "{budget}: {plan}");
        assert_eq!(indexes(&plan["legal_cuts"]), [4, 8, 12]);
    }
}

#[test]
fn the_trim_rung_keeps_the_seed_and_the_last_turn() {
    let home = Home::new();
    let history = session(8, 50);
    let plan = plan(&home, &history, &["--force"]);
    check(&history, &plan);
    assert_eq!(indexes(&plan["kept"]), [0, 1, 16, 17, 18]);
    assert_eq!(plan["decided_by"], "trim");
    assert_eq!(plan["markers"][0]["turns"], 7);
}

#[test]
fn broken_pairs_are_left_out_and_told() {
    let home = Home::new();
    let history = json!({"messages": [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "ls", "input": {}}]},
        {"role": "user", "content": "never mind"},
        {"role": "assistant", "content": "ok"},
        {"role": "user", "content": "and now?"},
    ]});
    let path = home.write("history.json", history.to_string()).display().to_string();
    let finished = home.run(&["--json", "plan", "--policy", &component("standard"), "--history", &path], "").ok();
    assert_eq!(finished.json()["dropped"], json!([1]));
    assert!(finished.stderr.contains("message 1: a call of `ls` without a result"), "{}", finished.stderr);
}

#[test]
fn json_lines_and_bad_files() {
    let home = Home::new();
    let lines = "{\"role\":\"user\",\"content\":\"q\"}\n{\"role\":\"assistant\",\"content\":\"a\"}\n";
    let standard = component("standard");
    let run = |content: &str| {
        let path = home.write("history", content).display().to_string();
        home.run(&["--json", "plan", "--policy", &standard, "--history", &path], "")
    };
    let document = run(lines).ok().json();
    assert_eq!((&document["new_message"], &document["kept"]), (&Value::Null, &json!([0, 1])));
    for (content, wanted) in [
        ("", "it is empty"),
        ("{\"messages\":[{\"role\":\"user\"", "it is not JSON"),
        ("{\"role\":\"user\",\"content\":\"q\"}\n{\"role\":", "line 2"),
        ("{\"messages\":7}", "`messages`"),
        ("{\"system\":5,\"messages\":[]}", "its system prompt is neither"),
        ("{\"messages\":[{\"role\":\"wizard\",\"content\":\"q\"}]}", "`wizard`"),
    ] {
        let finished = run(content);
        assert_eq!(finished.status.code(), Some(1), "{content}");
        let error: Value = serde_json::from_str(&finished.stderr).unwrap_or_else(|_| panic!("{}", finished.stderr));
        let message = error["message"].as_str().expect("a message");
        assert!(message.starts_with("the history `") && message.contains(wanted), "{error}");
        assert!(!message.contains("hint"), "{error}");
        assert!(error["hint"].is_string(), "{error}");
    }
    let finished = home.run(&["plan", "--policy", &standard, "--history", "/nowhere"], "");
    assert!(finished.stderr.contains("cannot read the history `/nowhere`"), "{}", finished.stderr);
}

#[test]
fn a_history_of_which_nothing_would_be_sent_is_an_error() {
    let home = Home::new();
    let strict = component("strict");
    for (history, budget, wanted) in [
        (json!([]), "100", "it has no messages"),
        (json!([{"role": "assistant", "content": "hello"}]), "100", "it contains no user message"),
        (
            json!([{"role": "user", "content": "why ".repeat(300)}, {"role": "assistant", "content": "so ".repeat(300)}]),
            "100",
            "it has no new message",
        ),
    ] {
        let path = home.write("history.json", history.to_string()).display().to_string();
        let finished = home.run(&["plan", "--policy", &strict, "--history", &path, "--budget", budget], "");
        assert_eq!(finished.status.code(), Some(1), "{}", finished.stderr);
        assert!(finished.stderr.contains("would be sent: ") && finished.stderr.contains(wanted), "{}", finished.stderr);
        assert!(finished.stderr.contains("\n  hint: "), "{}", finished.stderr);
    }
}

/// The question that the result is for was taken for a stored turn, which a policy could drop.
#[test]
fn a_history_that_ends_with_a_result_was_planned_as_if_nobody_had_asked() {
    let home = Home::new();
    let mut messages: Vec<Value> = (0..8).flat_map(|_| tool_turn(2, 100)).collect();
    messages.pop();
    let history = json!({"messages": messages});
    let plan = plan(&home, &history, &["--budget", "1500"]);
    check(&history, &plan);
    assert_eq!(plan["new_message"], 28);
    let kept = indexes(&plan["kept"]);
    assert!(kept.ends_with(&[28, 29, 30]), "{kept:?}");
    assert!(!kept.contains(&0), "{kept:?}");
}

#[test]
fn the_page_tells_repaired_messages_from_dropped_ones() {
    let home = Home::new();
    let history = json!([
        {"role": "assistant", "content": "hello"},
        {"role": "user", "content": [{"type": "text", "text": "what is this?"}, {"type": "image", "source": {}}]},
        {"role": "assistant", "content": "a cat"},
        {"role": "user", "content": "and now?"},
    ]);
    let path = home.write("history.json", history.to_string()).display().to_string();
    let finished = home.run(&["plan", "--history", &path], "").ok();
    let page: String =
        finished.stdout.lines().filter(|line| !line.starts_with("cost ")).map(|l| format!("{l}\n")).collect();
    let shown = finished.stderr.replace(&format!("{}/", home.path().display()), "") + &page;
    insta::with_settings!({filters => vec![(r"[0-9a-f]{64}", "[sha256]")]}, { insta::assert_snapshot!(shown) });
}

#[test]
fn a_number_of_tokens_is_positive() {
    let home = Home::new();
    for (command, option, value) in [
        ("plan", "--budget", "-5"),
        ("plan", "--budget", "0"),
        ("plan", "--window", "0"),
        ("run", "--window", "-1"),
        ("run", "--window", "0"),
        ("run", "--window", "many"),
    ] {
        let mut arguments = vec![command, option, value];
        if command == "plan" {
            arguments.extend(["--history", "x"]);
        }
        let finished = home.run(&arguments, "");
        assert_eq!(finished.status.code(), Some(2), "{arguments:?}");
        assert!(finished.stderr.contains("expected a whole number of tokens, 1 or more"), "{}", finished.stderr);
        assert!(finished.stderr.contains(&format!("'{value}'")), "{}", finished.stderr);
    }
}

#[test]
fn a_budget_over_the_window_was_planned_for_a_model_that_takes_no_such_prompt() {
    let home = Home::new();
    let path = home.write("history.json", session(3, 100).to_string()).display().to_string();
    let finished = home.run(&["plan", "--history", &path, "--budget", "300000", "--window", "200000"], "");
    assert_eq!(finished.status.code(), Some(1));
    assert!(
        finished.stderr.contains("a budget of 300000 tokens does not fit into a window of 200000"),
        "{}",
        finished.stderr
    );
    assert!(finished.stderr.contains("\n  hint: use a larger `--window`"), "{}", finished.stderr);
    let empty = home.write("empty.json", r#"{"messages":[]}"#).display().to_string();
    let finished = home.run(&["plan", "--history", &empty], "");
    assert!(finished.stderr.ends_with("hint: end the history with a message of role `user`\n"), "{}", finished.stderr);
    // A budget alone is of a model that takes it.
    home.run(&["plan", "--history", &path, "--budget", "300000"], "").ok();
}

#[test]
fn settings_reach_the_policy_in_their_order() {
    let home = Home::new();
    let history = session(40, 100);
    let dropped = |more: &[&str], env: Option<&str>| {
        let path = home.write("history.json", history.to_string()).display().to_string();
        let strict = component("strict");
        let mut arguments = vec!["--json", "plan", "--policy", &strict, "--history", &path];
        arguments.extend(more);
        let mut command = home.command(&arguments);
        if let Some(value) = env {
            command.env("PMK_MAX_SESSION_TOKENS", value);
        }
        let plan = crate::support::finish(command, "").ok().json();
        indexes(&plan["dropped"]).len()
    };
    assert_eq!(dropped(&[], None), 0, "the policy's default");
    assert_eq!(dropped(&[], Some("1000")), 60, "the environment");
    assert_eq!(dropped(&["--set", "strict.max-session-tokens=200000"], Some("1000")), 0, "--set wins");
    assert_eq!(dropped(&[], Some("-3")), 0, "an invalid variable falls back to the default");
    home.write("gateway.json", r#"{"version":1,"policy":{"settings":{"strict":{"max-session-tokens":1000}}}}"#);
    assert_eq!(dropped(&[], None), 60, "gateway.json");
    assert_eq!(dropped(&[], Some("200000")), 0, "the environment goes before gateway.json");
}

#[test]
fn the_shipped_fixtures_hold_on_both_policies() {
    let home = Home::new();
    let folder = repository("tests/fixtures");
    let mut seen = 0;
    for file in std::fs::read_dir(folder).expect("the fixtures") {
        let path = file.expect("readable").path();
        let history: Value = serde_json::from_str(&std::fs::read_to_string(&path).expect("a file")).expect("JSON");
        for policy in ["standard", "strict"] {
            for budget in ["50000", "4000", "800"] {
                let policy = component(policy);
                let path = path.display().to_string();
                let arguments = ["--json", "plan", "--policy", &policy, "--history", &path, "--budget", budget];
                let finished = home.run(&arguments, "");
                let plan = finished.json();
                check(&history, &plan);
                let code = if plan["kept"] == json!([]) { 1 } else { 0 };
                assert_eq!(finished.status.code(), Some(code), "{arguments:?}: {}", finished.stderr);
                seen += 1;
            }
        }
    }
    assert!(seen >= 12, "{seen}");
}

/// Once, `strict` and `rolling-summary` went from 102,686 tokens to 39, and `recall` made room that nothing needed.
#[test]
fn no_policy_of_ours_leaves_almost_nothing_where_more_would_fit() {
    let home = Home::new();
    let planned = |policy: &str, fixture: &str| {
        let history = repository("tests/fixtures").join(fixture).display().to_string();
        let arguments = ["--json", "plan", "--policy", &component(policy), "--history", &history, "--budget", "8000"];
        home.run(&arguments, "").ok().json()
    };
    for policy in ["standard", "strict", "rolling-summary", "tool-lean", "recall"] {
        let tokens = planned(policy, "tool-heavy-en.json")["tokens"]["after"].as_u64().expect("a number");
        assert!((2_000..=8_000).contains(&tokens), "`{policy}` leaves {tokens} tokens");
        let fits = planned(policy, "marker-and-giant-mixed.json");
        assert_eq!((fits["kept"].as_array().map(Vec::len), &fits["dropped"]), (Some(20), &json!([])), "{policy}");
    }
}

#[test]
fn a_wish_to_compact_is_shown() {
    let home = Home::new();
    let history = home.write("history.json", session(40, 60).to_string()).display().to_string();
    let rolling = component("rolling-summary");
    let arguments = ["plan", "--policy", &rolling, "--history", &history, "--budget", "4000"];
    let page = home.run(&arguments, "").ok().stdout;
    let document = home.run(&[&["--json"], &arguments[..]].concat(), "").ok().json();
    let [from, to] = [0, 1].map(|at| document["compact"][at].as_u64().unwrap_or_else(|| panic!("{document:#}")));
    assert!(from == 2 && to < 80, "{from} to {to}");
    assert!(page.contains(&format!("\ncompact   the model is asked to summarize {from} to {to} first;")), "{page}");
    let without = plan(&home, &session(2, 5), &[]);
    assert_eq!(without["compact"], json!(null));
}

/// Once, only what came of it was shown.
#[test]
fn what_a_policy_looks_up_in_the_archive_is_shown() {
    let home = Home::new();
    let mut history = session(60, 60);
    *history["messages"].as_array_mut().expect("messages").last_mut().expect("the last") =
        json!({"role": "user", "content": "what was the answer to question 7?"});
    let history = home.write("history.json", history.to_string()).display().to_string();
    let arguments = ["plan", "--policy", "recall", "--history", &history, "--budget", "4000"];
    let page = home.run(&arguments, "").ok().stdout;
    let document = home.run(&[&["--json"], &arguments[..]].concat(), "").ok().json();
    let archive = &document["archive"];
    let found = indexes(&archive["found"]);
    assert!(found.contains(&16), "{document:#}");
    let told = format!("archive   searches: {}, found: {}, texts shown: ", archive["searches"], found.len());
    assert!(page.contains(&told), "{page}");
    let without = plan(&home, &session(2, 5), &[]);
    assert_eq!(without["archive"], json!({"searches": 0, "found": [], "texts_read": 0}));
}

/// Once, nothing showed that it was loaded.
#[test]
fn a_policy_that_decides_something_else_is_shown_to_be_loaded() {
    let home = Home::new();
    let history = home.write("history.json", session(3, 5).to_string()).display().to_string();
    for (name, exports) in [("caps", "cap"), ("facts-summary", "summarize")] {
        let arguments = ["plan", "--policy", &component(name), "--history", &history];
        let page = home.run(&arguments, "").ok().stdout;
        let (first, second) = page.split_once('\n').expect("lines");
        assert!(first.starts_with(&format!("loaded    {name} ")), "{page}");
        assert!(first.ends_with(&format!(", not asked here: it exports {exports}")), "{page}");
        assert!(second.starts_with("policy    standard "), "{page}");
        let document = home.run(&[&["--json"], &arguments[..]].concat(), "").ok().json();
        assert_eq!(document["not_asked"][0]["policy"]["name"], name, "{document:#}");
    }
    assert_eq!(plan(&home, &session(3, 5), &[])["not_asked"], json!([]));
}

/// Once, what was wrong with the lower one was told nowhere, and machines were told of neither.
#[test]
fn of_several_layers_that_were_refused_only_the_top_one_was_told() {
    let home = Home::new();
    let history = home.write("history.json", session(3, 5).to_string()).display().to_string();
    // Half of the first turn after the seed.
    let tears = "(call $remove (local.get $plan) (i32.const 2) (i32.const 3))";
    // Of another name, as two layers have.
    let describe = "(call $name (local.get $description) (i32.const 0) (i32.const 3))
        (call $version (local.get $description) (i32.const 8) (i32.const 3))";
    let lower = home.write("lower.wasm", Component::pruning(tears).build()).display().to_string();
    let upper = Component::pruning("unreachable").export("describe", describe).build();
    let upper = home.write("upper.wasm", upper).display().to_string();
    let arguments = ["plan", "--policy", &lower, "--policy", &upper, "--history", &history];
    let page = home.run(&arguments, "").ok().stdout;
    let guard: Vec<&str> = page.lines().filter(|line| line.starts_with("guard ")).collect();
    assert_eq!(guard.len(), 2, "{page}");
    assert!(guard[0].starts_with("guard     rejected `tes`: guard rule 8: "), "{page}");
    assert!(guard[1].starts_with("guard     rejected `test`: guard rule 1: only a part of the turn"), "{page}");
    assert!(page.contains("\ndecided   by standard\n"), "{page}");
    let document = home.run(&[&["--json"], &arguments[..]].concat(), "").ok().json();
    let asked = document["layers"].as_array().expect("the layers that were asked");
    let told = |at: usize| (&asked[at]["name"], &asked[at]["outcome"], &asked[at]["rule"]);
    assert_eq!(asked.len(), 3, "{document:#}");
    assert_eq!(told(0), (&json!("tes"), &json!("failed"), &json!(8)));
    assert_eq!(told(1), (&json!("test"), &json!("rejected"), &json!(1)));
    assert_eq!(asked[2], json!({"name": "standard", "outcome": "accepted", "rule": null, "text": null}));
    assert!(asked[1]["text"].as_str().is_some_and(|text| text.starts_with("only a part of the turn")), "{document:#}");
}
