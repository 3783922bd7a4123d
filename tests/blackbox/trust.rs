//! What operators can rely on: only what they allow is loaded, within the limits they set, and a policy that keeps
//! failing is passed by.

use serde_json::{Value, json};

use crate::{
    component::{Component, DATA},
    health::signal,
    support::{Home, Running, component, of_type, question, replies, repository},
};

fn configure(home: &Home, policy: Value) {
    home.write(
        "gateway.json",
        json!({"version": 1, "policy": policy, "admins": ["UADMIN"], "language": "en"}).to_string(),
    );
}

/// A component that prunes in this way, and calls itself `test`.
fn path(home: &Home, prune: &str) -> String {
    home.write("test.wasm", Component::pruning(prune).build()).display().to_string()
}

/// What a start says, without what changes from build to build.
fn refused(home: &Home, more: &[&str]) -> String {
    let finished = home.run(&[&["run", "--model", "sim"], more].concat(), "");
    assert_eq!(finished.status.code(), Some(1), "{}", finished.stderr);
    let errors: Vec<&str> = finished.stderr.lines().skip_while(|line| !line.starts_with("error")).collect();
    errors.join("\n") + "\n"
}

macro_rules! assert_refusals {
    ($home:expr, $shown:expr) => {
        insta::with_settings!({filters => vec![
            (r"[0-9a-f]{64}", "[sha256]"),
            (regex::escape($home.path().to_str().expect("UTF-8")).as_str(), "[home]"),
            (regex::escape(repository("plugins").to_str().expect("UTF-8")).as_str(), "[plugins]"),
        ]}, { insta::assert_snapshot!($shown) })
    };
}

#[test]
fn only_what_is_allowed_is_loaded() {
    let home = Home::new();
    let strict = component("strict");
    let sha256 = home.run(&["--json", "policy", "inspect", &strict], "").ok().json()["sha256"].clone();
    configure(&home, json!({"allow": []}));
    let ask = |more: &[&str]| {
        let turn = home.run(&[&["run", "--model", "sim"], more].concat(), &question("Ev1", "hello")).ok().lines();
        turn.iter().find(|line| line["type"] == "turn").expect("a turn")["policy"]["name"].clone()
    };
    assert_eq!(ask(&[]), "standard", "the embedded one is always allowed");
    let home_of_its_own = |policy: Value| {
        let home = Home::new();
        configure(&home, policy);
        home
    };
    let embedded = home_of_its_own(json!({"allow": []}));
    let from_a_file = embedded.run(&["run", "--model", "sim", "--policy", &component("standard")], "");
    assert!(from_a_file.status.success(), "from a file, too: {}", from_a_file.stderr);
    let shown = refused(&home, &["--policy", &strict]);

    let mut gateway = Running::start(home.command(&["run", "--model", "sim"]));
    assert!(gateway.say(&question("Ev2", "hello")));
    gateway.next_of("turn");
    let not_swapped = home.run(&["policy", "use", &strict], "");
    assert_eq!(not_swapped.status.code(), Some(1));
    assert_eq!(not_swapped.stderr, shown, "a swap is refused with the same words");
    // gateway.json is read anew for each swap.
    configure(&home, json!({"allow": [sha256.as_str().expect("a digest").to_uppercase()]}));
    home.run(&["policy", "use", &strict], "").ok();
    home.run(&["policy", "use", "--previous"], "").ok();
    configure(&home, json!({"allow": []}));
    let back = home.run(&["policy", "use", "--previous"], "");
    assert!(back.stderr.contains("policy `strict` is not allowed"), "thought better of it: {}", back.stderr);
    assert_refusals!(home, shown);
}

/// Regression: for the moment in which an editor replaced the file, everything was allowed, and what got in stayed.
#[test]
fn a_swap_while_gateway_json_was_missing_went_by_the_defaults() {
    let home = Home::new();
    configure(&home, json!({"allow": []}));
    let mut gateway = Running::start(home.command(&["run", "--model", "sim"]));
    assert!(gateway.say(&question("Ev1", "hello")));
    gateway.next_of("turn");
    let (file, aside) = (home.path().join("gateway.json"), home.path().join("gateway.json.aside"));
    std::fs::rename(&file, &aside).expect("it is there");
    let not_swapped = home.run(&["policy", "use", &component("strict")], "");
    assert_eq!(not_swapped.status.code(), Some(1), "{}", not_swapped.stdout);
    assert!(
        not_swapped.stderr.contains("no longer exists, and the gateway goes by what it said\n"),
        "{}",
        not_swapped.stderr
    );
    assert!(not_swapped.stderr.contains("\n  hint: put it back"), "{}", not_swapped.stderr);
    signal(gateway.pid(), "HUP");
    let refused = home.await_events("policy.refused", 2);
    assert_eq!((&refused[0]["by"], &refused[1]["by"]), (&json!("command"), &json!("signal")));
    std::fs::rename(&aside, &file).expect("it is there");
    let not_allowed = home.run(&["policy", "use", &component("strict")], "");
    assert!(not_allowed.stderr.contains("is not allowed: its sha256"), "{}", not_allowed.stderr);
    assert!(home.events("policy.swapped").is_empty());
    gateway.end();
}

#[test]
fn imports_beyond_the_contract_can_be_refused() {
    let home = Home::new();
    let curious = path(&home, "(if (i32.const 0) (then (drop (call $now))))");
    let plan = |more: &[&str]| {
        let history = repository("tests/fixtures/tool-heavy-en.json").display().to_string();
        home.run(&[&["plan", "--history", &history, "--policy", &curious], more].concat(), "")
    };
    plan(&[]).ok();
    let by_argument = refused(&home, &["--policy", &curious, "--no-wasi"]);
    assert_eq!(plan(&["--no-wasi"]).stderr, by_argument);
    configure(&home, json!({"noWasi": true}));
    assert_eq!(refused(&home, &["--policy", &curious]), by_argument);
    assert!(home.run(&["run", "--model", "sim", "--policy", &component("strict")], "").status.success());
    assert_refusals!(home, by_argument);
}

/// Regression: a setting for that name was meant for both, and who declared it not was refused whatever was set.
#[test]
fn two_layers_of_one_name_were_accepted() {
    let home = Home::new();
    let one = path(&home, "unreachable");
    let other = home.write("other.wasm", Component::pruning("").build()).display().to_string();
    for (layers, name) in [([one.as_str(), &other], "test"), (["strict", "strict"], "strict")] {
        let shown = refused(&home, &["--policy", layers[0], "--policy", layers[1]]);
        assert!(shown.starts_with(&format!("error: two of the policies are called `{name}`: sha256 ")), "{shown}");
        assert!(shown.contains("\n  hint: load each policy once; "), "{shown}");
    }
}

/// Regression: the error did not say which files.
#[test]
fn two_layers_of_one_name_were_not_told_apart() {
    let home = Home::new();
    let one = path(&home, "unreachable");
    let other = home.write("other.wasm", Component::pruning("").build()).display().to_string();
    let shown = refused(&home, &["--policy", &one, "--policy", &other]);
    for policy in [&one, &other] {
        let inspected = home.run(&["--json", "policy", "inspect", policy], "").ok().json();
        assert!(shown.contains(inspected["sha256"].as_str().expect("a digest")), "{shown}");
    }
}

#[test]
fn limits_are_settings() {
    let home = Home::new();
    let hungry = path(&home, "(loop $l (br $l))");
    configure(&home, json!({"limits": {"fuelBase": 1_000_000, "fuelPerMessage": 0, "fuelPerToken": 0}}));
    home.run(&["run", "--model", "sim", "--policy", &hungry], &question("Ev1", "hello")).ok();
    let failed = home.ledger().into_iter().find(|event| event["type"] == "policy.failed").expect("a failure");
    assert_eq!(failed["reason"], "used up its 1000000 units of fuel");

    let mut shown = String::new();
    for limits in [json!({"memoryMiB": 0}), json!({"fuel": 1}), json!({"wallMs": 1}), json!({"logBytes": "many"})] {
        configure(&home, json!({"limits": limits}));
        shown += &refused(&home, &[]);
    }
    configure(&home, json!({"allow": ["strict"]}));
    shown += &refused(&home, &[]);
    assert_refusals!(home, shown);
}

/// Regression: what the gateway stopped passed, and the other way round, because these went by the default limits.
#[test]
fn what_the_authors_commands_try_has_the_limits_of_the_home() {
    let home = Home::new();
    configure(&home, json!({"limits": {"fuelBase": 1_000_000, "fuelPerMessage": 0, "fuelPerToken": 0}}));
    let checked = home.run(&["policy", "check", &path(&home, "(loop $l (br $l))")], "");
    assert!(checked.stdout.contains("used up its 1000000 units of fuel"), "{}", checked.stdout);
}

#[test]
fn a_policy_that_keeps_failing_is_suspended_and_tried_again() {
    let home = Home::new();
    configure(&home, json!({}));
    let broken = path(&home, "unreachable");
    let input: Vec<String> = (0..30).map(|n| question(&format!("Ev{n}"), &format!("question {n}"))).collect();
    let lines = home.run(&["run", "--model", "sim", "--policy", &broken], &input.join("\n")).ok().lines();
    let turns: Vec<&Value> = lines.iter().filter(|line| line["type"] == "turn").collect();
    assert_eq!(turns.len(), 30);
    assert!(turns.iter().all(|turn| turn["policy"]["name"] == "standard"), "{turns:#?}");

    let ledger = home.ledger();
    let of = |kind: &str| ledger.iter().filter(|event| event["type"] == kind).cloned().collect::<Vec<_>>();
    // Five failures, twenty turns without it, one trial that fails.
    assert_eq!(of("policy.failed").len(), 6, "{ledger:#?}");
    let suspended = of("policy.suspended");
    assert_eq!(suspended.len(), 1);
    assert_eq!((&suspended[0]["policy"], &suspended[0]["decision"]), (&json!("test"), &json!("prune")));
    assert_eq!((&suspended[0]["failures"], &suspended[0]["pause"]), (&json!(5), &json!(20)));
    let told: Vec<&Value> = lines.iter().filter(|line| line["channel"] == "UADMIN").collect();
    assert_eq!(told.len(), 1, "{lines:#?}");
    insta::assert_snapshot!(told[0]["text"].as_str().expect("a text"));

    // Decisions on paper are not held against anybody, and hold nothing against anybody.
    let history = repository("tests/fixtures/tool-heavy-en.json").display().to_string();
    for _ in 0..2 {
        let plan = home.run(&["--json", "plan", "--policy", &broken, "--history", &history], "").ok().json();
        assert_eq!((&plan["guard"]["verdict"], &plan["decided_by"]), (&json!("rejected"), &json!("standard")));
    }
}

/// Regression: the ledger kept, and all admins were sent, the last words of a policy, in which it may quote whoever it
/// decides for.
#[test]
fn what_a_failing_policy_quoted_was_kept_and_sent_to_the_admins() {
    let home = Home::new();
    configure(&home, json!({}));
    let said = "The launch is on Friday.";
    let quoting = format!("(call $log (i32.const 1) (i32.const {DATA}) (i32.const {})) unreachable", said.len());
    let policy = home.write("test.wasm", Component::pruning(&quoting).data(said).build()).display().to_string();
    let mut gateway = Running::start(home.command(&["run", "--model", "sim", "--policy", &policy]));
    let mut lines = Vec::new();
    for n in 0..5 {
        assert!(gateway.say(&question(&format!("Ev{n}"), &format!("question {n}"))));
        while of_type(&lines, "turn").len() == n {
            lines.push(gateway.next().expect("a line"));
        }
    }
    let status = home.run(&["--json", "status"], "").ok().json();
    assert!(status["suspended"][0]["reason"].as_str().is_some_and(|reason| reason.contains(said)), "{status:#}");
    lines.extend(gateway.end().1);
    let told: Vec<&Value> = lines.iter().filter(|line| line["channel"] == "UADMIN").collect();
    assert_eq!(told.len(), 1, "{lines:#?}");
    let ledger = home.ledger();
    let of_policies = ["policy.failed", "policy.suspended"].map(|kind| of_type(&ledger, kind));
    let kept: Vec<&Value> = of_policies.iter().flatten().copied().collect();
    assert_eq!(kept.len(), 6, "five failures and a suspension: {ledger:#?}");
    for reason in kept.iter().map(|event| &event["reason"]).chain([&told[0]["text"]]) {
        assert!(reason.as_str().is_some_and(|reason| reason.contains("instruction executed (in prune")), "{reason}");
    }
    assert!(!ledger.iter().chain(told).any(|line| line.to_string().contains(said)), "{ledger:#?}");
}

/// Regression: `/pmk policy` and `status` listed it as if it decided; only the ledger and the log told. Then
/// `/pmk policy` told everybody its last failure, in which a policy may quote somebody else's conversation.
#[test]
fn a_suspended_policy_was_shown_as_deciding() {
    let home = Home::new();
    configure(&home, json!({}));
    let broken = path(&home, "unreachable");
    let mut gateway = Running::start(home.command(&["run", "--model", "sim", "--policy", &broken]));
    for n in 0..6 {
        assert!(gateway.say(&question(&format!("Ev{n}"), &format!("question {n}"))));
        gateway.next_of("turn");
    }
    let status = home.run(&["--json", "status"], "").ok().json();
    assert_eq!((&status["level"], &status["suspended"].as_array().map(Vec::len)), (&json!("healthy"), &Some(1)));
    let suspended = &status["suspended"][0];
    assert_eq!((&suspended["policy"]["name"], &suspended["decision"]), (&json!("test"), &json!("prune")));
    assert_eq!(suspended["left"], 19);
    assert!(suspended["reason"].as_str().is_some_and(|reason| reason.starts_with("trapped: ")), "{suspended}");
    let said = "`test 1.0` is suspended: the next one decides `prune`; it is tried again after 19 more decisions";
    let shown = home.run(&["status"], "").ok().stdout;
    assert!(shown.contains(&format!("{said}; its last failure: `trapped: ")), "{shown}");
    assert!(gateway.say(&question("EvP", "/pmk policy")));
    let (_, lines) = gateway.end();
    let replies = replies(&lines);
    assert!(replies.iter().any(|reply| reply.contains(said)), "{lines:#?}");
    assert!(!replies.iter().any(|reply| reply.contains("trapped")), "{lines:#?}");
}

#[test]
fn what_a_policy_is_shown_is_told() {
    let home = Home::new();
    let read = "(call $text (local.get $transcript) (i32.const 1) (i32.const 0) (i32.const 7) (i32.const 256)) \
                (call $text (local.get $transcript) (i32.const 1) (i32.const 2) (i32.const 3) (i32.const 256)) \
                (call $text (local.get $transcript) (i32.const 999) (i32.const 0) (i32.const 7) (i32.const 256))";
    let reader = path(&home, read);
    let history = repository("tests/fixtures/tool-heavy-en.json").display().to_string();
    let plan = |policy: &str| home.run(&["--json", "plan", "--policy", policy, "--history", &history], "").ok().json();
    assert_eq!(plan(&reader)["texts_read"], json!([{"index": 1, "chars": 10}]));
    let page = home.run(&["plan", "--policy", &reader, "--history", &history], "").ok().stdout;
    assert!(page.contains("texts     1 shown to it, 10 characters\n"), "{page}");
    assert_eq!(plan(&component("strict"))["texts_read"], json!([]), "it decides by numbers alone");

    let input = [question("Ev1", "The launch is on Friday."), question("Ev2", "When is it?")].join("\n");
    home.run(&["run", "--model", "sim", "--policy", &reader], &input).ok();
    let ledger = home.ledger();
    let shown: Vec<&Value> = ledger.iter().filter(|event| event["type"] == "policy.read").collect();
    // In the first turn there is no second message.
    assert_eq!(shown.len(), 1, "{ledger:#?}");
    assert_eq!((&shown[0]["policy"], &shown[0]["texts"], &shown[0]["chars"]), (&json!("test"), &json!(1), &json!(10)));
    assert!(!ledger.iter().any(|event| event.to_string().contains("launch")), "never the text itself");
}

#[test]
fn what_a_policy_looks_up_in_the_archive_is_told() {
    let home = Home::new();
    let filler = (1..40).map(|n| format!("Note {n}: {}", "the warehouse counts its boxes again. ".repeat(25)));
    let said = std::iter::once("The launch of Falcon is on Friday.".to_owned()).chain(filler);
    let input: Vec<String> = said
        .chain(["When is the launch of Falcon?".to_owned()])
        .enumerate()
        .map(|(n, text)| question(&format!("Ev{n}"), &text))
        .collect();
    home.run(&["run", "--model", "sim", "--window", "8000", "--policy", &component("recall")], &input.join("\n")).ok();
    let ledger = home.ledger();
    let read: Vec<&Value> = ledger.iter().filter(|event| event["type"] == "policy.read").collect();
    assert!(read.iter().any(|event| event["archiveSearches"].as_u64() > Some(0)), "{read:#?}");
    assert!(!ledger.iter().any(|event| event.to_string().contains("Falcon")), "never the text itself");
}
