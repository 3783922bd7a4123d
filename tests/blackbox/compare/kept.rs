//! `compare` on the conversations of a home, by the receipts of their turns.

use pmk_stand_ins::anthropic::{Anthropic, Behaviour};
use serde_json::{Value, json};

use crate::readers::in_chinese;
use crate::receipts::plant;
use crate::support::{Home, component, finish, of_type, question};

/// The turns that dropped something, counted from 1, and how much, as the gateway told.
fn dropped(lines: &[Value]) -> Vec<(u64, u64)> {
    let turns = (1..).zip(of_type(lines, "turn"));
    let dropped = turns.map(|(number, turn)| (number, turn["turns_dropped"].as_u64().expect("a number")));
    dropped.filter(|(_, turns)| *turns > 0).collect()
}

/// The same by a policy in a comparison, of its only conversation.
fn replayed(document: &Value, label: &str) -> Vec<(u64, u64)> {
    let [conversation] = &document["conversations"].as_array().expect("conversations")[..] else {
        panic!("{document:#}")
    };
    let policy = &conversation["policies"][label];
    let number = |drop: &Value, field: &str| drop[field].as_u64().expect("a number");
    let drops: Vec<(u64, u64)> = policy["drops"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|drop| (number(drop, "turn"), number(drop, "turns_dropped")))
        .collect();
    assert_eq!(policy["turns_dropped"], drops.iter().map(|(_, turns)| turns).sum::<u64>());
    drops
}

fn compare(home: &Home, more: &[&str]) -> Value {
    let strict = component("strict");
    let arguments = ["compare", "--policy", "standard", "--policy", &strict, "--json", "-"];
    home.run(&[&arguments[..], more].concat(), "").ok().json()
}

fn conversation(turns: usize) -> String {
    let words = |n: usize| "why ".repeat(20 + n * 37 % 90);
    let lines: Vec<String> = (0..turns).map(|n| question(&format!("Ev{n}"), &format!("{n}: {}", words(n)))).collect();
    lines.join("\n")
}

/// Once, the system prompt was taken as empty, and nothing was dropped where the gateway had dropped.
#[test]
fn the_same_policy_drops_what_it_dropped_turn_by_turn() {
    for label in ["standard", "strict"] {
        let home = Home::new();
        let policy = component(label);
        let run = ["run", "--policy", &policy, "--model", "sim", "--window", "2000"];
        let lines = home.run(&run, &conversation(40)).ok().lines();
        let dropped = dropped(&lines);
        assert!(dropped.len() > 5, "{dropped:?}");
        let document = compare(&home, &[]);
        assert_eq!(replayed(&document, label), dropped, "{label}");
        assert_eq!((&document["problems"], &document["window"]), (&json!([]), &Value::Null));
        let other = compare(&home, &["--window", "100000"]);
        assert_eq!(replayed(&other, label), [], "the command line's window goes before that of the receipts");
    }
}

/// What was found for a message takes room, too, and results of tools come in between.
#[test]
fn what_was_found_and_what_tools_said_counts_as_it_did() {
    let home = Home::new();
    home.write("gateway.json", json!({"version": 1, "language": "en", "mra": {"command": ["echo"]}}).to_string());
    plant(&home);
    let anthropic = Anthropic::start_blocking();
    let calls = |n: usize| json!({"repo": "erp", "question": format!("number {n}: {}?", "which ".repeat(200))});
    for n in 0..12 {
        anthropic.push(Behaviour::calls([("mra_ask", calls(n))]));
        anthropic.push(Behaviour::answer("The sales scope."));
    }
    let text = |n: usize| format!("{n}: where is the scope of sales performances defined? {}", "why ".repeat(60));
    let input: Vec<String> = (0..12).map(|n| question(&format!("Ev{n}"), &text(n))).collect();
    let lines = finish(home.asking(&anthropic, &["--window", "6000"]), &input.join("\n")).ok().lines();
    let dropped = dropped(&lines);
    assert!(dropped.len() > 2, "{dropped:?}");
    assert_eq!(replayed(&compare(&home, &[]), "standard"), dropped);
}

/// A provider's cache keeps nothing of what comes after another system prompt.
#[test]
fn what_came_after_another_system_prompt_was_said_to_be_kept() {
    let home = Home::new();
    std::fs::create_dir_all(home.path().join("prompts")).expect("a folder");
    let ask = |number: u32| {
        home.run(&["run", "--model", "sim"], &question(&format!("Ev{number}"), &"why ".repeat(200))).ok();
    };
    let kept = || compare(&home, &[])["policies"][0]["tokens"]["reused"].as_u64().expect("a number");
    home.write("prompts/biz.md", "Be brief.");
    ask(1);
    home.write("prompts/biz.md", "Be kind.");
    ask(2);
    assert_eq!(kept(), 0);
    ask(3);
    assert!(kept() > 0, "the same prompt again");
}

#[test]
fn a_conversation_without_receipts_is_replayed_and_that_is_said() {
    let [from, to] = [Home::new(), Home::new()];
    from.run(&["run", "--model", "sim", "--window", "2000"], &conversation(5)).ok();
    let file = to.path().join("export.jsonl").display().to_string();
    from.run(&["sessions", "export", "--all", "--to", &file], "").ok();
    to.run(&["sessions", "import", &file], "").ok();
    let document = compare(&to, &[]);
    assert_eq!(document["conversations"][0]["turns"], 5);
    let [problem] = &document["problems"].as_array().expect("a list")[..] else { panic!("{document:#}") };
    assert!(problem.as_str().is_some_and(|told| told.contains("has no receipts")), "{problem}");
    // Once, it was said to be replayed in the windows of receipts that it does not have.
    let strict = component("strict");
    let arguments = ["compare", "--policy", "standard", "--policy", &strict];
    let window = document["window"].as_u64().unwrap_or_else(|| panic!("{document:#}"));
    let page = |home: &Home| home.run(&arguments, "").ok().stdout;
    assert!(page(&to).contains(&format!("with a window of {window} tokens")), "{}", page(&to));
    let other = json!({"user": "U2", "channel": "D2", "text": "hello", "event_id": "Ev8"}).to_string();
    to.run(&["run", "--model", "sim"], &other).ok();
    let told = format!("with the windows of the receipts ({window} tokens where there are none)");
    assert!(page(&to).contains(&told), "{}", page(&to));
    let mixed = compare(&to, &[]);
    assert_eq!(mixed["window"], Value::Null);
    let told = format!("it has no receipts: it is replayed without its system prompt, in a window of {window} tokens");
    assert!(mixed["problems"].to_string().contains(&told), "{mixed:#}");
    let chinese = in_chinese(&to, &arguments);
    assert!(chinese.contains(&format!("（沒有收據的用 {window} token）")), "{chinese}");
    assert!(chinese.contains(&format!("重播時沒有它的系統提示，視窗 {window} token")), "{chinese}");
    // A turn of its own has one. Once, the others were said to go by the nearest.
    to.run(&["run", "--model", "sim"], &question("Ev9", "and now?")).ok();
    let problems = compare(&to, &[])["problems"].to_string();
    let told = "no receipt for 5 of 6 turns: they go by that of the turn before, or by the first one";
    assert!(problems.contains(told), "{problems}");
    let chinese = in_chinese(&to, &arguments);
    assert!(chinese.contains("6 輪裡有 5 輪沒有收據"), "{chinese}");
}

#[test]
fn a_home_without_conversations_is_told() {
    let arguments = ["compare", "--policy", "standard", "--policy", &component("strict")];
    let finished = Home::new().run(&arguments, "");
    assert!(!finished.status.success() && finished.stderr.contains("hint: "), "{}", finished.stderr);
}
