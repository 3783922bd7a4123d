//! The incidents that this gateway was built after, replayed (specifications 000, 001, 002 and 004). Each ends in an
//! answer, and does not when the part that prevents it is switched off.

use pmk_core::{Block, Guard, History, Message, Origin, Plan, Role, Transcript, message, testing::pairs_are_whole};
use pmk_models::{ErrorClass, Meter, Model, Request, anthropic::Anthropic as Client, http, streamed::Config};
use pmk_stand_ins::anthropic::{self, Anthropic, Behaviour};
use serde_json::{Value, json};

use crate::support::{Home, Running, component, finish, of_type, peak_memory, question, replies, stand_in};

/// About as many tokens as the session of specification 000 had, in characters.
const SEED_CHARS: usize = 88_292;

/// A workspace whose documents are as large as the ones of the incident.
fn workspace() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let document = "本月各部門廣告預算分配比例 budget_allocation ".repeat(SEED_CHARS / 4 / 32);
    for name in ["sitemap", "architecture", "conventions", "api-surface"] {
        let path = folder.path().join(format!("{name}.md"));
        std::fs::write(path, format!("# {name}\n{document}")).expect("a document");
    }
    folder
}

/// Specification 000: a large seed, and questions to `mra` whose results are larger still.
fn seed_000(window: u64, settings: &Value) -> (Vec<Value>, Vec<Value>) {
    let home = Home::new();
    let documents = workspace();
    let script = home.write("mra.script", "flood 60000");
    home.write(
        "gateway.json",
        json!({
            "version": 1,
            "defaultIngest": format!("dir:{}", documents.path().display()),
            "mra": {"command": stand_in("mra", &script)},
            "policy": {"settings": {"strict": settings}},
        })
        .to_string(),
    );
    let anthropic = Anthropic::start_blocking();
    anthropic.set_window(window);
    anthropic.when("的結果，請根據它回答剛才的問題：", Behaviour::answer("It is in the budget worker."));
    anthropic.when("Question", Behaviour::calls([("mra_ask", json!({"repo": "erp", "question": "where?"}))]));
    let input: Vec<String> =
        (0..6).map(|n| question(&format!("Ev{n}"), &format!("Question {n}: where is it computed?"))).collect();
    let mut command = home.asking(&anthropic, &["--policy", &component("strict"), "--window", "60000"]);
    command.env_remove("PMK_MAX_SESSION_TOKENS");
    let lines = finish(command, &input.join("\n")).ok().lines();
    (lines, home.ledger())
}

#[test]
fn seed_000_a_large_seed_and_large_results_end_in_answers() {
    let (lines, ledger) = seed_000(60_000, &json!({}));
    assert_eq!(replies(&lines).len(), 6);
    assert!(replies(&lines).iter().all(|reply| *reply == "It is in the budget worker."), "{:#?}", replies(&lines));
    let count = |kind: &str| ledger.iter().filter(|event| event["type"] == kind).count();
    assert_eq!(count("context.exceeded"), 0, "nothing too long was ever sent");
    assert!(count("message.capped") > 6, "the seed and every result stand in part");
}

#[test]
fn seed_000_without_its_caps_and_its_budget_runs_into_the_window() {
    let off = json!({"seed-cap": 1_000_000, "mra-result-cap": 1_000_000, "max-session-tokens": 10_000_000});
    // The model's window is smaller than what the gateway is told, as an SDK's overhead made it.
    let (lines, ledger) = seed_000(12_000, &off);
    assert!(ledger.iter().any(|event| event["type"] == "context.exceeded"), "the incident happens");
    assert_eq!(replies(&lines).len(), 6, "and is recovered from all the same");
}

/// Specification 001: entries keep coming, none of them large.
#[test]
fn seed_001_a_session_that_only_grows_still_answers() {
    let home = Home::new();
    let input: Vec<String> = (0..160)
        .map(|n| {
            question(
                &format!("Ev{n}"),
                &format!("Entry {n}: {}", "the daemon has logged more of the same. ".repeat(55)),
            )
        })
        .chain([question("EvLast", "What is entry 159 about?")])
        .collect();
    let lines = home.run(&["run", "--model", "sim", "--window", "30000"], &input.join("\n")).ok().lines();
    let answers = replies(&lines);
    assert_eq!(answers.len(), 161);
    assert!(answers.iter().all(|reply| !reply.starts_with(":x:")), "a black hole");
    assert!(of_type(&lines, "turn").iter().all(|turn| turn["rungs"] == json!([])), "prevented, not recovered from");
}

/// Turns of one, three and ten tool calls, as those of specification 002 were, with text before and after.
fn tool_turns() -> Vec<Message> {
    let mut messages = vec![];
    for (turn, calls) in [1usize, 3, 10, 3, 1, 10].into_iter().enumerate() {
        messages.push(Message::user(format!("question {turn}")));
        for call in 0..calls {
            let id = format!("t{turn}_{call}");
            let input = json!({"path": format!("f{call}.rs")});
            messages.push(Message {
                role: Role::Assistant,
                origin: Origin::Assistant,
                blocks: vec![Block::ToolUse { id: id.clone(), name: "read".into(), input }],
            });
            let content = "content ".repeat(50);
            messages.push(Message {
                role: Role::User,
                origin: Origin::ToolResult,
                blocks: vec![Block::ToolResult { tool_use_id: id, content, is_error: false }],
            });
        }
        messages.push(Message::assistant(format!("answer {turn}")));
    }
    messages.push(Message::user("and now?"));
    messages
}

#[test]
fn seed_002_no_cut_at_any_place_tears_a_tool_pair() {
    let messages = tool_turns();
    let transcript = Transcript::of_messages(messages.clone());
    let guard = Guard { limit: 1_000_000, seed_may_go: false, must_shrink: false };
    let (mut accepted, mut torn_without) = (0, 0);
    for start in 0..messages.len() as u32 {
        for end in start + 1..=messages.len() as u32 {
            let mut plan = Plan::new();
            plan.remove(&transcript, start, end);
            if let Ok(applied) = guard.apply(&transcript, &plan) {
                accepted += 1;
                assert!(pairs_are_whole(&applied.messages(&transcript)), "{start}..{end} tears a pair");
            }
            let mut cut = messages.clone();
            cut.drain(start as usize..end as usize);
            torn_without += usize::from(!pairs_are_whole(&cut));
        }
    }
    assert!(accepted >= 15, "whole turns may go: {accepted}");
    assert!(torn_without > 100, "without the guard most cuts tear a pair: {torn_without}");
}

/// What pmk did: the history cut by count of messages, wherever that is.
#[tokio::test]
async fn seed_002_without_the_guard_the_provider_refuses_the_session_for_ever() {
    let server = Anthropic::start().await;
    // Both halves of a pair that is torn.
    server.expect_refusals("`tool_use");
    let _ = rustls::crypto::ring::default_provider().install_default();
    let url = http::base_url("the test's", &server.url(), true).expect("loopback");
    let client = Client::new(Config::new(Some(anthropic::KEY.into()), url, "claude-haiku-4-5")).expect("a client");
    let messages = tool_turns();
    let (mut whole, mut torn) = (0, 0);
    for oldest_kept in 1..messages.len() {
        let cut: Vec<Message> = messages[..1].iter().chain(&messages[oldest_kept..]).cloned().collect();
        let expected = pairs_are_whole(&cut);
        let request = Request { messages: message::shared(cut), max_answer_tokens: 100, ..Request::default() };
        match client.ask(&request, &Meter::default()).await {
            Ok(_) => {
                assert!(expected, "{oldest_kept}");
                whole += 1;
            }
            Err(error) if error.class == ErrorClass::MalformedHistory => {
                assert!(!expected, "{oldest_kept}");
                torn += 1;
            }
            Err(error) => panic!("{oldest_kept}: {error}"),
        }
    }
    assert!(torn > 20 && whole > 20, "{torn} refused, {whole} answered");
}

#[test]
fn seed_002_every_prefix_of_the_session_is_planned_whole() {
    let home = Home::new();
    let messages = tool_turns();
    for end in 1..messages.len() {
        let mut shown: Vec<Message> = messages[..end].to_vec();
        shown.push(Message::user("and now?"));
        let values: Vec<Value> =
            shown.iter().map(|message| json!({"role": message.role, "content": message.blocks})).collect();
        let history = home.write("history.json", json!({"messages": values}).to_string());
        for policy in ["standard", "strict"] {
            let history = history.display().to_string();
            let policy = component(policy);
            let arguments = ["plan", "--policy", &policy, "--history", &history, "--budget", "700", "--json"];
            let plan = home.run(&arguments, "").ok().json();
            let kept: Vec<usize> = plan["kept"]
                .as_array()
                .expect("a list")
                .iter()
                .filter_map(Value::as_u64)
                .map(|at| at as usize)
                .collect();
            let parsed = History::parse(&std::fs::read_to_string(&history).expect("the file")).expect("a history");
            let kept: Vec<Message> = kept.into_iter().map(|at| parsed.messages[at].clone()).collect();
            assert!(pairs_are_whole(&kept), "{end} {policy}: {plan:#}");
        }
    }
}

/// Specification 004: no single result is large, but there are many of them. The model's window, and what the gateway
/// takes it for.
fn seed_004(real: u64, told: &str) -> (Vec<Value>, Vec<Value>, bool) {
    let home = Home::new();
    let script = home.write("mra.script", "flood 16000");
    let mra = json!({"command": stand_in("mra", &script)});
    home.write("gateway.json", json!({"version": 1, "mra": mra}).to_string());
    let anthropic = Anthropic::start_blocking();
    anthropic.set_window(real);
    anthropic.when("的結果，請根據它回答剛才的問題：", Behaviour::answer("Found it."));
    anthropic.when(
        "Question",
        Behaviour::calls((0..5).map(|n| ("mra_ask", json!({"repo": "erp", "question": format!("part {n}?")})))),
    );
    let input: Vec<String> = (0..12).map(|n| question(&format!("Ev{n}"), &format!("Question {n}"))).collect();
    let command = home.asking(&anthropic, &["--policy", &component("standard"), "--window", told]);
    let lines = finish(command, &input.join("\n")).ok().lines();
    let refused: Vec<String> = anthropic.requests().into_iter().filter_map(|request| request.refused).collect();
    eprintln!("{refused:#?}");
    (lines, home.ledger(), !refused.is_empty())
}

#[test]
fn seed_004_many_medium_tool_results_end_in_answers() {
    let (lines, ledger, broken) = seed_004(24_000, "24000");
    assert_eq!(replies(&lines).len(), 12);
    assert!(replies(&lines).iter().all(|reply| *reply == "Found it."), "{:#?}", replies(&lines));
    let replaced: u64 = of_type(&lines, "turn").iter().filter_map(|turn| turn["messages_replaced"].as_u64()).sum();
    assert!(replaced > 10, "old results shrink before turns go: {replaced}");
    assert!(ledger.iter().all(|event| event["type"] != "context.exceeded") && !broken);
}

#[test]
fn seed_004_without_a_budget_ahead_of_the_call_runs_into_the_window() {
    let (lines, ledger, _) = seed_004(24_000, "1000000");
    let exceeded: Vec<&Value> = ledger.iter().filter(|event| event["type"] == "context.exceeded").collect();
    assert!(!exceeded.is_empty(), "the incident happens");
    assert_eq!(replies(&lines).len(), 12, "and is recovered from all the same");
    assert!(replies(&lines).iter().all(|reply| reply.ends_with("Found it.")), "{:#?}", replies(&lines));
}

#[test]
fn seed_001_without_a_budget_ahead_of_the_call_runs_into_the_window() {
    let home = Home::new();
    let anthropic = Anthropic::start_blocking();
    anthropic.set_window(30_000);
    let input: Vec<String> = (0..60)
        .map(|n| {
            question(
                &format!("Ev{n}"),
                &format!("Entry {n}: {}", "the daemon has logged more of the same. ".repeat(55)),
            )
        })
        .collect();
    let command = home.asking(&anthropic, &["--policy", &component("standard"), "--window", "1000000"]);
    let lines = finish(command, &input.join("\n")).ok().lines();
    assert!(home.ledger().iter().any(|event| event["type"] == "context.exceeded"), "the incident happens");
    let answers = replies(&lines);
    assert!(answers.len() == 60 && answers.iter().all(|reply| !reply.starts_with(":x:")), "and is recovered from");
}

/// How many entries and bytes the session of specification 001 had.
const SEED_001_ENTRIES: usize = 15_276;
const SEED_001_BYTES: u64 = 35 << 20;

/// A home that has taken over the session of specification 001 from pmk's file.
fn seed_001_session() -> Home {
    let home = Home::new();
    let entry = |n: usize| {
        let role = if n.is_multiple_of(2) { "user" } else { "assistant" };
        json!({"role": role, "content": format!("entry {n}: {}", "the daemon has logged more of the same. ".repeat(57))})
    };
    let messages: Vec<Value> = (0..SEED_001_ENTRIES).map(entry).collect();
    let session = json!({"userId": "U1", "messages": messages, "lastActiveAt": 1_772_000_000_000_u64, "turns": 7_638});
    let folder = home.path().join("slack/users/U1");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("session.json"), session.to_string()).expect("the session");
    let tree = home.path().join("slack").display().to_string();
    home.run(&["sessions", "import", &tree], "").ok();
    // pmk's direct message is Slack's; the console goes on with it under its own name.
    let exported = home.path().join("all.jsonl");
    home.run(&["sessions", "export", "--all", "--to", &exported.display().to_string()], "").ok();
    let dump = std::fs::read_to_string(&exported).expect("the export").replace("slack:dm:U1", "console:dm:U1");
    std::fs::write(&exported, dump).expect("the export");
    let other = Home::new();
    other.run(&["sessions", "import", &exported.display().to_string()], "").ok();
    other
}

#[test]
fn seed_001_the_session_of_15_276_entries_is_taken_over_and_answers() {
    let home = seed_001_session();
    let anthropic = Anthropic::start_blocking();
    anthropic.set_window(180_000);
    let command = home.asking(&anthropic, &["--policy", &component("standard"), "--window", "180000"]);
    let lines = finish(command, &question("Ev1", "Are you still there?")).ok().lines();
    assert_eq!(replies(&lines), ["You said: Are you still there?"]);
    let turn = of_type(&lines, "turn")[0];
    assert!(turn["turns_dropped"].as_u64() > Some(7_000), "{turn}");
    assert_eq!(turn["rungs"], json!([]), "prevented, not recovered from");
    assert_eq!(anthropic.requests().len(), 1);
}

/// With nothing dropped ahead, all of it is sent, refused, and trimmed.
#[test]
fn seed_001_the_session_of_15_276_entries_recovers_within_four_times_its_size() {
    let home = seed_001_session();
    let anthropic = Anthropic::start_blocking();
    anthropic.set_window(180_000);
    let mut running =
        Running::start(home.asking(&anthropic, &["--policy", &component("standard"), "--window", "100000000"]));
    assert!(running.say(&question("Ev1", "Are you still there?")));
    let turn = running.next_of("turn");
    assert_eq!(turn["rungs"], json!(["trim"]), "{turn}");
    let peak = peak_memory(running.pid());
    eprintln!("peak memory: {} MiB", peak >> 20);
    assert!(peak < 4 * SEED_001_BYTES, "{} MiB", peak >> 20);
    let (status, _) = running.end();
    assert!(status.success());
    // The API takes no body of more than 32 MB: the first one is refused before it is read.
    let sizes: Vec<usize> = anthropic.requests().iter().map(|request| request.body.to_string().len()).collect();
    assert!(sizes.len() == 1 && sizes[0] < 10_000, "{sizes:?}");
    assert!(home.ledger().iter().any(|event| event["type"] == "context.exceeded"));
}
