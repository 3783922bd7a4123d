//! Hostile policies in the running program: everybody is answered as if the policy were not there, and the ledger says
//! why it was passed over.

use std::fs;

use serde_json::Value;

use crate::{
    component::{Component, DATA},
    support::{Home, Running, finish, of_type, question, replies, repository},
};

const LOOP: &str = "(loop $l (br $l))";
const GROW: &str = "(loop $l (drop (memory.grow (i32.const 16))) (br $l))";

/// Prunes in these ways, and what the ledger says of it.
fn attacks() -> Vec<(&'static str, Component, &'static str)> {
    let marker =
        "(drop (memory.grow (i32.const 90))) (call $marker (local.get $plan) (i32.const 0) (i32.const 5000000))";
    vec![
        ("loops", Component::pruning(LOOP), "used up its "),
        ("recurses", Component::pruning("(call $deep)").items("(func $deep (call $deep))"), "call stack exhausted"),
        ("takes memory", Component::pruning(GROW), "bytes of memory, but only 134217728 are allowed"),
        ("takes the host's memory", Component::pruning(marker), "passed more than 4194304 bytes to the host"),
        // What it said last is in the log alone.
        ("panics", Component::pruning(&panicking()).data("it went bust"), "instruction executed (in prune"),
        ("ends the program", Component::pruning("(call $exit (i32.const 0))"), "called exit(0) instead of returning"),
        ("guesses a handle", Component::pruning("(call $clear (i32.const 77))"), "unknown handle index 77"),
        ("keeps its handles", keeping_handles(), "borrow handles still remain"),
        ("is no UTF-8", Component::pruning(&logging(2)).data("\\ff\\fe"), "invalid utf-8 sequence"),
        ("removes everything", Component::pruning(&remove("0", "-1")), " in a history of "),
        ("removes the new message", Component::pruning(&remove("0", "1")), "touches the new message"),
    ]
}

fn panicking() -> String {
    format!("{} unreachable", logging(12))
}

fn logging(length: u32) -> String {
    format!("(call $log (i32.const 1) (i32.const {DATA}) (i32.const {length}))")
}

fn remove(start: &str, end: &str) -> String {
    format!("(call $remove (local.get $plan) (i32.const {start}) (i32.const {end}))")
}

/// Describes itself as it should and keeps what it was given to decide.
fn keeping_handles() -> Component {
    let give_back = "(call $drop-description (local.get $description))";
    Component::pruning("").keeping_handles().describing(give_back)
}

/// A home in which fuel ends what does not end, and no clock on a slow machine.
fn home() -> Home {
    let home = Home::new();
    home.write("gateway.json", r#"{"version": 1, "policy": {"limits": {"wallMs": 600000}}}"#);
    home
}

/// Two conversations, one after the other and again.
fn questions() -> String {
    let ask = |event: &str, channel: &str, text: &str| {
        question(event, text).replace(r#""channel":"D1""#, &format!(r#""channel":"{channel}""#))
    };
    [
        ask("Ev1", "D1", "what is the budget?"),
        ask("Ev2", "D2", "還有哪些問題？"),
        ask("Ev3", "D1", "and how much is left?"),
    ]
    .join("\n")
}

/// What people see, and what was sent to the model for it.
fn seen(lines: &[Value]) -> (Vec<String>, Vec<Value>) {
    let mut answers: Vec<String> = replies(lines).into_iter().map(str::to_owned).collect();
    let mut tokens: Vec<Value> = of_type(lines, "turn").into_iter().map(|turn| turn["tokens"].clone()).collect();
    answers.sort();
    tokens.sort_by_key(Value::to_string);
    (answers, tokens)
}

#[test]
fn everybody_is_answered_and_the_ledger_says_why_the_policy_was_passed_over() {
    let calm = Home::new();
    let expected = seen(&calm.run(&["run", "--model", "sim"], &questions()).ok().lines());
    assert_eq!(expected.0.len(), 3);
    for (name, attack, reason) in attacks() {
        let home = home();
        let file = home.write("hostile.wasm", attack.build()).display().to_string();
        let lines = home.run(&["run", "--model", "sim", "--policy", &file], &questions()).ok().lines();
        assert_eq!(seen(&lines), expected, "{name}");
        assert!(of_type(&lines, "turn").iter().all(|turn| turn["policy"]["name"] == "standard"), "{name}");
        let ledger = home.ledger();
        let failed = of_type(&ledger, "policy.failed");
        // The third question has a history; what may be removed of none is refused for another reason.
        assert_eq!(failed.len(), 3, "{name}: {failed:#?}");
        assert!(
            failed.iter().any(|event| event["reason"].as_str().is_some_and(|text| text.contains(reason))),
            "{failed:#?}"
        );
        for event in failed {
            assert_eq!((&event["policy"], &event["decision"]), (&"test".into(), &"prune".into()), "{name}");
            assert_eq!(event["sha256"].as_str().map(str::len), Some(64), "{name}");
        }
    }
}

/// What a policy wrote for the operator was shown to nobody.
#[test]
fn what_a_policy_logs_for_the_operator_is_in_the_log() {
    let line = |level: u32, at: u32| format!("(call $log (i32.const {level}) (i32.const {}) (i32.const 6))", DATA + at);
    let body = [line(1, 0), line(2, 6), line(3, 12)].concat();
    let home = home();
    let policy = Component::pruning(&body).data("brokenstrangenormal");
    let file = home.write("talks.wasm", policy.build()).display().to_string();
    let log = home.run(&["run", "--model", "sim", "--policy", &file], &question("Ev1", "who decides?")).ok().stderr;
    for said in ["broken", "strang"] {
        assert_eq!(log.matches(&format!("policy `test` logged: {said}")).count(), 1, "{log}");
    }
    assert!(!log.contains("logged: enorma"), "{log}");
    // A command that shows what was logged does not show it twice.
    let history = repository("tests/fixtures/tool-heavy-en.json").display().to_string();
    let plan = home.run(&["plan", "--policy", &file, "--history", &history], "").ok();
    assert!(plan.stdout.contains("broken") && plan.stdout.contains("strang"), "{}", plan.stdout);
    assert!(!plan.stderr.contains("broken"), "{}", plan.stderr);
}

/// Each failure was in the log twice, and the message of a panic would have been a third time.
#[test]
fn a_failure_is_in_the_log_once() {
    let home = home();
    let policy = Component::pruning(&panicking()).data("it went bust");
    let file = home.write("panics.wasm", policy.build()).display().to_string();
    let log = home.run(&["run", "--model", "sim", "--policy", &file], &question("Ev1", "who decides?")).ok().stderr;
    assert_eq!(log.matches("it went bust").count(), 1, "{log}");
}

#[test]
fn what_cannot_even_describe_itself_is_refused_at_the_start() {
    let home = home();
    let start = "(func $grow (loop $l (drop (memory.grow (i32.const 16))) (br $l))) (start $grow)";
    let mut shown = String::new();
    for (name, component) in [
        ("loops.wasm", Component::pruning("").export("describe", LOOP)),
        ("grows.wasm", Component::pruning("").items(start)),
        ("shared.wasm", Component::pruning("").items("(memory 1 1 shared)")),
        ("memories.wasm", Component::pruning("").items(&"(memory 1)".repeat(9))),
        ("major.wasm", Component::pruning("").version("2.0.0")),
        ("floor.wasm", floor()),
    ] {
        let file = home.write(name, component.build()).display().to_string();
        let mut command = home.command(&["run", "--model", "sim", "--policy", &file]);
        command.env_remove("LANG");
        let finished = finish(command, &questions());
        assert_eq!((finished.status.code(), finished.stdout.as_str()), (Some(1), ""), "{name}");
        shown.push_str(&finished.stderr.replace(&format!("{}/", home.path().display()), ""));
    }
    insta::with_settings!({filters => vec![
        // The contract grows.
        (r"offers 1\.\d+\.\d+", "offers 1.[x]"),
        (r"pmk:policy@1\.\d+\.\d+", "pmk:policy@1.[x]"),
        (r"offset 0x[0-9a-f]+", "offset [x]"),
    ]}, { insta::assert_snapshot!(shown) });
}

fn floor() -> Component {
    let name = format!("(call $name (local.get $description) (i32.const {DATA}) (i32.const 5))");
    Component::pruning("").data("floor").describing(&name)
}

#[test]
fn a_policy_that_takes_all_memory_each_time_gives_it_back_each_time() {
    let home = home();
    // Writes to all it takes, so that it is really taken.
    let fill = "(loop $l (if (i32.lt_u (memory.size) (i32.const 2000)) (then \
                (memory.fill (i32.mul (memory.grow (i32.const 16)) (i32.const 65536)) (i32.const 7) \
                (i32.const 1048576)) \
                (br $l)))) unreachable";
    let file = home.write("hostile.wasm", Component::pruning(fill).build()).display().to_string();
    let mut gateway = Running::start(home.command(&["run", "--model", "sim", "--policy", &file]));
    let resident = |pid: u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its memory").trim();
        line.trim_end_matches(" kB").parse::<u64>().expect("a number") / 1024
    };
    let mut after = Vec::new();
    for turn in 0..30 {
        assert!(gateway.say(&question(&format!("Ev{turn}"), "and now?")));
        gateway.next_of("turn");
        after.push(resident(gateway.pid()));
    }
    let (status, _) = gateway.end();
    assert!(status.success());
    let ledger = home.ledger();
    let failed = of_type(&ledger, "policy.failed");
    // Five failures and it is suspended, then tried again.
    assert!(failed.len() > 5 && failed.len() < 30, "{failed:#?}");
    assert!(failed.iter().all(|event| event["reason"].as_str().is_some_and(|reason| reason.contains("unreachable"))));
    // It takes 125 MiB each time.
    assert!(after.iter().all(|&resident| resident < after[0] + 32), "MiB after each turn: {after:?}");
}
