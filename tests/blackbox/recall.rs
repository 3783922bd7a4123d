//! What was dropped can come back: the policy `recall` on a running gateway.

use serde_json::{Value, json};

use crate::{
    component::Component,
    support::{Home, component, of_type, question},
};

/// A fact, small talk that pushes it out of a small window, and a question about it.
pub fn conversation() -> String {
    let filler = |n: usize| {
        let words = "nothing in particular happened on that afternoon and nobody minded ".repeat(8);
        question(&format!("Ev{n}"), &format!("Entry {n}: {words}"))
    };
    let mut lines = vec![question("EvFact", "The deposit for the venue was paid to Castellane & Sons.")];
    lines.extend((0..40).map(filler));
    lines.push(question("EvAsked", "Who was the deposit for the venue paid to?"));
    lines.join("\n")
}

fn asked<'a>(lines: &'a [Value], kind: &str) -> &'a Value {
    let found = of_type(lines, kind).into_iter().find(|line| line["event_id"] == "EvAsked");
    found.unwrap_or_else(|| panic!("no {kind} of the question"))
}

fn run(policy: &str) -> Vec<Value> {
    let policy = component(policy);
    Home::new().run(&["run", "--policy", &policy, "--model", "sim", "--window", "6000"], &conversation()).ok().lines()
}

#[test]
fn a_fact_that_was_pruned_long_ago_is_quoted_for_its_question() {
    let lines = run("recall");
    let reply = asked(&lines, "reply");
    assert!(reply["text"].as_str().is_some_and(|text| text.contains("Castellane & Sons")), "{reply}");
    let turn = asked(&lines, "turn");
    assert_eq!(turn["policy"]["name"], "recall");
    assert!(turn["recalled"].as_array().is_some_and(|ids| ids.contains(&json!(1))), "{turn}");
    assert!(turn["tokens"]["after"].as_u64() <= turn["tokens"]["limit"].as_u64(), "{turn}");
}

#[test]
fn without_it_the_fact_is_gone() {
    let lines = run("strict");
    let reply = asked(&lines, "reply");
    assert!(!reply["text"].as_str().is_some_and(|text| text.contains("Castellane")), "{reply}");
    assert_eq!(asked(&lines, "turn").get("recalled"), None);
}

/// Regression: it was asked on a thread that must not wait, which panicked where `recall` read the archive: from the
/// second decision on, no question was answered.
#[test]
fn turns_of_a_policy_that_recalls_and_imports_nothing_else_of_the_archive_were_lost() {
    let home = Home::new();
    let recalling = Component::pruning(
        "(if (call $current (local.get $transcript)) (then
            (call $remove (local.get $plan) (i32.const 0) (call $current (local.get $transcript)))
            (call $recall (local.get $plan) (i32.const 0) (i32.const 10))))",
    );
    let policy = home.write("recalling.wasm", recalling.build());
    let long = "nothing in particular happened on that afternoon and nobody minded ".repeat(8);
    let asked: Vec<String> = (0..4).map(|n| question(&format!("Ev{n}"), &long)).collect();
    let arguments = ["run", "--model", "sim", "--policy", policy.to_str().expect("UTF-8")];
    let lines = home.run(&arguments, &asked.join("\n")).ok().lines();
    let turns = of_type(&lines, "turn");
    assert_eq!(turns.len(), 4, "{lines:#?}");
    for turn in &turns[1..] {
        assert_eq!((&turn["policy"]["name"], &turn["recalled"]), (&json!("test"), &json!([1])), "{turn}");
    }
}
