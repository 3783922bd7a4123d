//! What authors of policies have at the desk: projects, checks, golden files, benchmarks.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

use pmk_stand_ins::not_run;
use serde_json::{Value, json};

use crate::{
    component::{Component, DATA},
    homes::{SOMEBODY_ELSE, heeding_modes, is_root},
    readers::in_chinese,
    support::{Home, component, finish, repository},
};

mod broken;
mod dev;

/// Digests and costs change with the compiler.
const CHANGING: [(&str, &str); 3] = [
    (r"[0-9a-f]{64}", "[sha256]"),
    (r"at most .* of 128 MB", "at most [cost] of 128 MB"),
    (r"最多用了 .* 的燃料，以及 128 MB 記憶體中的 .* MB", "最多用了 [cost]"),
];

#[test]
fn a_sound_policy_passes_every_check() {
    let home = Home::new();
    let fixtures = repository("tests/fixtures").display().to_string();
    let shown = home.run(&["policy", "check", &component("strict"), "--history", &fixtures], "").ok().stdout;
    insta::with_settings!({filters => CHANGING.to_vec()}, { insta::assert_snapshot!(shown) });
    let document = home.run(&["--json", "policy", "check", &component("strict")], "").ok().json();
    assert_eq!(document["failed"], 0, "{document:#}");
    assert!(document["asked"].as_u64() > Some(1_000), "{document:#}");
    assert!(document["checks"].as_array().expect("checks").iter().any(|check| check["name"] == "the same twice"));
}

#[test]
fn an_unsound_policy_is_found_out_with_what_shows_it() {
    let home = Home::new();
    let (mut shown, mut chinese) = (String::new(), String::new());
    for (name, policy) in [("tears", broken::tears()), ("panics", broken::panics())] {
        let path = home.write(&format!("{name}.wasm"), policy.build()).display().to_string();
        let finished = home.run(&["policy", "check", &path], "");
        assert_eq!(finished.status.code(), Some(1), "{name}: {}", finished.stderr);
        shown.push_str(&format!("== {name}\n{}{}", finished.stdout, finished.stderr));
        chinese.push_str(&in_chinese(&home, &["policy", "check", &path]));
        let document = home.run(&["--json", "policy", "check", &path], "").json();
        let first = document["checks"].as_array().expect("checks").iter().find_map(|check| check.get("first"));
        assert!(first.is_some_and(|first| first["hint"].is_string()), "{document:#}");
    }
    let shown = shown.replace(&format!("{}/", home.path().display()), "");
    insta::with_settings!({filters => CHANGING.to_vec()}, {
        insta::assert_snapshot!(shown);
        insta::assert_snapshot!("an_unsound_policy_in_chinese", chinese);
    });
}

/// Of 25 bad answers of a kind, only the first said why.
#[test]
fn other_reasons_than_the_first_were_not_shown() {
    let home = Home::new();
    let path = home.write("tears.wasm", broken::tears().build()).display().to_string();
    let page = home.run(&["policy", "check", &path], "").stdout;
    let document = home.run(&["--json", "policy", "check", &path], "").json();
    let checks = document["checks"].as_array().expect("checks");
    let prune = checks.iter().find(|check| check["name"] == "prune").expect("it prunes");
    let reasons = prune["reasons"].as_array().expect("reasons");
    assert!(reasons.len() > 1, "{document:#}");
    assert_eq!(reasons.iter().filter_map(|reason| reason["count"].as_u64()).sum::<u64>(), 25, "{document:#}");
    for reason in reasons {
        let [count, why] = ["count", "reason"].map(|name| reason[name].to_string());
        assert!(page.contains(&format!("  {count} × ")) && page.contains(why.trim_matches('"')), "{reason}: {page}");
    }
}

#[test]
fn a_panic_shows_its_message_and_where_it_was() {
    let home = Home::new();
    let bytes = broken::panics().build();
    let policy = home.write("panics.wasm", bytes).display().to_string();
    let history = repository("tests/fixtures/tool-heavy-en.json").display().to_string();
    let page = home.run(&["plan", "--policy", &policy, "--history", &history], "").ok().stdout;
    assert!(page.contains("log       error: no such turn\n") && page.contains("at        policy::inner\n"), "{page}");
    let plan = home.run(&["--json", "plan", "--policy", &policy, "--history", &history], "").ok().json();
    assert_eq!(plan["backtrace"][0], "policy::inner", "{plan:#}");
    home.write("case.json", json!({"history": [{"role": "user", "content": "q"}]}).to_string());
    let folder = home.path().display().to_string();
    let tested = home.run(&["policy", "test", &policy, "--cases", &folder], "");
    assert!(tested.stdout.contains("no such turn (in policy::inner"), "{}", tested.stdout);
}

/// Regression: a warning looked like any other line, nothing said that a log was longer, and a digest was a shortening.
#[test]
fn a_plan_lost_the_levels_and_the_end_of_a_log_and_called_a_digest_a_shortening() {
    let home = Home::new();
    let component = Component::pruning(&format!(
        "(call $digest (local.get $plan) (i32.const 0)) \
         (call $log (i32.const 2) (i32.const {DATA}) (i32.const 9)) \
         (memory.fill (i32.const 65536) (i32.const 120) (i32.const 500000)) \
         (call $log (i32.const 3) (i32.const 65536) (i32.const 500000))"
    ));
    let policy = home.write("talks.wasm", component.data("low water").build()).display().to_string();
    let long = "a line of a long listing\n".repeat(200);
    let said = |role: &str, content: &str| json!({"role": role, "content": content});
    let history = json!([said("user", &long), said("assistant", "noted"), said("user", "how long is it?")]);
    let history = home.write("history.json", history.to_string()).display().to_string();
    let page = home.run(&["plan", "--policy", &policy, "--history", &history], "").ok().stdout;
    let cut = "\nlog       the rest is dropped: of each decision, only a limited log is kept\n";
    for expected in ["\ndigested 0: ", "\nlog       warn: low water\n", "\nlog       info: xxx", cut] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    let plan = home.run(&["--json", "plan", "--policy", &policy, "--history", &history], "").ok().json();
    assert_eq!((&plan["log"][0]["level"], &plan["log_is_cut"]), (&json!("warn"), &json!(true)));
}

#[test]
fn histories_that_are_none_are_named() {
    let home = Home::new();
    let empty = home.path().join("empty");
    std::fs::create_dir(&empty).expect("a folder");
    let bad = home.write("bad.json", "{\"messages\": 7}");
    let nobody = home.write("nobody.json", "[{\"role\": \"assistant\", \"content\": \"hello\"}]");
    let mut shown = String::new();
    for path in [&empty, &bad, &nobody, &home.path().join("missing.json")] {
        let arguments = ["policy", "check", &component("strict"), "--history", &path.display().to_string()];
        let finished = home.run(&arguments, "");
        assert_eq!((finished.status.code(), finished.stdout.as_str()), (Some(1), ""));
        shown.push_str(&finished.stderr);
    }
    insta::assert_snapshot!(shown.replace(&format!("{}/", home.path().display()), ""));
}

/// Once, an export was not read although `compare` reads it, and a subfolder was passed over.
#[test]
fn a_check_read_other_histories_than_a_comparison() {
    let home = Home::new();
    let asked = json!({"text": "hello", "user": "U9", "channel": "D9", "event_id": "Ev1"});
    home.run(&["run", "--model", "sim"], &format!("{asked}\n")).ok();
    let histories = home.path().join("histories");
    std::fs::create_dir_all(histories.join("more")).expect("a folder");
    let export = histories.join("all.jsonl").display().to_string();
    home.run(&["sessions", "export", "--all", "--to", &export], "").ok();
    let lines = ["q", "and now?"].map(|text| json!({"role": "user", "content": text}).to_string());
    home.write("histories/more/one.ndjson", lines.join("\n"));
    let broken = home.write("histories/broken.json", "{\"messages\": 7}").display().to_string();
    let check = |path: &str| {
        let finished = home.run(&["--json", "policy", "check", &component("strict"), "--history", path], "").ok();
        let names = finished.json()["histories"].as_array().expect("histories").clone();
        let own = names.into_iter().filter(|name| name.as_str().is_some_and(|name| name.contains(['/', ':'])));
        (own.collect::<Vec<_>>(), finished.stderr)
    };
    assert_eq!(check(&export), (vec![json!("console:dm:U9")], String::new()));
    let (names, told) = check(&histories.display().to_string());
    let one = histories.join("more/one.ndjson").display().to_string();
    assert_eq!(names, [json!("console:dm:U9"), json!(one)]);
    assert!(told.contains(&broken), "{told}");
}

/// Regression: of the second, it was said that there are no histories in it.
#[test]
fn a_check_of_two_exports_of_one_store_failed_for_a_reason_that_was_untrue() {
    let home = Home::new();
    let asked = json!({"text": "hello", "user": "U9", "channel": "D9", "event_id": "Ev1"});
    home.run(&["run", "--model", "sim"], &format!("{asked}\n")).ok();
    let exports = ["a.jsonl", "b.jsonl"].map(|name| home.path().join(name).display().to_string());
    for export in &exports {
        home.run(&["sessions", "export", "--all", "--to", export], "").ok();
    }
    let [one, other] = &exports;
    let arguments = ["policy", "check", &component("strict"), "--history", one, "--history", other];
    let told = home.run(&arguments, "").ok().stderr;
    assert!(told.contains(&format!("the copy in `{other}` is left out")), "{told}");
}

/// The guard lets a plan through that leaves 39 of 8,000 tokens; its author should know.
#[test]
fn an_author_is_warned_of_plans_that_leave_almost_nothing() {
    let home = Home::new();
    let history = repository("tests/fixtures/tool-heavy-en.json").display().to_string();
    let check = |policy: &str| home.run(&["--json", "policy", "check", policy, "--history", &history], "").ok().json();
    let prune = |report: &Value| {
        report["checks"].as_array().and_then(|checks| checks.iter().find(|it| it["name"] == "prune").cloned())
    };
    let older = check(&repository("tests/contract-1.0.0/strict.wasm").display().to_string());
    let wasteful = prune(&older).expect("it prunes")["wasteful"].clone();
    assert!(wasteful["plans"].as_u64().is_some_and(|plans| plans > 0), "{older:#}");
    let now = check(&component("strict"));
    assert_eq!(prune(&now).expect("it prunes")["wasteful"], Value::Null, "{now:#}");
}

/// A folder of cases of each kind for `standard`, none of them with an answer yet.
fn cases(home: &Home) -> String {
    let folder = home.path().join("cases");
    std::fs::create_dir_all(folder.join("histories")).expect("folders");
    let fixture = repository("tests/fixtures/tool-heavy-en.json");
    std::fs::copy(fixture, folder.join("histories/tools.json")).expect("a copy");
    for (name, case) in [
        ("1-tools", json!({"history": "histories/tools.json", "budget": 8_000})),
        ("2-inline", json!({"about": "all of it fits", "history": [{"role": "user", "content": "q"}]})),
        (
            "3-cap",
            json!({"decision": "cap", "incoming": {"kind": "mra-result", "text": "found\n", "repeat": 10_000},
                   "settings": {"mra-result-cap": 1_000}}),
        ),
        (
            "4-recover",
            json!({"decision": "recover", "overflow": {"tried": ["trim"], "available": ["compact", "rotate"]}}),
        ),
        ("5-summary", json!({"decision": "summarize", "history": "histories/tools.json", "budget": 60})),
    ] {
        std::fs::write(folder.join(format!("{name}.json")), case.to_string()).expect("a case");
    }
    folder.display().to_string()
}

#[test]
fn golden_files_are_blessed_and_compared() {
    let home = Home::new();
    let (standard, folder) = (component("standard"), cases(&home));
    let test = |more: &[&str]| home.run(&[&["policy", "test", &standard, "--cases", &folder], more].concat(), "");
    let unknown = test(&[]);
    assert_eq!(unknown.status.code(), Some(1), "nothing is expected yet");
    let mut shown = test(&["--bless"]).ok().stdout;
    assert_eq!(test(&[]).ok().stdout.matches("ok      ").count(), 5);

    let path = format!("{folder}/1-tools.json");
    let written: Value = serde_json::from_str(&std::fs::read_to_string(&path).expect("the case")).expect("JSON");
    assert_eq!(
        (&written["history"], &written["expect"]["outcome"]),
        (&json!("histories/tools.json"), &json!("accepted"))
    );
    let mut edited = written.clone();
    edited["expect"]["kept"] = json!("0-3");
    edited["expect"]["marker"] = json!("gone");
    std::fs::write(&path, edited.to_string()).expect("the case");
    let otherwise = test(&[]);
    assert_eq!(otherwise.status.code(), Some(1));
    shown.push_str(&format!("== edited\n{}{}", otherwise.stdout, otherwise.stderr));
    let document = test(&["--json"]).json();
    assert_eq!(document["failed"], 1, "{document:#}");
    assert_eq!(document["cases"][0]["differences"][0]["expected"], "0-3", "{document:#}");

    test(&["--bless"]).ok();
    let again: Value = serde_json::from_str(&std::fs::read_to_string(&path).expect("the case")).expect("JSON");
    assert_eq!(again, written, "blessed again");
    insta::assert_snapshot!(shown.replace(&standard, "plugins/standard.wasm"));
}

/// Once, the cases before it were written, and nothing said so.
#[test]
fn an_invalid_case_left_those_before_it_blessed() {
    let home = Home::new();
    std::fs::create_dir(home.path().join("cases")).expect("a folder");
    let case = json!({"history": [{"role": "user", "content": "q"}]}).to_string();
    let valid = home.write("cases/a.json", &case);
    let folder = home.path().join("cases").display().to_string();
    for invalid in [json!({"bogus": 1}), json!({"history": "missing.json"})] {
        home.write("cases/z.json", invalid.to_string());
        let refused = home.run(&["policy", "test", &component("standard"), "--cases", &folder, "--bless"], "");
        assert_eq!((refused.status.code(), refused.stdout.as_str()), (Some(1), ""), "{}", refused.stderr);
        assert_eq!(std::fs::read_to_string(&valid).expect("the case"), case);
    }
}

/// Regression: a case is replaced as a whole, so one that is protected was replaced, too, and one of somebody else
/// changed hands.
#[test]
fn a_blessed_case_was_overwritten_although_protected_and_changed_hands() {
    let home = Home::new();
    std::fs::create_dir(home.path().join("cases")).expect("a folder");
    let case = json!({"history": [{"role": "user", "content": "q"}]}).to_string();
    let written = home.write("cases/one.json", &case);
    let folder = home.path().join("cases").display().to_string();
    let bless = || home.command(&["policy", "test", &component("standard"), "--cases", &folder, "--bless"]);
    let protected = std::fs::Permissions::from_mode(0o444);
    std::fs::set_permissions(&written, protected).expect("permissions");
    let refused = finish(heeding_modes(bless()), "");
    assert_eq!(refused.status.code(), Some(1), "{}", refused.stdout);
    assert!(refused.stderr.contains("hint: check that it is yours"), "{}", refused.stderr);
    assert_eq!(std::fs::read_to_string(&written).expect("the case"), case);
    if !is_root() {
        not_run::say("giving a file to another user needs root");
        return;
    }
    chown(&written, Some(SOMEBODY_ELSE), Some(SOMEBODY_ELSE)).expect("root may");
    finish(bless(), "").ok();
    assert_ne!(std::fs::read_to_string(&written).expect("the case"), case);
    let file = std::fs::metadata(&written).expect("the case");
    assert_eq!((file.uid(), file.gid(), file.mode() & 0o777), (SOMEBODY_ELSE, SOMEBODY_ELSE, 0o444));
}

/// Once, a trap became what was expected; and timing what never answers was a success.
#[test]
fn a_policy_that_fails_has_no_answer_to_bless_and_none_to_time() {
    let home = Home::new();
    let file = home.write("panics.wasm", broken::panics().build()).display().to_string();
    let case = json!({"history": [{"role": "user", "content": "q"}]}).to_string();
    std::fs::create_dir(home.path().join("cases")).expect("a folder");
    let written = home.write("cases/one.json", &case);
    let folder = home.path().join("cases").display().to_string();
    let blessed = home.run(&["policy", "test", &file, "--cases", &folder, "--bless"], "");
    assert_eq!(blessed.status.code(), Some(1), "{}", blessed.stdout);
    assert!(blessed.stdout.starts_with("FAILED  one.json"), "{}", blessed.stdout);
    assert!(blessed.stderr.contains("no answer to take as the expected one"), "{}", blessed.stderr);
    assert_eq!(std::fs::read_to_string(written).expect("the case"), case, "nothing is written");

    let timed = home.run(&["policy", "bench", &file, "--time", "0.001"], "");
    assert_eq!(timed.status.code(), Some(1), "{}", timed.stdout);
    assert!(timed.stdout.contains("prune was not usable"), "{}", timed.stdout);
    assert!(timed.stderr.starts_with("error: policy `") && timed.stderr.contains("no usable answer"));
}

/// A call after a result could not be a case, and the answer of a case that `plan` calls an error was blessed.
#[test]
fn a_case_was_always_about_the_first_call_and_what_cannot_be_sent_was_blessed() {
    let home = Home::new();
    let standard = component("standard");
    let bless = |case: &Value| {
        home.write("case.json", case.to_string());
        let folder = home.path().display().to_string();
        home.run(&["policy", "test", &standard, "--cases", &folder, "--bless"], "")
    };
    let written = || -> Value {
        serde_json::from_str(&std::fs::read_to_string(home.path().join("case.json")).expect("the case")).expect("JSON")
    };
    let at_work = json!({"history": [
        {"role": "user", "content": "look it up"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "grep", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "found it"}]},
    ], "budget": 8_000, "window": 9_000, "phase": "synthesise", "seedMayGo": true});
    bless(&at_work).ok();
    let mut expected = at_work.clone();
    expected["expect"] = written()["expect"].clone();
    assert_eq!(written(), expected);
    assert_eq!((&expected["expect"]["outcome"], &expected["expect"]["kept"]), (&json!("accepted"), &json!("0-2")));

    for (history, why) in [
        (json!([{"role": "user", "content": "why ".repeat(300)}]), "the new message alone exceeds the budget"),
        (json!([]), "nothing of the history would be sent"),
    ] {
        let case = json!({"history": history, "budget": 20});
        let refused = bless(&case);
        assert_eq!(refused.status.code(), Some(1), "{}", refused.stdout);
        assert!(refused.stdout.contains(&format!("not taken as the expected answer: {why}")), "{}", refused.stdout);
        assert_eq!(written(), case, "nothing is written");
    }
    let narrow = bless(&json!({"history": [{"role": "user", "content": "q"}], "budget": 20, "window": 10}));
    assert!(narrow.stderr.contains("a budget of 20 tokens does not fit into a window of 10"), "{}", narrow.stderr);
}

/// The lines that `--bless` writes into a case for this policy.
fn blessed(home: &Home, policy: &str, case: &Value) -> Value {
    let written = home.write("case.json", case.to_string());
    let folder = home.path().display().to_string();
    home.run(&["policy", "test", policy, "--cases", &folder, "--bless"], "").ok();
    let written: Value = serde_json::from_str(&std::fs::read_to_string(written).expect("the case")).expect("JSON");
    written["expect"].clone()
}

/// A policy could recall something else, and its cases still passed.
#[test]
fn what_was_recalled_was_no_part_of_a_case() {
    let home = Home::new();
    let said = |role: &str, content: &str| json!({"role": role, "content": content});
    let on_its_way = "The shipment is on its way, as was agreed. ".repeat(60);
    let mut history = vec![
        said("user", "What is the code name of the warehouse project?"),
        said("assistant", "The warehouse project is called Aurora."),
    ];
    for part in 0..10 {
        history.extend([said("user", &format!("How is part {part} going?")), said("assistant", &on_its_way)]);
    }
    history.push(said("user", "What was the code name of the warehouse project?"));
    let expected = blessed(&home, &component("recall"), &json!({"history": history, "budget": 2_000}));
    assert!(expected["recalled"].as_str().is_some_and(|recalled| recalled.starts_with("0-")), "{expected:#}");
}

/// A policy without an answer of its own was blessed with what the host would do, and its later answer was a failure.
#[test]
fn a_rung_that_a_policy_left_to_others_was_taken_for_its_choice() {
    let home = Home::new();
    let policy = home.write("silent.wasm", Component::new().export("recover", "").build()).display().to_string();
    let expected = blessed(&home, &policy, &json!({"decision": "recover", "overflow": {"available": ["trim"]}}));
    assert_eq!(expected, json!({"outcome": "accepted", "rung": "left to the next layer"}));
}

/// After a trim, a gateway is still in the first call of its turn; checks and cases were not.
#[test]
fn an_overflow_of_a_first_call_after_a_rung_was_never_asked_about() {
    let home = Home::new();
    let tried = "(call $tried (local.get $overflow) (i32.const 256)) (i32.load (i32.const 260))";
    let is_first = "(i32.eq (call $overflow-phase (local.get $overflow)) (i32.const 1))";
    let body = format!("{tried} (if (then {is_first} (if (then unreachable))))");
    let policy = home.write("traps.wasm", Component::new().export("recover", &body).build()).display().to_string();
    let checked = home.run(&["policy", "check", &policy], "");
    assert_eq!(checked.status.code(), Some(1), "{}", checked.stdout);
    assert!(checked.stdout.contains("an overflow, trim tried, nothing available\n"), "{}", checked.stdout);
    let folder = home.path().display().to_string();
    let case = json!({"decision": "recover", "overflow": {"tried": ["trim"], "available": []}});
    home.write("case.json", case.to_string());
    let tested = home.run(&["policy", "test", &policy, "--cases", &folder], "");
    assert!(tested.stdout.contains("failed: it trapped"), "{}", tested.stdout);
}

#[test]
fn a_case_that_makes_no_sense_is_named() {
    let home = Home::new();
    let mut shown = String::new();
    for case in [
        json!({"budget": 100}),
        json!({"history": "missing.json"}),
        json!({"history": [], "limit": 7}),
        json!({"history": [{"role": "user", "content": "q"}], "settings": {"low-water": 900}}),
        json!({"decision": "cap"}),
        json!({"decision": "cap", "incoming": {"kind": "marker", "text": "x"}}),
        json!({"decision": "recover", "overflow": {"available": ["jump"]}}),
        json!({"decision": "recover", "overflow": {"available": ["trim"]}, "window": 9_000}),
        json!({"decision": "cap", "incoming": {"kind": "seed", "text": "x"}, "phase": "first"}),
        json!({"decision": "cap", "incoming": {"kind": "seed", "text": "x"}, "seedMayGo": true}),
        json!({"history": [{"role": "user", "content": "q"}], "incoming": {"kind": "seed", "text": "x"}}),
        json!({"history": [{"role": "user", "content": "q"}], "overflow": {"available": ["trim"]}}),
        json!({"decision": "recover", "overflow": {"available": ["trim"]}, "history": "missing.json"}),
    ] {
        home.write("case.json", case.to_string());
        let folder = home.path().display().to_string();
        let finished = home.run(&["policy", "test", &component("standard"), "--cases", &folder], "");
        assert_eq!((finished.status.code(), finished.stdout.as_str()), (Some(1), ""), "{case}");
        shown.push_str(&finished.stderr);
    }
    insta::assert_snapshot!(shown.replace(&format!("{}/", home.path().display()), ""));
}

#[test]
fn a_bench_measures_every_decision() {
    let home = Home::new();
    let strict = component("strict");
    let document = home.run(&["--json", "policy", "bench", &strict, "--time", "0.001"], "").ok().json();
    let decisions = document["decisions"].as_array().expect("decisions");
    let measured: Vec<_> = decisions.iter().map(|one| (&one["decision"], one["messages"].as_u64())).collect();
    let (prune, cap, recover) = (json!("prune"), json!("cap"), json!("recover"));
    let sizes = [100, 1_000, 15_276].map(|size| (&prune, Some(size)));
    assert_eq!(measured, [sizes.to_vec(), vec![(&cap, None), (&recover, None)]].concat());
    for one in decisions {
        assert!(one["per_second"].as_f64() > Some(0.0) && one["fuel"].as_u64() > Some(0), "{one}");
        assert!(one["p50_us"].as_u64() <= one["p95_us"].as_u64(), "{one}");
        // Regression: keys that hold nothing were left out.
        assert_eq!((one.get("refused"), one.get("messages").is_some()), (Some(&json!(null)), true), "{one}");
    }
    // Which takes longer is up to the machine.
    for load in ["cold_ms", "cached_ms"] {
        assert!(document["load"][load].as_f64() > Some(0.0), "{document:#}");
    }
    let page = home.run(&["policy", "bench", &strict, "--time", "0.001"], "").ok().stdout;
    let page = page.lines().filter(|line| !line.starts_with("policy")).collect::<Vec<_>>().join("\n");
    insta::with_settings!({filters => vec![(r" *\d(?:[\d ]*\d)?", " [n]"), ("in a process .*", "in a process [..]")]}, { insta::assert_snapshot!(page) });
}

/// Regression: what an operator's settings do to a policy could be tried nowhere but in `compare` and `policy dev`.
#[test]
fn a_check_and_a_bench_took_no_settings() {
    let home = Home::new();
    let asked = |set: &[&str]| {
        let arguments = [&["--json", "policy", "check", "strict"][..], set].concat();
        home.run(&arguments, "").ok().json()["asked"].as_u64().expect("a number")
    };
    // What is set to an extreme is not asked for with that extreme once more.
    assert!(asked(&["--set", "strict.max-session-tokens=1"]) < asked(&[]));
    let fuel = |set: &[&str]| {
        let arguments = [&["--json", "policy", "bench", "standard", "--time", "0.001"][..], set].concat();
        home.run(&arguments, "").ok().json()["decisions"][0]["fuel"].as_u64().expect("a number")
    };
    assert_ne!(fuel(&["--set", "standard.max-session-tokens=200"]), fuel(&[]));
    for (command, set, expected) in [
        ("check", "recall.max-session-tokens=1", "`--set` names policy `recall`, which is not loaded"),
        ("bench", "strict.windows=1", "policy `strict` has no setting `windows` (--set)"),
    ] {
        let finished = home.run(&["policy", command, "strict", "--set", set], "");
        assert_eq!((finished.status.code(), finished.stdout.as_str()), (Some(1), ""));
        assert!(finished.stderr.contains(expected), "{}", finished.stderr);
    }
}

#[test]
fn a_policy_that_searches_is_timed_on_an_archive() {
    let home = Home::new();
    // Each by its name.
    let bench = |policy: &str| home.run(&["policy", "bench", policy, "--time", "0.001"], "").ok().stdout;
    let line = "archive   10000 older messages to search, generated and in memory\n";
    assert!(bench("recall").contains(line));
    assert!(!bench("strict").contains("archive"), "it searches nothing");
}

#[test]
fn a_project_is_written_once() {
    let home = Home::new();
    let new = |arguments: &[&str]| {
        let mut command = home.command(&[&["policy", "new"], arguments].concat());
        command.current_dir(home.path());
        finish(command, "")
    };
    let mut shown = String::new();
    for language in ["rust", "js", "python"] {
        let name = format!("newest-{language}");
        shown.push_str(&new(&[&name, "--lang", language]).ok().stdout);
        assert!(home.path().join(name).join("README.md").is_file());
    }
    for arguments in [
        &["newest-js"][..],
        &["Newest"],
        &["match"],
        &["other", "--sdk", "/nowhere"],
        &["other", "--lang", "js", "--sdk", "/nowhere"],
    ] {
        let finished = new(arguments);
        assert_eq!(finished.status.code(), Some(1), "{arguments:?}");
        shown.push_str(&finished.stderr);
    }
    let document = new(&["third", "--json"]).ok().json();
    assert_eq!(document["next"][0], "cd third");
    assert!(!home.path().join("other").exists());
    let shown = shown.replace(&format!("{}/", home.path().display()), "");
    insta::assert_snapshot!(shown);
}

#[test]
fn the_examples_import_what_this_host_offers() {
    let home = Home::new();
    let offered = home.run(&["--json", "policy", "inspect", &component("strict")], "").ok().json();
    let offered = offered["contract"]["offered"].as_str().expect("a version").to_owned();
    let source =
        std::fs::read_to_string(repository("plugins/examples/channels-js/src/policy.js")).expect("the example");
    assert!(source.contains(&format!("'pmk:policy/host@{offered}'")), "it is to import {offered}");
}
