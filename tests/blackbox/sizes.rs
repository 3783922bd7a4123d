//! What the size of a refused or answered request teaches, where words do not help.

use std::process::Command;

use pmk_stand_ins::{
    anthropic::{Anthropic, Behaviour, Recorded},
    openai::{self, OpenAi, Reply},
};
use serde_json::{Value, json};

use crate::support::{Finished, Home, Running, component, finish, of_type, question, replies};

const POLICIES: [&str; 3] = ["strict", "standard", "rolling-summary"];

fn home() -> Home {
    let home = Home::new();
    home.write("gateway.json", json!({"version": 1, "language": "en"}).to_string());
    home
}

/// A turn of about so many hundred tokens.
fn turn(n: usize, hundreds: usize) -> String {
    question(&format!("Ev{n}"), &format!("Fact {n}: {}", "filler ".repeat(100 * hundreds)))
}

fn run(home: &Home, anthropic: &Anthropic, policy: &str, input: &[String]) -> Finished {
    finish(home.asking(anthropic, &["--policy", &component(policy)]), &input.join("\n")).ok()
}

fn lost(lines: &[Value]) -> Vec<&str> {
    replies(lines).into_iter().filter(|reply| reply.starts_with(":x:")).collect()
}

/// The sizes of the requests that were refused, in order.
fn refused(requests: &[Recorded]) -> Vec<u64> {
    requests.iter().filter(|request| request.refused.is_some()).map(|request| request.prompt_tokens).collect()
}

fn audit(home: &Home) -> String {
    home.run(&["audit"], "").ok().stdout
}

fn unexplained() -> Behaviour {
    Behaviour::error(400, "zuvek", "the grommet is out of plim")
}

/// Ten of ten failed, and for ever.
#[test]
fn a_last_turn_that_is_too_large_fails_only_once_under_any_policy() {
    for policy in POLICIES {
        let (home, anthropic) = (home(), Anthropic::start_blocking());
        // Both fit what is believed, and the second is larger than what turns out to be true.
        run(&home, &anthropic, policy, &[turn(0, 1), turn(1, 60)]);
        let smaller = Anthropic::start_blocking();
        smaller.set_window(8_000);
        smaller.name_no_numbers();
        let input: Vec<String> = (2..12).map(|n| turn(n, 2)).collect();
        let lines = run(&home, &smaller, policy, &input).lines();
        assert!(lost(&lines).is_empty(), "{policy}: {:#?}", replies(&lines));
        let sizes = refused(&smaller.requests());
        assert!(sizes.is_sorted_by(|a, b| a > b) && sizes.len() <= 6, "{policy}: {sizes:?}");
        let page = audit(&home);
        assert!(page.contains("(refused), so ") && page.contains("`pmk-host model forget`"), "{policy}: {page}");
    }
}

/// Four of four, under every policy.
#[test]
fn a_seed_larger_than_the_real_window_keeps_nobody_from_an_answer() {
    for policy in POLICIES {
        let (home, documents) = (Home::new(), tempfile::tempdir().expect("a folder"));
        let text = "The knowledge base says a lot about little. ".repeat(1_500);
        std::fs::write(documents.path().join("summary.md"), text).expect("a document");
        let ingest = format!("dir:{}", documents.path().display());
        home.write("gateway.json", json!({"version": 1, "language": "en", "defaultIngest": ingest}).to_string());
        let anthropic = Anthropic::start_blocking();
        anthropic.set_window(3_000);
        anthropic.name_no_numbers();
        let input: Vec<String> = (0..4).map(|n| turn(n, 1)).collect();
        let lines = run(&home, &anthropic, policy, &input).lines();
        assert!(anthropic.requests()[0].prompt_tokens > 3_000, "the seed is there");
        assert!(lost(&lines).is_empty(), "{policy}: {:#?}", replies(&lines));
        let page = audit(&home);
        assert!(page.contains("refused as too long: lower `max-session-tokens`"), "{policy}: {page}");
    }
}

/// A message that is too large by itself costs the conversation nothing.
#[test]
fn a_message_that_alone_does_not_fit_leaves_the_conversation_as_it_was() {
    let (home, anthropic) = (home(), Anthropic::start_blocking());
    anthropic.set_window(6_000);
    anthropic.name_no_numbers();
    let mut input: Vec<String> = (0..4).map(|n| turn(n, 2)).collect();
    input.extend([turn(4, 90), turn(5, 2)]);
    let lines = run(&home, &anthropic, "standard", &input).lines();
    let said = replies(&lines);
    assert!(said[4].starts_with(":x: This message is too long: about "), "{said:#?}");
    assert_eq!(lost(&lines).len(), 1, "{said:#?}");
    let requests = anthropic.requests();
    let last = requests.last().expect("requests").body.to_string();
    assert!((0..4).all(|n| last.contains(&format!("Fact {n}:"))) && !last.contains("Fact 4:"), "{last}");
    assert!(refused(&requests).is_sorted_by(|a, b| a > b), "{:?}", refused(&requests));
    let page = audit(&home);
    assert!(page.contains("1 message could not be answered because of its size: split it"), "{page}");
}

/// One person's message was refused; everybody's were refused from half its size on, unasked and uncounted.
#[test]
fn a_message_below_what_was_refused_is_asked_and_one_above_is_counted() {
    let (home, anthropic) = (home(), Anthropic::start_blocking());
    anthropic.set_window(18_000);
    anthropic.name_no_numbers();
    let other = |n, hundreds| turn(n, hundreds).replace("\"U1\"", "\"U2\"").replace("\"D1\"", "\"D2\"");
    let lines = run(&home, &anthropic, "standard", &[turn(0, 140)]).lines();
    let said = replies(&lines)[0];
    assert!(
        said.starts_with(":x: This message is too long") && !said.contains(" fit;"),
        "nobody knows what fits: {said}"
    );
    let refused_alone = refused(&anthropic.requests()).len();
    let lines = run(&home, &anthropic, "standard", &[other(1, 70)]).lines();
    assert!(lost(&lines).is_empty(), "{:#?}", replies(&lines));
    let asked = anthropic.requests().len();
    let lines = run(&home, &anthropic, "standard", &[other(2, 150)]).lines();
    assert_eq!((lost(&lines).len(), anthropic.requests().len()), (1, asked), "{:#?}", replies(&lines));
    assert_eq!(refused(&anthropic.requests()).len(), refused_alone, "no size is refused twice");
    let page = audit(&home);
    assert!(page.contains("2 messages could not be answered because of their size: split them"), "{page}");
}

/// The results of a turn's own tools were what was too large, and no rung touches them.
#[test]
fn an_overflow_in_a_tool_loop_is_planned_again_under_the_limit_just_learnt() {
    for terse in [false, true] {
        let home = Home::new();
        let mra = json!({"command": ["sh", "-c", "yes 'found nothing much' | head -n 3000", "mra"]});
        home.write("gateway.json", json!({"version": 1, "language": "en", "mra": mra}).to_string());
        let anthropic = Anthropic::start_blocking();
        anthropic.set_window(6_000);
        if terse {
            anthropic.name_no_numbers();
        }
        let call = || Behaviour::calls([("mra_ask", json!({"repo": "erp", "question": "what is there?"}))]);
        (0..3).for_each(|_| anthropic.push(call()));
        anthropic.push(Behaviour::answer("That is all."));
        let lines = run(&home, &anthropic, "strict", &[turn(0, 1)]).lines();
        assert_eq!(replies(&lines).iter().filter(|reply| reply.ends_with("That is all.")).count(), 1, "{lines:#?}");
        let last = anthropic.requests().pop().expect("requests").body.to_string();
        assert!(last.contains("found nothing much"), "what was found is there, in part: {last}");
        let page = audit(&home);
        assert!(!page.contains("context.replanned        0") && page.contains("`pmk-host model forget`"), "{page}");
        let turns = of_type(&lines, "turn");
        assert!(
            turns[0]["rungs"].as_array().is_some_and(|rungs| rungs.iter().any(|rung| rung == "replan")),
            "{turns:#?}"
        );
    }
}

/// Regression: the provider's count left less than the usual room for an answer, so the message that the model had just
/// answered was too long for its next round.
#[test]
fn a_message_that_the_model_had_just_answered_was_too_long_in_the_next_round() {
    let (home, anthropic) = (Home::new(), Anthropic::start_blocking());
    let mra = json!({"command": ["sh", "-c", "echo 'In the budget worker.'", "mra"]});
    home.write("gateway.json", json!({"version": 1, "language": "en", "mra": mra}).to_string());
    anthropic.push(Behaviour::calls([("mra_ask", json!({"repo": "erp", "question": "where?"}))]));
    anthropic.push(Behaviour::answer("That is all."));
    // By the estimate it fits, by the count it takes some of the 8,192 tokens that are kept for the answer.
    let asked = question("Ev0", &"all that was ever said ".repeat(5_600));
    let lines = finish(home.asking(&anthropic, &["--window", "40000"]), &asked).ok().lines();
    let requests = anthropic.requests();
    assert!(requests[0].prompt_tokens > 40_000 - 8_192, "{}", requests[0].prompt_tokens);
    assert!(replies(&lines)[0].ends_with("That is all."), "{:#?}", replies(&lines));
}

/// Regression: what the model had just been sent counted as fitting, also where its count had shown that no room was left
/// for an answer.
#[test]
fn a_round_after_the_first_took_the_room_of_the_answer() {
    let (home, anthropic) = (Home::new(), Anthropic::start_blocking());
    let mra = json!({"command": ["sh", "-c", "echo 'In the budget worker.'", "mra"]});
    home.write("gateway.json", json!({"version": 1, "language": "en", "mra": mra}).to_string());
    // Each of these words is one token by the estimate, and nearly two by the count.
    let history: Vec<String> = (0..12).map(|n| question(&format!("Ev{n}"), &"budget ".repeat(1_500))).collect();
    run(&home, &anthropic, "standard", &history);
    home.run(&["model", "forget"], "").ok();
    let before = anthropic.requests().len();
    anthropic.push(Behaviour::calls([("mra_ask", json!({"repo": "erp", "question": "where?"}))]));
    anthropic.push(Behaviour::answer("That is all."));
    let narrow = ["--window", "40000", "--set", "standard.low-water=100"];
    let lines = finish(home.asking(&anthropic, &narrow), &question("Ev99", "where is it?")).ok().lines();
    assert!(replies(&lines)[0].ends_with("That is all."), "{:#?}", replies(&lines));
    let counts: Vec<u64> = anthropic.requests().split_off(before).iter().map(|sent| sent.prompt_tokens).collect();
    let most = 40_000 - 8_192;
    assert!(counts.len() == 2 && counts[0] > most && counts[1] <= most, "{counts:?}");
}

/// The same for the message that taught the limit.
#[test]
fn the_message_that_taught_the_limit_is_answered() {
    let (home, anthropic) = (home(), Anthropic::start_blocking());
    run(&home, &anthropic, "strict", &[turn(0, 60)]);
    let smaller = Anthropic::start_blocking();
    smaller.set_window(6_000);
    let lines = run(&home, &smaller, "strict", &[turn(1, 1)]).lines();
    assert!(lost(&lines).is_empty(), "{:#?}", replies(&lines));
}

/// Whatever the words are, a smaller request passes.
#[test]
fn a_refusal_that_nothing_explains_is_answered_once_it_is_smaller() {
    let (home, anthropic) = (home(), Anthropic::start_blocking());
    anthropic.set_window(5_000);
    anthropic.when_too_large(unexplained);
    let input: Vec<String> = (0..30).map(|n| turn(n, 4)).collect();
    let lines = run(&home, &anthropic, "standard", &input).lines();
    assert!(lost(&lines).is_empty(), "{:#?}", replies(&lines));
    assert!(refused(&anthropic.requests()).len() <= 3, "{:?}", refused(&anthropic.requests()));
    let page = audit(&home);
    assert!(page.contains("unexplained: helped"), "{page}");
    assert!(page.contains("set `--window` to the model's real window"), "{page}");
}

/// Where it is not the size, nothing is learnt, nothing is cut, and it is not tried again.
#[test]
fn a_refusal_that_is_not_about_the_size_costs_the_conversation_nothing() {
    let (home, anthropic) = (home(), Anthropic::start_blocking());
    run(&home, &anthropic, "standard", &(0..4).map(|n| turn(n, 4)).collect::<Vec<_>>());
    let broken = Anthropic::start_blocking();
    (0..20).for_each(|_| broken.push(unexplained()));
    let lines = run(&home, &broken, "standard", &(4..8).map(|n| turn(n, 1)).collect::<Vec<_>>()).lines();
    assert_eq!(lost(&lines).len(), 4, "{:#?}", replies(&lines));
    let calls: Vec<u64> = of_type(&lines, "turn").iter().filter_map(|turn| turn["calls"].as_u64()).collect();
    assert!((3..=5).contains(&calls[0]) && calls[1..] == [1, 1, 1], "tried once, and then not for an hour: {calls:?}");
    let fresh = Anthropic::start_blocking();
    let lines = run(&home, &fresh, "standard", &[turn(8, 1)]).lines();
    let sent = fresh.requests()[0].body.to_string();
    assert!(lost(&lines).is_empty() && (0..4).all(|n| sent.contains(&format!("Fact {n}:"))), "{sent}");
    let page = audit(&home);
    assert!(page.contains("context.force-pruned     0"), "what was taken back was never cut: {page}");
    assert!(page.contains("unexplained: did not help") && !page.contains("bounds of a model's window"), "{page}");
}

/// A request without it is much smaller, and nobody had tried one.
#[test]
fn a_message_that_was_too_large_by_itself_had_its_conversation_fail_for_an_hour_where_nothing_explains_refusals() {
    let (home, anthropic) = (home(), Anthropic::start_blocking());
    anthropic.set_window(5_000);
    anthropic.when_too_large(unexplained);
    let sizes = (0..30).map(|n| turn(n, if n == 3 { 60 } else { 4 }));
    let lines = run(&home, &anthropic, "standard", &sizes.collect::<Vec<_>>()).lines();
    assert_eq!(lost(&lines).len(), 1, "{:#?}", replies(&lines));
    assert!(refused(&anthropic.requests()).len() <= 6, "{:?}", refused(&anthropic.requests()));
}

/// 25 of 40 turns in a row got an ellipsis or an error.
#[test]
fn an_answer_of_nothing_to_a_large_prompt_is_recovered_and_counted() {
    for stop in ["max_tokens", "end_turn"] {
        let (home, anthropic) = (home(), Anthropic::start_blocking());
        anthropic.set_window(5_000);
        anthropic.when_too_large(move || Behaviour::stopping("", stop));
        let input: Vec<String> = (0..40).map(|n| turn(n, 4)).collect();
        let lines = run(&home, &anthropic, "standard", &input).lines();
        let silent = |reply: &&&str| !reply.contains("You said: ");
        assert_eq!(replies(&lines).iter().filter(silent).count(), 0, "{stop}: {:#?}", replies(&lines));
        assert!(refused(&anthropic.requests()).len() <= 3, "{stop}: {:?}", refused(&anthropic.requests()));
        let page = audit(&home);
        assert!(page.contains("empty: helped") && page.contains("(empty), so "), "{stop}: {page}");
    }
}

/// A conversation that had grown too large for such a server was never answered again.
#[test]
fn a_conversation_that_its_server_fails_at_without_a_word_is_answered_from_the_third_turn_on() {
    for (failure, attempts) in [
        (Behaviour::error(500, "api_error", "Internal server error"), 4),
        (Behaviour::Raw(vec![]), 4),
        // An answer that has begun is asked for once more.
        (Behaviour::Cut { text: String::new() }, 2),
    ] {
        let (home, anthropic) = (home(), Anthropic::start_blocking());
        anthropic.set_window(6_000);
        anthropic.when_too_large(move || failure.clone());
        // What it knows survives that the gateway is started anew.
        let each = (0..12).map(|n| run(&home, &anthropic, "standard", &[turn(n, 4)]).lines());
        let lines: Vec<Value> = each.flatten().collect();
        let said = replies(&lines);
        assert_eq!(lost(&lines).len(), 2, "{attempts}: {said:#?}");
        let first = said.iter().position(|reply| reply.starts_with(":x:")).expect("one that failed");
        assert!(said[first + 1].starts_with(":x:"), "{said:#?}");
        assert_eq!(refused(&anthropic.requests()).len(), 3 * attempts, "what failed is not sent again");
        // Regression: of that, what shows the window to people knew nothing.
        let shown = run(&home, &anthropic, "standard", &[question("EvC", "/pmk context")]).lines();
        let shown = replies(&shown)[0].lines().next().and_then(|line| line.split_once(" of ")).expect("the window").1;
        let limit: String = shown.chars().filter(char::is_ascii_digit).collect();
        assert!(limit.parse::<u64>().is_ok_and(|limit| limit < 6_000), "{shown}");
        let page = audit(&home);
        assert!(page.contains("failing: helped") && !page.contains("bounds of a model's window"), "{page}");
    }
}

/// A server that is down fails at every size.
#[test]
fn a_server_that_is_down_costs_the_conversation_nothing() {
    let (home, anthropic) = (home(), Anthropic::start_blocking());
    run(&home, &anthropic, "standard", &(0..4).map(|n| turn(n, 4)).collect::<Vec<_>>());
    let down = Anthropic::start_blocking();
    down.set_window(0);
    down.when_too_large(|| Behaviour::Cut { text: String::new() });
    let lines = run(&home, &down, "standard", &(4..8).map(|n| turn(n, 1)).collect::<Vec<_>>()).lines();
    assert_eq!(lost(&lines).len(), 4, "{:#?}", replies(&lines));
    let calls: Vec<u64> = of_type(&lines, "turn").iter().filter_map(|turn| turn["calls"].as_u64()).collect();
    assert!(calls[..2] == [1, 1] && calls[2] > 1 && calls[3] == 1, "tried once, and then not for an hour: {calls:?}");
    let fresh = Anthropic::start_blocking();
    let lines = run(&home, &fresh, "standard", &[turn(8, 1)]).lines();
    let sent = fresh.requests()[0].body.to_string();
    assert!(lost(&lines).is_empty() && (0..4).all(|n| sent.contains(&format!("Fact {n}:"))), "{sent}");
    let page = audit(&home);
    assert!(page.contains("failing: did not help"), "{page}");
}

/// One 413 for "hi" kept every conversation of that model below 228 tokens for an hour.
#[test]
fn a_tiny_prompt_that_is_refused_as_too_long_shuts_nobody_out() {
    for answered_before in [false, true] {
        for refusal in [
            Behaviour::error(413, "request_too_large", "プロンプトが大きすぎます"),
            Behaviour::stopping("", "model_context_window_exceeded"),
        ] {
            let (home, anthropic) = (home(), Anthropic::start_blocking());
            if answered_before {
                assert!(lost(&run(&home, &anthropic, "standard", &[turn(0, 60)]).lines()).is_empty());
            }
            let asked = anthropic.requests().len();
            (0..3).for_each(|_| anthropic.push(refusal.clone()));
            let other = question("EvB", "hi").replace("\"U1\"", "\"U2\"").replace("\"D1\"", "\"D2\"");
            let lines = run(&home, &anthropic, "standard", &[other]).lines();
            let [told] = replies(&lines)[..] else { panic!("{lines:#?}") };
            assert!(told.starts_with(":x:") && !told.contains("too long"), "{told}");
            assert_eq!(anthropic.requests().len(), asked + 1, "a smaller one cannot help");
            let large = Anthropic::start_blocking();
            let lines = run(&home, &large, "standard", &[turn(1, 60)]).lines();
            assert!(lost(&lines).is_empty(), "{:#?}", replies(&lines));
            let page = audit(&home);
            assert!(!page.contains("bounds of a model's window"), "{page}");
        }
    }
}

/// The same turn as somebody else.
fn other(turn: &str) -> String {
    turn.replace("\"U1\"", "\"U2\"").replace("\"D1\"", "\"D2\"")
}

/// One refused summary, as any other request that was not the first of an answer, took the history out of everybody's
/// conversation.
#[test]
fn a_summary_that_is_refused_as_too_long_limits_nobody() {
    for message in ["prompt is too long", "prompt is too long: 3000 tokens > 1500 maximum"] {
        let (home, anthropic) = (home(), Anthropic::start_blocking());
        run(&home, &anthropic, "strict", &[other(&turn(0, 200))]);
        anthropic.when("Fact", Behaviour::Echo);
        anthropic.when("<conversation>", Behaviour::error(400, "invalid_request_error", message));
        let ask = |input: &[String]| {
            let arguments = ["--policy", &component("rolling-summary"), "--window", "12000"];
            finish(home.asking(&anthropic, &arguments), &input.join("\n")).ok().lines()
        };
        let lines = ask(&(1..16).map(|n| turn(n, 10)).collect::<Vec<_>>());
        assert!(lost(&lines).is_empty(), "{:#?}", replies(&lines));
        assert!(
            anthropic.requests().iter().any(|asked| asked.question().contains("<conversation>")),
            "one was asked for"
        );
        let lines = ask(&[other(&turn(16, 1))]);
        let limit = of_type(&lines, "turn")[0].pointer("/tokens/limit").and_then(Value::as_u64);
        assert!(limit > Some(4_096), "{limit:?}");
        assert!(!audit(&home).contains("bounds of a model's window"), "{}", audit(&home));
    }
}

/// The rungs of one conversation, each refused in the same hour of confusion, took the history out of the others.
#[test]
fn rungs_that_are_all_refused_cost_other_conversations_nothing() {
    let (home, anthropic) = (home(), Anthropic::start_blocking());
    run(&home, &anthropic, "standard", &(0..8).map(|n| other(&turn(n, 3))).collect::<Vec<_>>());
    run(&home, &anthropic, "standard", &(10..30).map(|n| turn(n, 9)).collect::<Vec<_>>());
    (0..8).for_each(|_| anthropic.push(Behaviour::error(400, "invalid_request_error", "prompt is too long")));
    let lines = run(&home, &anthropic, "standard", &[turn(30, 9)]).lines();
    assert_eq!(lost(&lines).len(), 1, "{:#?}", replies(&lines));
    let fresh = Anthropic::start_blocking();
    let lines = run(&home, &fresh, "standard", &[other(&turn(8, 3))]).lines();
    assert!(lost(&lines).is_empty(), "{:#?}", replies(&lines));
    let sent = fresh.requests()[0].body.to_string();
    assert!((0..9).all(|n| sent.contains(&format!("Fact {n}:"))), "{}", audit(&home));
}

/// Once, a request whose answer was refused, or broke off, looked free.
#[test]
fn what_was_paid_for_without_an_answer_was_not_in_the_ledger() {
    let cut = || Behaviour::Cut { text: "half".into() };
    for paid in [vec![Behaviour::stopping("no", "refusal")], vec![cut(), cut()], vec![cut(), Behaviour::Echo]] {
        let (home, anthropic) = (home(), Anthropic::start_blocking());
        paid.iter().for_each(|behaviour| anthropic.push(behaviour.clone()));
        run(&home, &anthropic, "standard", &[turn(0, 1)]);
        let counted: u64 = anthropic.requests().iter().map(|asked| asked.prompt_tokens).sum();
        assert_eq!(anthropic.requests().len(), paid.len(), "{paid:?}");
        let ledger = home.ledger();
        let told = of_type(&ledger, "token.usage").into_iter();
        let told =
            told.flat_map(|event| ["inputTokens", "cacheReadTokens", "cacheCreationTokens"].map(|name| &event[name]));
        assert_eq!(told.filter_map(Value::as_u64).sum::<u64>(), counted, "{paid:?}: {ledger:#?}");
        let store = rusqlite::Connection::open(home.path().join("gateway/pmk-host.db")).expect("the store");
        let of_turns = "SELECT sum(input_tokens + cache_read_tokens + cache_creation_tokens) FROM turn";
        let of_turns: i64 = store.query_row(of_turns, [], |row| row.get(0)).expect("a sum");
        assert_eq!(of_turns.unsigned_abs(), counted, "{paid:?}");
    }
}

/// Once, the answers of a server that counts no prompts looked free.
#[test]
fn what_an_answer_had_cost_was_not_in_the_ledger_where_the_prompt_is_not_counted() {
    let (home, openai) = (home(), OpenAi::start());
    let choices = json!([{"index": 0, "delta": {"content": "noted"}, "finish_reason": "stop"}]);
    let noted = json!({"choices": choices, "usage": null});
    let usage = json!({"choices": [], "usage": {"prompt_tokens": -1, "completion_tokens": 812}});
    openai.push(Reply::Raw(format!("data: {noted}\n\ndata: {usage}\n\ndata: [DONE]\n\n")));
    finish(asking(&home, &openai), &turn(0, 1)).ok();
    let ledger = home.ledger();
    let told: Vec<&Value> = of_type(&ledger, "token.usage").into_iter().map(|event| &event["outputTokens"]).collect();
    assert_eq!(told, [&json!(812)]);
}

/// A model that has nothing to say to a small prompt is not asked again.
#[test]
fn an_answer_of_nothing_to_a_small_prompt_is_taken_as_it_is() {
    let (home, anthropic) = (home(), Anthropic::start_blocking());
    anthropic.push(Behaviour::answer("noted"));
    anthropic.push(Behaviour::stopping("", "max_tokens"));
    let other = question("EvB", "?").replace("\"U1\"", "\"U2\"").replace("\"D1\"", "\"D2\"");
    let lines = run(&home, &anthropic, "standard", &[turn(0, 60)]).lines();
    assert!(replies(&lines)[0].ends_with("noted"), "{lines:#?}");
    let lines = run(&home, &anthropic, "standard", &[other]).lines();
    assert_eq!(anthropic.requests().len(), 2);
    assert_eq!(replies(&lines), [":x: The model gave no answer; please rephrase your question and ask again"]);
}

/// The limit dropped from 50,720 to 1,984 for good.
#[test]
fn one_refusal_that_names_a_small_window_does_not_pin_it() {
    let (home, anthropic) = (home(), Anthropic::start_blocking());
    let lines = run(&home, &anthropic, "standard", &[turn(0, 60)]).lines();
    assert!(lost(&lines).is_empty());
    anthropic.push(Behaviour::error(400, "invalid_request_error", "prompt is too long: 9000 tokens > 4096 maximum"));
    let lines = run(&home, &anthropic, "standard", &[turn(1, 1), turn(2, 1)]).lines();
    assert!(lost(&lines).is_empty(), "{:#?}", replies(&lines));
    let limit = |turn: &Value| turn.pointer("/tokens/limit").and_then(Value::as_u64);
    assert!(limit(of_type(&lines, "turn")[1]) > Some(4_096), "{lines:#?}");
    let page = audit(&home);
    assert!(!page.contains("window of 4096"), "{page}");
}

/// A bound that is over is tried by one request, whose answer takes it away.
#[test]
fn what_no_longer_holds_is_found_out_once_a_bound_is_over() {
    let (home, small) = (home(), Anthropic::start_blocking());
    small.set_window(5_000);
    small.name_no_numbers();
    run(&home, &small, "standard", &(0..12).map(|n| turn(n, 4)).collect::<Vec<_>>());
    assert!(audit(&home).contains("so at most "), "{}", audit(&home));
    let large = Anthropic::start_blocking();
    let lines = run(&home, &large, "standard", &[turn(12, 12)]).lines();
    assert!(lost(&lines).is_empty() && audit(&home).contains("so at most "), "it still holds: {}", audit(&home));
    let store = rusqlite::Connection::open(home.path().join("gateway/pmk-host.db")).expect("the store");
    store.execute("UPDATE bound SET until = 0 WHERE kind <> 'answered'", []).expect("the time passes");
    drop(store);
    let lines = run(&home, &large, "standard", &(13..18).map(|n| turn(n, 12)).collect::<Vec<_>>()).lines();
    assert!(lost(&lines).is_empty() && !audit(&home).contains("so at most "), "{}", audit(&home));
}

/// Every bound, where it came from, when it expires, and how to be rid of it.
#[test]
fn the_audit_shows_every_bound_and_how_to_forget_it() {
    let (home, anthropic) = (home(), Anthropic::start_blocking());
    anthropic.set_window(6_000);
    let input: Vec<String> = (0..12).map(|n| turn(n, 6)).collect();
    run(&home, &anthropic, "standard", &input);
    let document = home.run(&["--json", "audit"], "").ok().json();
    let bounds = &document["tokens"]["by_model"]["anthropic-api:claude-haiku-4-5"]["bounds"];
    let kinds: Vec<&Value> = bounds.as_array().expect("bounds").iter().map(|bound| &bound["kind"]).collect();
    assert_eq!(kinds, ["refused", "window"], "{bounds:#}");
    assert_eq!((&bounds[1]["tokens"], &bounds[1]["source"]), (&json!(6_000), &json!("named")), "{bounds:#}");
    assert!(audit(&home).contains("2 bounds of a model's window were learned"), "{}", audit(&home));
    home.run(&["model", "forget"], "").ok();
    assert!(!audit(&home).contains("bounds of a model's window"), "{}", audit(&home));
}

/// Regression: the next answer of a running gateway stored again what had been forgotten.
#[test]
fn what_was_forgotten_while_a_gateway_ran_came_back() {
    let (home, anthropic) = (home(), Anthropic::start_blocking());
    anthropic.set_window(6_000);
    run(&home, &anthropic, "standard", &(0..12).map(|n| turn(n, 6)).collect::<Vec<_>>());
    let mut gateway = Running::start(home.asking(&anthropic, &[]));
    assert!(gateway.say(&turn(12, 1)));
    gateway.next_of("turn");
    let refused = home.run(&["model", "forget"], "");
    assert_eq!(refused.status.code(), Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains("hint: stop it first: `pmk-host --home "), "{}", refused.stderr);
    gateway.end();
    assert!(audit(&home).contains(" of a model's window "), "{}", audit(&home));
    home.run(&["model", "forget"], "").ok();
    assert!(!audit(&home).contains(" of a model's window "), "{}", audit(&home));
}

/// A model that thought until its room was used up was asked again and again for less, and its window was halved.
#[test]
fn an_answer_used_up_by_thinking_is_not_taken_for_a_prompt_that_is_too_large() {
    let openai = OpenAi::start();
    think_until_it_ends(&openai, 8_192);
    assert_eq!(openai.requests().len(), 2);
}

/// The room that was asked for was not used up, because the server gives less of it.
#[test]
fn an_answer_used_up_by_thinking_was_taken_for_silence_where_the_server_gives_less() {
    let openai = OpenAi::start();
    let refused = json!({"error": {"message": "Range of max_tokens should be [1,4096]"}});
    openai.refuse_when(|body| body["max_tokens"].as_u64() > Some(4_096), 400, refused);
    think_until_it_ends(&openai, 4_096);
    assert_eq!(openai.requests().len(), 4);
}

/// A smaller prompt that is answered by thoughts alone shows nothing; the turns that it left out were gone.
#[test]
fn an_answer_used_up_by_thinking_was_taken_for_one_that_shows_that_less_helps() {
    let (home, openai) = (home(), OpenAi::start());
    (0..4).for_each(|_| openai.push(Reply::Answer("noted".into())));
    openai.push(Reply::Error(400, json!({"error": {"message": "the grommet is out of plim"}})));
    openai.push(thoughts(8_192));
    let input: Vec<String> = (0..6).map(|n| turn(n, 9)).collect();
    let lines = finish(asking(&home, &openai), &input.join("\n")).ok().lines();
    let said = replies(&lines);
    assert!(said[4].starts_with(":x: The model reached the limit of its answer"), "{said:#?}");
    let [whole, smaller, last] = &openai.requests()[4..] else { panic!("{:#?}", openai.requests()) };
    assert!(openai::count_tokens(smaller) < openai::count_tokens(whole), "one was tried");
    let sent = last.to_string();
    assert!((0..4).all(|n| sent.contains(&format!("Fact {n}:"))), "{sent}");
    assert_eq!(of_type(&home.ledger(), "context.suspected").len(), 0);
    assert!(!audit(&home).contains("so at most "), "{}", audit(&home));
}

/// A gateway that asks a model which thinks.
fn asking(home: &Home, openai: &OpenAi) -> Command {
    let mut command = home.command(&["run", "--model", "openai:thinker"]);
    command.env("OPENAI_API_KEY", openai::KEY).env("OPENAI_BASE_URL", openai.url());
    command
}

/// An answer that consists of so many tokens of thoughts.
fn thoughts(tokens: u64) -> Reply {
    let choices = json!([{"index": 0, "delta": {"reasoning_content": "hm"}, "finish_reason": "length"}]);
    let thought = json!({"choices": choices, "usage": null});
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 6_000, "completion_tokens": tokens}});
    Reply::Raw(format!("data: {thought}\n\ndata: {usage}\n\ndata: [DONE]\n\n"))
}

/// Asks a model whose second answer consists of so many tokens of thoughts; expects that people are told of it.
fn think_until_it_ends(openai: &OpenAi, tokens: u64) {
    let home = home();
    openai.push(Reply::Answer("noted".into()));
    openai.push(thoughts(tokens));
    let lines = finish(asking(&home, openai), &[turn(0, 30), turn(1, 30)].join("\n")).ok().lines();
    let said = replies(&lines);
    assert!(said[1].starts_with(":x: The model reached the limit of its answer"), "{said:#?}");
    assert_eq!(of_type(&home.ledger(), "context.suspected").len(), 0);
}
