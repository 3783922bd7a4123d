//! The checked-in components make the same decisions as the native code.

use std::{path::Path, sync::Arc};

use pmk_core::{
    Block, History, Message, Origin, Role, Transcript, history,
    testing::{self, Rng},
};
use pmk_policy::{DecidedBy, IncomingInput, Layer, Outcome, Phase, Policy, PruneInput, Settings, Stack};
use pmk_policy_sdk::{
    Prune,
    testing::{Harness, Room},
};
use pmk_search::MemoryArchive;

use crate::runtime_with;

const LIMITS: [u64; 5] = [100, 1_000, 8_000, 20_000, 200_000];

/// How many random histories each policy is tested on; CI uses ten times as many.
const HISTORIES: u64 = 1_000;
const HISTORIES_VARIABLE: &str = "PMK_PARITY_HISTORIES";

/// Both forms of a policy.
struct Both<P> {
    name: &'static str,
    component: Stack,
    native: Harness<P>,
}

impl<P: Prune> Both<P> {
    fn of(name: &'static str) -> Self {
        Both { name, component: stack_of(name), native: Harness::new() }
    }

    fn agree(&self, what: &str, transcript: &Arc<Transcript>, limit: u64) {
        for seed_may_go in [false, true] {
            self.agree_in(what, transcript, Room { window: limit + 500, seed_may_go, ..Room::from(limit) });
        }
    }

    fn agree_in(&self, what: &str, transcript: &Arc<Transcript>, room: Room) {
        let Room { limit, window, seed_may_go, .. } = room;
        let at = format!("{} on {what} within {limit}, seed may go: {seed_may_go}", self.name);
        let component =
            self.component.prune(transcript, PruneInput { limit, window, phase: Phase::First, seed_may_go });
        match self.native.prune(transcript, room) {
            Ok(expected) => {
                let applied = &component.applied;
                assert_ne!(component.decided_by, DecidedBy::Floor, "{at}: {:?}", component.records);
                assert_eq!((&applied.kept, applied.tokens_after), (&expected.kept, expected.tokens_after), "{at}");
                assert_eq!((&applied.marker, &applied.recall), (&expected.marker, &expected.recall), "{at}");
                assert_eq!(applied.compaction, expected.compaction, "{at}");
            }
            Err(breach) => assert_eq!(
                component.records[0].outcome,
                Outcome::Rejected { rule: breach.rule.number(), reason: breach.what },
                "{at}"
            ),
        }
    }
}

/// A checked-in component without layers below.
fn stack_of(name: &str) -> Stack {
    let runtime = runtime_with(pmk_policy::Limits::default());
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins").join(name).with_extension("wasm");
    let policy = Policy::load(&runtime, file).unwrap();
    let settings = Settings::defaults(policy.description());
    Stack::new([], Layer { policy: Arc::new(policy), settings })
}

/// The conversation with an archive of all of its messages.
fn searchable(transcript: Transcript) -> Arc<Transcript> {
    let archive = MemoryArchive::of(&transcript.entries()[..transcript.current()]);
    Arc::new(transcript.with_archive(Arc::new(archive)))
}

fn fixtures() -> Vec<(String, Arc<Transcript>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures");
    let read = |path: &Path| {
        let repaired = history::repair(History::parse(&std::fs::read_to_string(path).unwrap()).unwrap().messages);
        searchable(Transcript::of_messages(repaired.messages.into_iter().map(|(_, message)| message)))
    };
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    files.map(|path| (path.display().to_string(), read(&path))).collect()
}

fn same_plans<P: Prune>(name: &'static str) {
    let both = Both::<P>::of(name);
    let mut histories = fixtures();
    assert!(!histories.is_empty());
    histories.extend([30, 400].map(|turns| (format!("{turns} turns with tools"), with_tools(turns))));
    histories.push(("one turn of 1,500 calls".to_owned(), one_turn(1_500)));
    histories.push(("nothing".to_owned(), Arc::new(Transcript::of_messages([]))));
    for (what, transcript) in &histories {
        LIMITS.into_iter().for_each(|limit| both.agree(what, transcript, limit));
    }
    let random = std::env::var(HISTORIES_VARIABLE).map_or(HISTORIES, |count| count.parse().unwrap());
    for seed in 0..random {
        let transcript = testing::random_transcript(seed, 1 + seed as usize % 12);
        let total = transcript.total_tokens().clamp(1, 1 << 40);
        let limit = Rng::new(!seed).bits() % (total + total / 4 + 1);
        both.agree(&format!("history {seed}"), &searchable(transcript), limit);
    }
}

#[test]
fn strict_is_the_same_in_both() {
    same_plans::<strict::Strict>("strict");
}

#[test]
fn standard_is_the_same_in_both() {
    same_plans::<standard::Standard>("standard");
}

#[test]
fn rolling_summary_is_the_same_in_both() {
    same_plans::<rolling_summary::RollingSummary>("rolling-summary");
}

#[test]
fn tool_lean_is_the_same_in_both() {
    same_plans::<tool_lean::ToolLean>("tool-lean");
}

#[test]
fn recall_is_the_same_in_both() {
    same_plans::<recall::Recall>("recall");
}

#[test]
fn caps_is_the_same_in_both() {
    let (component, native) = (stack_of("caps"), Harness::<caps::Caps>::new());
    let json = format!("{{{}}}", (0..9_000).map(|n| format!("\"k{n}\": \"v, {n}\"")).collect::<Vec<_>>().join(", "));
    let rows: String = (0..9_000).map(|n| format!("{n},名稱 {n},done\n")).collect();
    let log: String = (0..9_000).map(|n| format!("10:00:{:02} INFO step {n}\n", n % 60)).collect();
    for text in ["short".into(), "預算 ".repeat(40_000), json, rows, log] {
        for kind in [Origin::Seed, Origin::MraResult, Origin::ToolResult, Origin::Attachment] {
            let incoming = IncomingInput { kind, name: "erp".into(), text: text.as_str().into(), limit: 100_000 };
            let decision = component.cap(incoming);
            assert_eq!(decision.verdict, native.cap(kind, "erp", &text, 100_000), "{:?}", decision.records);
        }
    }
}

#[test]
fn facts_summary_is_the_same_in_both() {
    let (component, native) = (stack_of("facts-summary"), Harness::<facts_summary::FactsSummary>::new());
    let mut histories: Vec<Arc<Transcript>> = fixtures().into_iter().map(|(_, transcript)| transcript).collect();
    histories.extend((0..200).map(|seed| searchable(testing::random_transcript(seed, 1 + seed as usize % 40))));
    for transcript in histories {
        let decision = component.summarize(&transcript, 2_000);
        assert_eq!(decision.text, native.summarize(&transcript, 2_000), "{:?}", decision.records);
    }
}

/// Full conversations: the policy must not run out of fuel on what a gateway ordinarily stores.
#[test]
fn facts_summary_reads_a_hundred_long_messages_of_either_script() {
    let component = stack_of("facts-summary");
    let english = "We agreed with Priya that budget_worker.rb moves to the new queue on day 7, as she said in May. ";
    let chinese = "我們和王副理說好，預算的排程會在五月改到新的主機上面，費用還是先前談過的那個數字。";
    for text in [english, chinese] {
        let answer = |at: usize| format!("{at} {}", text.repeat(1_500 / text.chars().count() + 1));
        let messages = (0..60).flat_map(|at| [Message::user(answer(at)), Message::assistant(answer(at + 60))]);
        let transcript = searchable(Transcript::of_messages(messages));
        let decision = component.summarize(&transcript, 2_000);

        assert_ne!(decision.decided_by, DecidedBy::Floor, "{text}: {:?}", decision.records);
    }
}

/// Built against 1.1.0, which had no archive.
#[test]
fn a_component_of_an_older_contract_decides_as_ever() {
    let both = Both::<rolling_summary::RollingSummary>::of("../tests/contract-1.1.0/rolling-summary");
    // Limits with room for every last turn: with less room, today's component shortens it.
    let roomy = LIMITS.into_iter().filter(|&limit| limit >= 20_000);
    for (what, transcript) in fixtures() {
        roomy.clone().for_each(|limit| both.agree(&what, &transcript, limit));
    }
}

/// A seed pair, then turns, every third of which calls a tool with a long result.
fn with_tools(turns: usize) -> Arc<Transcript> {
    let mut messages = vec![
        Message::text(Role::User, Origin::Seed, "知識庫 ".repeat(60)),
        Message::text(Role::Assistant, Origin::SeedAck, "understood"),
    ];
    for turn in 0..turns {
        messages.push(Message::user(format!("question {turn} {}", "預算 ".repeat(turn % 17))));
        if turn % 3 == 0 {
            let (id, name) = (format!("t{}", turn % 5), "search".to_owned());
            let call = Block::ToolUse { id: id.clone(), name, input: serde_json::json!({ "q": turn }) };
            let result = Block::ToolResult {
                tool_use_id: id,
                content: "a line of what was found\n".repeat(90),
                is_error: false,
            };
            messages.push(Message { role: Role::Assistant, origin: Origin::Assistant, blocks: vec![call] });
            messages.push(Message { role: Role::User, origin: Origin::ToolResult, blocks: vec![result] });
        }
        messages.push(Message::assistant(format!("answer {turn} {}", "it is fine ".repeat(turn % 13))));
    }
    messages.push(Message::user("and now?"));
    searchable(Transcript::of_messages(messages))
}

/// A single turn of so many calls, each with a result of 2,000 characters, as an imported conversation may have one.
fn one_turn(calls: usize) -> Arc<Transcript> {
    let mut messages = vec![Message::user("do it all")];
    for at in 0..calls {
        let id = format!("t{at}");
        let call = Block::ToolUse { id: id.clone(), name: "search".into(), input: serde_json::json!({ "q": at }) };
        let content = "a line of what was found\n".repeat(80);
        let result = Block::ToolResult { tool_use_id: id, content, is_error: false };
        messages.push(Message { role: Role::Assistant, origin: Origin::Assistant, blocks: vec![call] });
        messages.push(Message { role: Role::User, origin: Origin::ToolResult, blocks: vec![result] });
    }
    messages.extend([Message::assistant("all of it is done"), Message::user("and now?")]);
    searchable(Transcript::of_messages(messages))
}
