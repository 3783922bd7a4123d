//! Recovery: for each rung a conversation that exactly this rung saves, and what happens when none does.
//!
//! The model is `sim` with a hidden factor, so that the first prompts are larger than anybody knows, or
//! Anthropic's API with a window of its own.

use pmk_stand_ins::anthropic::{Anthropic, Behaviour};
use serde_json::{Value, json};

use crate::support::{Home, component, finish, of_type, question};

/// A turn of a few hundred tokens.
fn turn(n: usize) -> String {
    question(
        &format!("Ev{n}"),
        &format!("Fact {n}: the port of service {n} is {}. {}", 4_000 + n, "filler ".repeat(150)),
    )
}

/// Answers by the API, whose window is smaller than what the gateway is told, with these policies.
fn run(home: &Home, anthropic: &Anthropic, policies: &[&str], input: &[String]) -> Vec<Value> {
    run_with(home, anthropic, policies, &[], input)
}

/// The same with more arguments.
fn run_with(home: &Home, anthropic: &Anthropic, policies: &[&str], more: &[&str], input: &[String]) -> Vec<Value> {
    let mut arguments = vec!["run".to_owned(), "--model".into(), "anthropic-api".into()];
    arguments.extend(more.iter().map(|&one| one.to_owned()));
    for policy in policies {
        arguments.extend(["--policy".to_owned(), component(policy)]);
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut command = home.command(&arguments);
    command.env("ANTHROPIC_API_KEY", pmk_stand_ins::anthropic::KEY).env("ANTHROPIC_BASE_URL", anthropic.url());
    finish(command, &input.join("\n")).ok().lines()
}

fn rungs(lines: &[Value]) -> Vec<Vec<String>> {
    let names = |turn: &Value| {
        turn["rungs"].as_array().expect("a list").iter().filter_map(|rung| rung.as_str().map(str::to_owned)).collect()
    };
    of_type(lines, "turn").into_iter().map(names).collect()
}

fn replies(lines: &[Value]) -> Vec<String> {
    of_type(lines, "reply").iter().map(|reply| reply["text"].as_str().expect("a text").to_owned()).collect()
}

fn events(home: &Home, kind: &str) -> Vec<Value> {
    home.ledger().into_iter().filter(|event| event["type"] == kind).collect()
}

#[test]
fn trim_saves_a_turn_with_the_standard_policy() {
    let home = Home::new();
    let anthropic = Anthropic::start_blocking();
    anthropic.set_window(6_000);
    let input: Vec<String> = (0..20).map(turn).collect();
    let lines = run(&home, &anthropic, &["standard"], &input);
    let used = rungs(&lines);
    assert!(used.iter().any(|rungs| rungs == &["trim"]) && used.iter().all(|rungs| rungs.len() < 2), "{used:?}");
    assert!(replies(&lines).iter().all(|reply| !reply.starts_with(":x:")), "{:#?}", replies(&lines));
    assert!(replies(&lines).iter().any(|reply| reply.starts_with(":scissors: 對話過長，已自動裁掉 ")));
    // One refusal teaches the window; the next turns keep within it.
    assert_eq!(events(&home, "context.exceeded").len(), 1, "{used:?}");
}

/// Regression: people were told of those alone that were trimmed, and not of those for which the smaller window then had
/// no room either.
#[test]
fn all_turns_that_go_after_a_refusal_are_named() {
    let (home, anthropic) = (Home::new(), Anthropic::start_blocking());
    run(&home, &anthropic, &["standard"], &(0..5).map(turn).collect::<Vec<_>>());
    let requests = anthropic.requests();
    let preamble = requests[0].prompt_tokens - requests[0].question().len() as u64 / 4;
    anthropic.set_window(6_000);
    // 2,048 of them are for the answer. Beside this message there is room for a third of the last turn.
    let large = "filler ".repeat((6_000 - 2_048 - 200 - preamble) as usize * 4 / "filler ".len());
    let lines = run(&home, &anthropic, &["standard"], &[question("EvL", &large)]);
    assert_eq!(rungs(&lines), [["trim"]], "{lines:#?}");
    assert_eq!(of_type(&lines, "turn")[0]["turns_dropped"], 5, "{lines:#?}");
    assert!(replies(&lines)[0].starts_with(":scissors: 對話過長，已自動裁掉 5 輪"), "{:?}", replies(&lines));
}

/// Anthropic refuses a prompt that fits, but not with the room that is asked for its answer.
#[test]
fn trim_saves_a_turn_where_the_room_for_the_answer_counts() {
    let (home, anthropic) = (Home::new(), Anthropic::start_blocking());
    anthropic.set_window(24_000);
    anthropic.counts_the_answer();
    let large = |n: usize| question(&format!("Ev{n}"), &format!("Fact {n}: {}", "filler ".repeat(900)));
    let lines = run(&home, &anthropic, &["standard"], &(0..12).map(large).collect::<Vec<_>>());
    let refused: Vec<String> = anthropic.requests().into_iter().filter_map(|asked| asked.refused).collect();
    assert!(!refused.is_empty() && refused.iter().all(|why| why.contains("exceed context limit")), "{refused:?}");
    let used = rungs(&lines);
    assert_eq!(used.len(), 12, "{used:?}");
    assert!(used.iter().flatten().any(|rung| rung == "trim"), "{used:?}");
    assert!(replies(&lines).iter().all(|reply| !reply.starts_with(":x:")), "{:#?}", replies(&lines));
}

#[test]
fn compaction_saves_a_turn_and_the_summary_rolls_on() {
    let home = Home::new();
    let anthropic = Anthropic::start_blocking();
    anthropic.set_window(6_000);
    let input: Vec<String> = (0..24).map(turn).collect();
    let lines = run(&home, &anthropic, &["rolling-summary"], &input);
    let used = rungs(&lines);
    assert!(used.iter().any(|rungs| rungs == &["compact"]), "{used:?}");
    assert!(replies(&lines).iter().all(|reply| !reply.starts_with(":x:")), "{:#?}", replies(&lines));
    assert!(replies(&lines).iter().any(|reply| reply.starts_with(":scissors: ") && reply.contains("摘要")));
    let compacted = events(&home, "context.compacted");
    assert!(compacted.len() > 1, "the window fills up again: {compacted:#?}");
    assert_eq!(compacted[0]["recovering"], true);
    assert!(compacted[1..].iter().any(|event| event["recovering"] == false), "ahead of the call: {compacted:#?}");
    // By the name of specification 001 only what followed an overflow.
    let recovering = compacted.iter().filter(|event| event["recovering"] == true).count();
    assert_eq!(events(&home, "queue.context_overflow.compacted").len(), recovering);
    let shown = home.run(&["sessions", "show", "console:dm:U1"], "").ok().stdout;
    assert_eq!(shown.matches("summary (").count(), 1, "one summary at a time:\n{shown}");
    let archive = home.run(&["sessions", "show", "console:dm:U1", "--full"], "").ok().stdout;
    assert!(archive.contains("Fact 0:") && archive.contains("Fact 23:"), "the archive keeps what was summed up");
}

#[test]
fn rotation_saves_a_turn_and_the_admins_are_told() {
    let home = Home::new();
    home.write("gateway.json", r#"{"version":1,"admins":["U0ADMIN"]}"#);
    let anthropic = Anthropic::start_blocking();
    anthropic.set_window(6_000);
    // The last turn alone is larger than the window once it is smaller: neither trim nor compaction gets rid of it.
    let large = question("Ev1", &format!("The password of the lab is heliotrope. {}", "filler ".repeat(2_500)));
    (0..2).for_each(|_| anthropic.push(Behaviour::answer("noted")));
    let lines = run(&home, &anthropic, &["standard"], &[turn(0), large]);
    assert!(replies(&lines).iter().all(|reply| !reply.starts_with(":x:")), "{:#?}", replies(&lines));
    anthropic.set_window(4_000);
    let lines = run(&home, &anthropic, &["standard"], &[turn(2)]);
    let used = rungs(&lines);
    assert_eq!(used[0].last().map(String::as_str), Some("rotate"), "{used:?}");
    // Regression: what trimming had dropped in vain counted although the rotation started again.
    assert_eq!(of_type(&lines, "turn")[0]["turns_dropped"], 0);
    assert!(replies(&lines)[0].starts_with(":scissors: 對話過長，已帶著摘要重新開始"), "{:?}", replies(&lines));
    let notices = of_type(&lines, "notice");
    assert!(notices.iter().any(|notice| notice["channel"] == "U0ADMIN"), "{lines:#?}");
    let rotated = &events(&home, "context.rotated")[0];
    assert_eq!(rotated["hasSummary"], true);
    assert!(rotated["summaryLength"].as_u64() > Some(50) && rotated["entriesLeftBehind"].as_u64() > Some(2));
    let overflow = |name: &str| events(&home, &format!("queue.context_overflow.{name}"));
    assert_eq!(overflow("detected").len(), events(&home, "context.exceeded").len());
    let fresh = &overflow("new_session")[0];
    assert_eq!((&fresh["hasSummary"], &fresh["summaryLength"]), (&rotated["hasSummary"], &rotated["summaryLength"]));
    assert_eq!(events(&home, "daemon.context_overflow.recovery").len(), 1);
}

/// What is asked for the answer is more than the whole window.
#[test]
fn no_question_was_answered_where_the_window_was_smaller_than_the_room_for_the_answer() {
    let (home, anthropic) = (Home::new(), Anthropic::start_blocking());
    anthropic.set_window(6_000);
    anthropic.counts_the_answer();
    let lines = run(&home, &anthropic, &["standard"], &(0..20).map(turn).collect::<Vec<_>>());
    let used = rungs(&lines);
    assert!(used[0].is_empty(), "a short question needs no other prompt: {used:?}");
    assert!(used.iter().flatten().any(|rung| rung == "trim"), "{used:?}");
    assert!(replies(&lines).iter().all(|reply| !reply.starts_with(":x:")), "{:#?}", replies(&lines));
}

#[test]
fn when_all_rungs_fail_the_person_is_told_and_the_next_turn_works() {
    let home = Home::new();
    home.write("gateway.json", r#"{"version":1,"admins":["U0ADMIN"]}"#);
    let anthropic = Anthropic::start_blocking();
    let lines = run(&home, &anthropic, &["standard"], &(0..4).map(turn).collect::<Vec<_>>());
    assert_eq!(replies(&lines).len(), 4);
    let too_long = || Behaviour::error(400, "invalid_request_error", "prompt is too long");
    (0..8).for_each(|_| anthropic.push(too_long()));
    let lines = run(&home, &anthropic, &["standard"], &[turn(4)]);
    assert_eq!(replies(&lines), [":x: 對話太長，請開新 thread 重新提問"]);
    assert_eq!(rungs(&lines)[0].last().map(String::as_str), Some("give-up"));
    assert_eq!(events(&home, "context.recovery_failed").len(), 1);
    assert_eq!(events(&home, "queue.context_overflow.recovery_failed").len(), 1);
    assert!(of_type(&lines, "notice").iter().any(|notice| notice["channel"] == "U0ADMIN"), "{lines:#?}");
    let fresh = Anthropic::start_blocking();
    let lines = run(&home, &fresh, &["standard"], &[turn(5)]);
    assert!(!replies(&lines)[0].starts_with(":"), "{:?}", replies(&lines));
    let sent = fresh.requests()[0].body.to_string();
    assert!(!sent.contains("Fact 4:"), "what failed is not in the live window");
}

/// The next answer has nothing to say of it, since nothing is cut for that one.
#[test]
fn what_was_cut_is_said_where_the_model_then_fails_for_another_reason() {
    let (home, anthropic) = (Home::new(), Anthropic::start_blocking());
    run(&home, &anthropic, &["standard"], &(0..4).map(turn).collect::<Vec<_>>());
    anthropic.push(Behaviour::error(400, "invalid_request_error", "prompt is too long"));
    anthropic.push(Behaviour::error(403, "permission_error", "this key is for another model"));
    let lines = run(&home, &anthropic, &["standard"], &[turn(4)]);
    let said = &replies(&lines)[0];
    assert!(said.starts_with(":scissors: 對話過長，已自動裁掉 ") && said.contains("\n\n:x:"), "{said}");
}

#[test]
fn a_compaction_that_overflows_itself_or_finds_the_model_down_makes_way_for_the_next_rung() {
    for trouble in [
        Behaviour::error(400, "invalid_request_error", "prompt is too long: 9000 tokens > 6000 maximum"),
        Behaviour::error(401, "authentication_error", "gone"),
    ] {
        let home = Home::new();
        let anthropic = Anthropic::start_blocking();
        run(&home, &anthropic, &["rolling-summary"], &(0..6).map(turn).collect::<Vec<_>>());
        anthropic.push(Behaviour::error(400, "invalid_request_error", "prompt is too long"));
        anthropic.push(trouble);
        let lines = run(&home, &anthropic, &["rolling-summary"], &[turn(6)]);
        assert_eq!(rungs(&lines), [["rotate"]], "{lines:#?}");
        assert!(!replies(&lines)[0].starts_with(":x:"), "{:?}", replies(&lines));
    }
}

/// Of parts that are too long together as much is summed up once more as there is room for: the beginning of each. Once,
/// the newest were left out.
#[test]
fn what_is_summed_up_in_many_pieces_is_summed_up_once_more() {
    let home = Home::new();
    let anthropic = Anthropic::start_blocking();
    run(&home, &anthropic, &["rolling-summary"], &(0..24).map(turn).collect::<Vec<_>>());
    let told = |what: &str| Behaviour::answer(format!("{what} {}", "told ".repeat(500)));
    anthropic.when("and now?", Behaviour::Echo);
    anthropic.when("<conversation>", told("LATER"));
    // The newest eight pieces are summed up.
    anthropic.when("Fact 8:", told("FIRST"));
    anthropic.when(["Fact 18:", "Fact 19:", "Fact 20:", "Fact 21:", "Fact 22:"], told("NEWEST"));
    anthropic.when("FIRST", Behaviour::answer("What was said, in short."));
    let before = anthropic.requests().len();
    let asked = [question("EvZ", "and now?")];
    let lines = run_with(&home, &anthropic, &["rolling-summary"], &["--window", "4000"], &asked);
    assert_eq!(events(&home, "context.compacted").len(), 1, "{lines:#?}");
    let requests = anthropic.requests().split_off(before);
    let (answer, summaries) = requests.split_last().expect("requests");
    let (once_more, pieces) = summaries.split_last().expect("a summary");
    let said = |word: &str| once_more.question().matches(word).count();
    let (first, later, newest) = (said("FIRST"), said("LATER"), said("NEWEST"));
    assert!(first == 1 && newest >= 1 && first + later + newest == 8, "{first}, {later}, {newest}: {requests:#?}");
    assert!((300..2_000).contains(&said("told")), "{requests:#?}");
    assert_eq!(pieces.len(), 8, "{requests:#?}");
    let seen = answer.body["messages"].to_string();
    assert!(seen.contains("What was said, in short.") && !seen.contains("LATER"), "{seen}");
}

/// Regression: what was summed up ended in the middle, and nobody knew that the newest was missing.
#[test]
fn a_summary_that_was_cut_off_counted_as_whole() {
    let (home, anthropic) = (Home::new(), Anthropic::start_blocking());
    run(&home, &anthropic, &["rolling-summary"], &(0..24).map(turn).collect::<Vec<_>>());
    anthropic.when("and now?", Behaviour::Echo);
    anthropic.when("<conversation>", Behaviour::answer(format!("PIECE {}", "told ".repeat(500))));
    anthropic.when("PIECE", Behaviour::stopping("HALF of it, and", "max_tokens"));
    let before = anthropic.requests().len();
    let asked = [question("EvZ", "and now?")];
    let lines = run_with(&home, &anthropic, &["rolling-summary"], &["--window", "4000"], &asked);
    assert_eq!(events(&home, "context.compacted"), [] as [Value; 0], "{lines:#?}");
    let requests = anthropic.requests().split_off(before);
    let [.., summary, answer] = &requests[..] else { panic!("{requests:#?}") };
    assert!(summary.question().contains("PIECE"), "{summary:#?}");
    assert!(summary.body["system"].to_string().contains("最多寫 "), "{summary:#?}");
    let seen = answer.body["messages"].to_string();
    assert!(seen.contains("Fact 23:") && !seen.contains("Fact 0:") && !seen.contains("HALF"), "{seen}");
    assert!(!replies(&lines)[0].starts_with(":x:"), "{lines:#?}");
}

/// Regression: the conversation lost all of them.
#[test]
fn the_summaries_of_all_pieces_were_thrown_away_if_that_of_one_was_cut_off() {
    let (home, anthropic) = (Home::new(), Anthropic::start_blocking());
    run(&home, &anthropic, &["rolling-summary"], &(0..24).map(turn).collect::<Vec<_>>());
    anthropic.when("and now?", Behaviour::Echo);
    anthropic.when("<conversation>", Behaviour::answer("WHOLE."));
    anthropic.when("Fact 8:", Behaviour::stopping("HALF of it, and", "max_tokens"));
    let before = anthropic.requests().len();
    let asked = [question("EvZ", "and now?")];
    let lines = run_with(&home, &anthropic, &["rolling-summary"], &["--window", "4000"], &asked);
    assert_eq!(events(&home, "context.compacted").len(), 1, "{lines:#?}");
    let requests = anthropic.requests().split_off(before);
    let seen = requests.last().expect("the answer").body["messages"].to_string();
    assert!(seen.contains("HALF of it, and") && seen.contains("WHOLE."), "{seen}");
}

#[test]
fn what_a_model_counts_is_learnt_across_a_restart() {
    let home = Home::new();
    let model = "sim:factor=2.5,overhead=20000";
    let ask =
        |input: &[String]| home.run(&["run", "--model", model, "--window", "60000"], &input.join("\n")).ok().lines();
    let lines = ask(&(0..6).map(turn).collect::<Vec<_>>());
    let limit = |turn: &Value| turn.pointer("/tokens/limit").and_then(Value::as_u64).expect("a limit");
    let turns = of_type(&lines, "turn");
    assert!(limit(turns[0]) > 40_000 && limit(turns[5]) < 16_000, "{turns:#?}");
    let more = ask(&[turn(7)]);
    assert!(limit(of_type(&more, "turn")[0]) < 16_000, "{more:#?}");
    let lines = ask(&(10..60).map(turn).collect::<Vec<_>>());
    assert_eq!(
        events(&home, "context.exceeded"),
        [] as [Value; 0],
        "the estimate is good enough that nothing overflows"
    );
    assert!(of_type(&lines, "turn").iter().all(|turn| turn["calls"] == json!(1)), "{lines:#?}");
}

#[test]
fn one_odd_refusal_locks_nobody_out() {
    for refusal in [
        "prompt is too long: 7000 tokens > 900 maximum",
        "Request too large on tokens per min (TPM): Limit 2000, Requested 7000. prompt is too long",
    ] {
        let home = Home::new();
        let anthropic = Anthropic::start_blocking();
        (0..4).for_each(|_| anthropic.push(Behaviour::error(400, "invalid_request_error", refusal)));
        run(&home, &anthropic, &["standard"], &[turn(0)]);
        let fresh = Anthropic::start_blocking();
        let lines = run(&home, &fresh, &["standard"], &[question("EvA", "hello"), question("EvB", "and now?")]);
        assert!(replies(&lines).iter().all(|reply| reply.starts_with("You said: ")), "{refusal}: {lines:#?}");
    }
}

#[test]
fn no_count_makes_room_beyond_the_window() {
    let home = Home::new();
    let input: Vec<String> = (0..12).map(turn).collect();
    let arguments = ["run", "--model", "sim:factor=0.3", "--window", "8000"];
    let lines = home.run(&arguments, &input.join("\n")).ok().lines();
    for turn in of_type(&lines, "turn") {
        assert!(turn.pointer("/tokens/limit").and_then(Value::as_u64) < Some(6_000), "{turn}");
    }
}
