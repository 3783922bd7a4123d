//! Runs an attack and records the result.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use pmk_core::{Block, CapVerdict, Message, Origin, Role, Transcript};
use pmk_policy::{
    CompileLimits, Compiler, DecidedBy, IncomingInput, Layer, Limits, LoadError, Outcome, OverflowInput, Phase, Policy,
    PruneDecision, PruneInput, Record, Rung, Runtime, RuntimeConfig, Settings, Stack,
};

use pmk_search::MemoryArchive;

use crate::{
    corpus::Attack,
    memory::{MIB, peak_bytes},
};

/// The limits of a component: enough for every honest one, and exhausted quickly.
pub const LIMITS: Limits = Limits {
    fuel_base: 120_000_000,
    fuel_per_message: 1_000,
    fuel_per_token: 0,
    fuel_most: u64::MAX,
    wall: Duration::from_secs(20),
    memory_bytes: 8 << 20,
    table_elements: 10_000,
    host_allocation_bytes: 1 << 20,
    log_bytes: 8 << 10,
    compile: CompileLimits::DEFAULT,
};

/// The memory that the host may need in addition to the component's own, whatever the component does.
const HOST_BYTES: u64 = 24 * MIB;

/// Only a decision that never ends takes this long.
const PATIENCE: Duration = Duration::from_secs(60);

/// A row of the table.
pub struct Row {
    pub group: &'static str,
    pub attack: String,
    pub asked: &'static str,
    pub happens: String,
    pub reason: String,
}

/// An answer as text, such that two are equal only if the answers are.
#[derive(Debug, PartialEq)]
struct Answer {
    what: String,
    decided_by: DecidedBy,
    records: Vec<Record>,
}

/// The policy below all others, and the conversation that it decides about.
pub struct Bench {
    runtime: Runtime,
    base: Layer,
    transcript: Arc<Transcript>,
}

impl Bench {
    pub fn new() -> Self {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins/standard.wasm");
        let standard = std::fs::read(file).unwrap();
        let runtime = runtime(LIMITS);
        let base = layer(&runtime, &standard).unwrap();
        Bench { runtime, base, transcript: conversation() }
    }

    /// A stack with the attack above `standard`.
    pub fn stack(&self, attack: &Attack) -> Result<Stack, LoadError> {
        if attack.limits == LIMITS {
            return Ok(Stack::new([layer(&self.runtime, &attack.bytes)?], self.base.clone()));
        }
        // `standard` keeps time limits that no machine exceeds.
        Ok(Stack::new([layer(&runtime(attack.limits), &attack.bytes)?], self.base.clone()))
    }

    /// All decisions of `standard` alone, costs included.
    pub fn reference(&self) -> Vec<String> {
        let alone = Stack::new([], self.base.clone());
        let answers = [
            self.ask(&alone, "cap"),
            self.ask(&alone, "prune"),
            self.ask(&alone, "summarize"),
            self.ask(&alone, "recover"),
        ];
        answers.map(|answer| format!("{} {:?} {}", answer.what, answer.decided_by, answer.records[0].fuel)).into()
    }

    pub fn prune(&self, stack: &Stack) -> PruneDecision {
        // Less than the conversation has, so that an empty plan is not accepted either.
        let limit = self.transcript.total_tokens() - 100;
        let input = PruneInput { limit, window: limit + 4_000, phase: Phase::First, seed_may_go: false };
        stack.prune(&self.transcript, input)
    }

    /// Loads the attack and asks it for every decision that it exports.
    pub fn attack(&self, attack: &Attack) -> Vec<Row> {
        let start = Instant::now();
        let row = |asked, happens: String, reason: String| Row {
            group: attack.group,
            attack: attack.name.clone(),
            asked,
            happens,
            reason,
        };
        let (loaded, peak) = peak_bytes(|| self.stack(attack));
        assert!(peak < attack.load_bytes, "{}: {peak} bytes to load it", attack.name);
        let stack = match loaded {
            Ok(stack) => stack,
            Err(error) => {
                assert!(error.hint().is_some(), "{}: {error}", attack.name);
                assert!(
                    error.to_string().len() < 1_000,
                    "{}: a message of {} bytes",
                    attack.name,
                    error.to_string().len()
                );
                assert!(!error.to_string().contains(char::is_control), "{}: {error:?}", attack.name);
                assert!(start.elapsed() < PATIENCE, "{}: {:?}", attack.name, start.elapsed());
                return vec![row("load", "refused".into(), error.to_string())];
            }
        };
        let exports = stack.top().policy.exports();
        let alone = Stack::new([], stack.layers().nth(1).unwrap().clone());
        let decisions = [
            ("cap", exports.cap),
            ("prune", exports.prune),
            ("summarize", exports.summarize),
            ("recover", exports.recover),
        ];
        let mut rows = Vec::new();
        for (decision, _) in decisions.into_iter().filter(|&(_, exported)| exported) {
            let (first, peak) = peak_bytes(|| self.ask(&stack, decision));
            let allowed = attack.limits.memory_bytes as u64 + HOST_BYTES;
            assert!(peak < allowed, "{}: {peak} bytes to decide", attack.name);
            let again = self.ask(&stack, decision);
            let top = &first.records[0];
            if top.reproducible {
                assert_eq!(
                    (&again.records[0].outcome, again.records[0].fuel),
                    (&top.outcome, top.fuel),
                    "{}",
                    attack.name
                );
            }
            assert_eq!(again.what, first.what, "{}", attack.name);
            if top.outcome.is_bad() {
                let expected = self.ask(&alone, decision);
                assert_eq!(first.what, expected.what, "{}: not what `standard` says", attack.name);
                assert_eq!(first.decided_by, expected.decided_by, "{}", attack.name);
            }
            let spoken = top.outcome.reason().unwrap_or_default();
            assert!(!spoken.contains(char::is_control) && spoken.len() < 2_000, "{}: {spoken:?}", attack.name);
            let logged: usize = top.log.iter().map(|line| line.text.len()).sum();
            assert!(logged <= attack.limits.log_bytes, "{}: {logged} bytes of log", attack.name);
            rows.push(row(decision, happens(top, &first.what), spoken.to_owned()));
        }
        assert!(!rows.is_empty(), "{}: was asked for nothing", attack.name);
        assert!(start.elapsed() < PATIENCE, "{}: {:?}", attack.name, start.elapsed());
        rows
    }

    fn ask(&self, stack: &Stack, decision: &str) -> Answer {
        match decision {
            "prune" => {
                let decision = self.prune(stack);
                let applied = &decision.applied;
                let marker = applied.marker.as_ref().map(|(marker, _)| format!(", marker `{}`", marker.text()));
                let what = format!(
                    "{} of {} messages stay, {} replaced, {} tokens{}",
                    applied.kept.len(),
                    self.transcript.len(),
                    applied.replaced.len(),
                    applied.tokens_after,
                    marker.unwrap_or_default()
                );
                Answer { what, decided_by: decision.decided_by, records: decision.records }
            }
            "cap" => {
                let text = "a line of what was found\n".repeat(4_000).into();
                let decision =
                    stack.cap(IncomingInput { kind: Origin::ToolResult, name: "search".into(), text, limit: 8_000 });
                let what = match decision.verdict {
                    CapVerdict::Keep => "kept whole".to_owned(),
                    CapVerdict::Shorten { head, tail } => format!("the first {head} and last {tail} characters stay"),
                    CapVerdict::Digest => "a digest stays".to_owned(),
                };
                Answer { what, decided_by: decision.decided_by, records: decision.records }
            }
            "summarize" => {
                let decision = stack.summarize(&self.transcript, 600);
                let tokens = pmk_core::tokens::estimate(&decision.text);
                let what = format!("a summary of {} bytes and {tokens} tokens", decision.text.len());
                Answer { what, decided_by: decision.decided_by, records: decision.records }
            }
            _ => {
                let overflow = OverflowInput { available: vec![Rung::Trim, Rung::Compact], ..OverflowInput::default() };
                let decision = stack.recover(overflow);
                let what = format!("the next rung is `{}`", decision.rung.name());
                Answer { what, decided_by: decision.decided_by, records: decision.records }
            }
        }
    }
}

fn happens(top: &Record, what: &str) -> String {
    match &top.outcome {
        Outcome::Accepted => format!("carried out: {what}"),
        Outcome::Corrected { rules } => format!("carried out with text corrected by guard rule {rules:?}: {what}"),
        Outcome::Rejected { rule, .. } => format!("passed over by guard rule {rule}"),
        Outcome::Skipped { why } => format!("not asked: {why}"),
        Outcome::Failed { kind, .. } => format!("passed over: {kind}"),
    }
}

fn runtime(limits: Limits) -> Runtime {
    Runtime::new(RuntimeConfig { limits, ..RuntimeConfig::new(Compiler::Here) }).unwrap()
}

fn layer(runtime: &Runtime, bytes: &[u8]) -> Result<Layer, LoadError> {
    let policy = Policy::from_bytes(runtime, "attack.wasm", bytes)?;
    let settings = Settings::defaults(policy.description());
    Ok(Layer { policy: Arc::new(policy), settings })
}

/// A seed pair (0, 1), a turn with a tool pair (2 to 5), ten turns of two messages (6 to 25), the new message (26).
fn conversation() -> Arc<Transcript> {
    let call = Block::ToolUse { id: "t1".into(), name: "search".into(), input: serde_json::json!({ "q": "budget" }) };
    let result = Block::ToolResult { tool_use_id: "t1".into(), content: "found ".repeat(300), is_error: false };
    let mut messages = vec![
        Message::text(Role::User, Origin::Seed, "知識庫 ".repeat(60)),
        Message::text(Role::Assistant, Origin::SeedAck, "understood"),
        Message::user("look it up"),
        Message { role: Role::Assistant, origin: Origin::Assistant, blocks: vec![call] },
        Message { role: Role::User, origin: Origin::ToolResult, blocks: vec![result] },
        Message::assistant("here it is"),
    ];
    for turn in 0..10 {
        messages.push(Message::user(format!("question {turn}: {}", "預算 ".repeat(30))));
        messages.push(Message::assistant(format!("answer {turn}: {}", "the budget is fine ".repeat(30))));
    }
    messages.push(Message::user("and now?"));
    let transcript = Transcript::of_messages(messages);
    let archive = MemoryArchive::of(&transcript.entries()[..transcript.current()]);
    Arc::new(transcript.with_archive(Arc::new(archive)))
}
