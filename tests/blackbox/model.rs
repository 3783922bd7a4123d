//! The gateway with Anthropic's API behind it, against a stand-in that keeps its rules.

use pmk_stand_ins::anthropic::{Anthropic, Behaviour};
use serde_json::{Value, json};

use crate::{
    receipts,
    support::{Finished, Home, component, finish, of_type, question, replies},
};

fn ask(home: &Home, anthropic: &Anthropic, more: &[&str], questions: &[String]) -> Finished {
    finish(home.asking(anthropic, more), &questions.join("\n")).ok()
}

#[test]
fn a_conversation_is_sent_as_the_api_wants_it() {
    let home = Home::new();
    let anthropic = Anthropic::start_blocking();
    let questions: Vec<String> = (0..30).map(|n| question(&format!("Ev{n}"), &format!("Question {n}"))).collect();
    let strict = component("strict");
    let more = ["--policy", &strict, "--set", "strict.max-session-tokens=1"];
    let lines = ask(&home, &anthropic, &more, &questions).lines();
    assert_eq!(replies(&lines).len(), 30);
    let requests = anthropic.requests();
    assert!(requests.iter().all(|request| request.refused.is_none()), "{requests:#?}");
    let first = requests.last().expect("requests").body["messages"][0].clone();
    assert!(first.to_string().contains("(此處省略 19 輪較舊的對話以節省 context)"), "{first}");
}

#[test]
fn an_overflow_is_trimmed_and_answered() {
    let home = Home::new();
    let anthropic = Anthropic::start_blocking();
    anthropic.set_window(3_000);
    let filler = "預算分配比例".repeat(60);
    let questions: Vec<String> = (0..20).map(|n| question(&format!("Ev{n}"), &format!("{n} {filler}"))).collect();
    let lines = ask(&home, &anthropic, &[], &questions).lines();
    let replies = replies(&lines);
    assert_eq!(replies.len(), 20);
    assert!(replies.iter().all(|reply| !reply.starts_with(":x:")), "{replies:#?}");
    assert!(replies.iter().any(|reply| reply.starts_with(":scissors: 對話過長，已自動裁掉 ")), "{replies:#?}");
    let trimmed: Vec<&Value> =
        of_type(&lines, "turn").into_iter().filter(|turn| turn["rungs"] == serde_json::json!(["trim"])).collect();
    assert!(!trimmed.is_empty() && trimmed.iter().all(|turn| turn["calls"] == 2), "{trimmed:#?}");
    let ledger = home.ledger();
    let event = |kind: &str| ledger.iter().find(|event| event["type"] == kind).cloned().unwrap_or_default();
    assert_eq!(event("context.exceeded")["phase"], "first-call");
    assert_eq!(event("context.exceeded")["allowedTokens"], 3_000);
    assert!(event("context.force-pruned")["droppedPairs"].as_u64() > Some(0));
}

/// Specification 000 §2.2 and §3.
#[test]
fn an_overflow_after_an_mra_round_is_trimmed_and_answered() {
    let (home, anthropic) = (Home::new(), Anthropic::start_blocking());
    home.write("gateway.json", r#"{"version": 1, "language": "en", "mra": {"command": ["echo"]}}"#);
    receipts::plant(&home);
    (0..4).for_each(|_| anthropic.push(Behaviour::answer("noted")));
    anthropic.push(Behaviour::calls([("mra_ask", json!({"repo": "erp", "question": "which scope?"}))]));
    anthropic.push(Behaviour::error(400, "invalid_request_error", "prompt is too long"));
    anthropic.push(Behaviour::answer("The sales scope."));
    let facts = (0..4).map(|n| question(&format!("Ev{n}"), &format!("Fact {n}. {}", "filler ".repeat(150))));
    let asked = question("Ev4", "Where is the scope of sales performances defined?");
    let lines = ask(&home, &anthropic, &[], &facts.chain([asked]).collect::<Vec<_>>()).lines();
    let last = replies(&lines).pop().expect("an answer");
    assert!(last.starts_with(":scissors: The conversation was too long; 3 older turns were left out\n\n"), "{last}");
    assert!(last.ends_with("The sales scope."), "{last}");
    let turns = of_type(&lines, "turn");
    assert_eq!((&turns[4]["rungs"], &turns[4]["calls"]), (&json!(["trim"]), &json!(3)), "{turns:#?}");
    let ledger = home.ledger();
    let [exceeded] = of_type(&ledger, "context.exceeded")[..] else { panic!("{ledger:#?}") };
    assert_eq!((&exceeded["actor"], &exceeded["phase"]), (&json!("U1"), &json!("synthesise")));
    assert_eq!(exceeded["retrievalAtoms"], 1);
    let [pruned] = of_type(&ledger, "context.force-pruned")[..] else { panic!("{ledger:#?}") };
    assert_eq!((&pruned["actor"], &pruned["droppedPairs"]), (&json!("U1"), &json!(3)));
    let [before, after] = [&exceeded["sessionTokensBefore"], &pruned["tokensAfter"]].map(Value::as_u64);
    assert!(after > Some(0) && before > after, "{exceeded} {pruned}");
}

#[test]
fn a_prompt_that_never_fits_ends_honestly_and_leaves_nothing_behind() {
    let home = Home::new();
    let anthropic = Anthropic::start_blocking();
    anthropic.set_window(4_000);
    let large = question("Ev1", &"預算分配比例".repeat(800));
    let lines = ask(&home, &anthropic, &[], &[large, question("Ev2", "hello")]).lines();
    let replies = replies(&lines);
    // The refusal has taught what is too much: a new thread would not help.
    assert!(replies[0].starts_with(":x: 這則訊息太長：約 "), "{replies:#?}");
    assert!(!replies[1].starts_with(":x:"), "{replies:#?}");
    let shown = home.run(&["sessions", "show", "console:dm:U1"], "").ok().stdout;
    assert!(!shown.contains("預算"), "what failed is not in the live window");
    let archive = home.run(&["sessions", "show", "console:dm:U1", "--full"], "").ok().stdout;
    assert!(archive.contains("預算"), "it is in the archive");
}

#[test]
fn each_failure_is_said_honestly_and_the_next_question_is_answered() {
    for (behaviour, wanted) in [
        (Behaviour::error(401, "authentication_error", "invalid x-api-key"), "帳號"),
        (Behaviour::error(400, "invalid_request_error", "messages: odd"), "回報錯誤"),
        (Behaviour::Stall { text: "let me".into() }, "時限"),
        (Behaviour::stopping("I would rather not", "refusal"), "拒絕"),
    ] {
        let (home, anthropic) = (Home::new(), Anthropic::start_blocking());
        let stalls = matches!(behaviour, Behaviour::Stall { .. });
        anthropic.when("hello", behaviour);
        anthropic.when("and now?", Behaviour::answer("here I am"));
        let questions = [question("Ev1", "hello"), question("Ev2", "and now?")];
        let lines = if stalls {
            // With so little patience nothing else may be asked: an answer may take its time.
            home.write("gateway.json", r#"{"version":1,"limits":{"modelIdleSeconds":0.5}}"#);
            let stalled = ask(&home, &anthropic, &[], &questions[..1]).lines();
            home.write("gateway.json", r#"{"version":1}"#);
            [stalled, ask(&home, &anthropic, &[], &questions[1..]).lines()].concat()
        } else {
            ask(&home, &anthropic, &[], &questions).lines()
        };
        let replies = replies(&lines);
        assert!(replies[0].starts_with(":x: ") && replies[0].contains(wanted), "{replies:?}");
        assert_eq!(replies[1..], ["here I am"]);
        assert!(!replies[0].contains("x-api-key"), "a provider's words are for the log: {replies:?}");
    }
}

/// Once, the ledger said the same of it as of an answer.
#[test]
fn a_turn_that_the_model_did_not_answer_was_answered_by_the_ledger() {
    let (home, anthropic) = (Home::new(), Anthropic::start_blocking());
    anthropic.when("hello", Behaviour::error(401, "authentication_error", "invalid x-api-key"));
    anthropic.when("and now?", Behaviour::answer("here I am"));
    ask(&home, &anthropic, &[], &[question("Ev1", "hello"), question("Ev2", "and now?")]);
    let unanswered: Vec<Option<String>> =
        home.events("turn.processed").iter().map(|turn| turn["unanswered"].as_str().map(str::to_owned)).collect();
    assert_eq!(unanswered, [Some("auth".to_owned()), None]);
    let page = home.run(&["audit"], "").ok().stdout;
    assert!(page.contains("  no answer                1 (auth 1)\n"), "{page}");
}

/// Once, everybody was asked to tell an admin, and nobody told them.
#[test]
fn the_admins_heard_nothing_of_a_model_that_refuses_everybody() {
    for (language, refuses, answers) in
        [("en", "The model `claude-", "answers again"), ("zh-TW", "模型 `claude-", "又能回答了")]
    {
        let (home, anthropic) = (Home::new(), Anthropic::start_blocking());
        home.write("gateway.json", format!(r#"{{"version":1,"language":"{language}","admins":["U0ADMIN"]}}"#));
        anthropic.when("hello", Behaviour::error(401, "authentication_error", "invalid x-api-key"));
        anthropic.when("and now?", Behaviour::answer("here I am"));
        let questions = [("Ev1", "hello"), ("Ev2", "hello"), ("Ev3", "and now?")].map(|(id, text)| question(id, text));
        let lines = ask(&home, &anthropic, &[], &questions).lines();
        let notices: Vec<&str> = of_type(&lines, "notice")
            .into_iter()
            .filter(|notice| notice["channel"] == "U0ADMIN")
            .filter_map(|notice| notice["text"].as_str())
            .collect();
        let [first, last] = notices[..] else { panic!("{notices:#?}") };
        assert!(first.contains(refuses) && first.contains("pmk-host doctor"), "{first}");
        assert!(last.contains(answers), "{last}");
    }
}

#[test]
fn waiting_helps_where_it_helps() {
    let home = Home::new();
    let anthropic = Anthropic::start_blocking();
    anthropic.push(Behaviour::error(529, "overloaded_error", "Overloaded"));
    anthropic.push(Behaviour::error(429, "rate_limit_error", "slow down").with_header("retry-after", "1"));
    let lines = ask(&home, &anthropic, &[], &[question("Ev1", "hello")]).lines();
    assert!(!replies(&lines)[0].starts_with(":x:"), "{lines:?}");
    assert_eq!(anthropic.requests().len(), 3);
}

#[test]
fn an_answer_that_is_cut_off_is_asked_for_once_more_and_never_shown_in_part() {
    let half = || Behaviour::Cut { text: "half an answer".into() };
    let (home, anthropic) = (Home::new(), Anthropic::start_blocking());
    anthropic.push(half());
    anthropic.push(Behaviour::answer("all of it"));
    let lines = ask(&home, &anthropic, &[], &[question("Ev1", "hello")]).lines();
    assert_eq!((replies(&lines), anthropic.requests().len()), (vec!["all of it"], 2));
    (0..2).for_each(|_| anthropic.push(half()));
    let lines = ask(&home, &anthropic, &[], &[question("Ev2", "and now?")]).lines();
    assert!(replies(&lines)[0].starts_with(":x: ") && !replies(&lines)[0].contains("half"), "{lines:?}");
    assert_eq!(anthropic.requests().len(), 4);
}

#[test]
fn what_is_missing_is_named_before_anything_starts() {
    let home = Home::new();
    let run = |arguments: &[&str]| {
        let finished = home.run(arguments, "");
        assert_eq!(finished.status.code(), Some(1), "{arguments:?}");
        finished.stderr
    };
    let missing = run(&["run", "--model", "anthropic-api"]);
    assert!(missing.contains("ANTHROPIC_API_KEY") && missing.contains("hint: "), "{missing}");
    let unknown = run(&["run", "--model", "gpt"]);
    assert!(unknown.contains("`gpt`") && unknown.contains("hint: "), "{unknown}");
    home.write("gateway.json", r#"{"version":1,"apiKey":"sk-1"}"#);
    let cli = run(&["run"]);
    assert!(cli.contains("claude-cli") && cli.contains("--model"), "{cli}");
}
