//! What the host's calls take and what they cost: a component calls each of them again and again on a conversation of
//! 100,000 messages with its archive in a real store. [`pmk_policy::prices`] has its numbers from here.
//!
//! `cargo run --release --workspace --example prices` prints the table; a word after it, only the rows with that word.
//! With `--policies FILE…` those decide about the conversation within such limits. With `--loops` each call is made for ever instead, within the limits that a gateway has unless told otherwise, and the
//! table says what ended it, and when.

#[path = "prices/archive.rs"]
mod archive;
#[path = "prices/cases.rs"]
mod cases;
#[path = "../../policy/tests/policies/component.rs"]
mod component;

use std::{sync::Arc, time::Duration};

use pmk_core::{Archive, Block, Entry, Message, Origin, Role, Transcript};
use pmk_host::store::{DumpedMessage, SessionDump, Store, StoreArchive};
use pmk_policy::{
    CompileLimits, Compiler, IncomingInput, Layer, Limits, Outcome, OverflowInput, Phase, Policy, PruneInput, Record,
    Rung, Runtime, RuntimeConfig, Settings, Stack, limits,
};

use self::cases::Case;

const MESSAGES: usize = 100_000;

/// Every so many messages there is one this long, in characters.
const LONG_EVERY: usize = 100;
const LONG_CHARS: usize = 20_000;

/// A row is measured until it took so long, three times, and the shortest counts.
const LONG_ENOUGH_US: u64 = 20_000;
const TIMES: usize = 3;

/// More than any row takes.
const UNLIMITED: Limits = Limits {
    fuel_base: u64::MAX / 4,
    fuel_per_message: 0,
    fuel_per_token: 0,
    fuel_most: u64::MAX / 4,
    wall: Duration::from_secs(600),
    memory_bytes: limits::DEFAULT_MEMORY_BYTES,
    table_elements: limits::DEFAULT_TABLE_ELEMENTS,
    host_allocation_bytes: limits::DEFAULT_HOST_ALLOCATION_BYTES,
    log_bytes: limits::DEFAULT_LOG_BYTES,
    compile: CompileLimits::DEFAULT,
};

fn main() {
    let (options, words): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|word| word.starts_with("--"));
    let has = |option: &str| options.iter().any(|given| given == option);
    let only = words.first().map_or("", String::as_str);
    let home = tempfile::tempdir().expect("a folder");
    let store = Store::open(home.path()).expect("a store");
    let bench = Bench::new(&store, if options.is_empty() { UNLIMITED } else { Limits::default() });
    if has("--policies") {
        return print_policies(&bench, &words);
    }
    let cases = cases::all();
    let cases = cases.iter().filter(|case| case.call.contains(only) || case.with.contains(only));
    if has("--loops") {
        print_loops(&bench, cases);
    } else {
        print_prices(&bench, cases);
    }
}

fn print_policies(bench: &Bench, files: &[String]) {
    println!("| policy | decision | ms | fuel | outcome |\n|---|---|---|---|---|");
    for file in files {
        let policy = Policy::load(&bench.runtime, file).unwrap_or_else(|error| panic!("{error}"));
        let settings = Settings::defaults(policy.description());
        let exports = policy.exports();
        let stack = Stack::new([], Layer { policy: Arc::new(policy), settings });
        let decisions = [
            ("prune", exports.prune),
            ("summarize", exports.summarize),
            ("cap", exports.cap),
            ("recover", exports.recover),
        ];
        for (decision, _) in decisions.into_iter().filter(|(_, exported)| *exported) {
            let Record { us, fuel, outcome, .. } = bench.decide(&stack, decision);
            println!("| {file} | {decision} | {} | {fuel} | {outcome:?} |", us / 1_000);
        }
    }
}

fn print_prices<'a>(bench: &Bench, cases: impl Iterator<Item = &'a Case>) {
    println!("| call | with | ns a call | fuel a call | ns per 1,000 fuel |\n|---|---|---|---|---|");
    for case in cases {
        let Measured { ns, fuel } = bench.measure(case);
        println!("| {} | {} | {ns:.1} | {fuel:.1} | {:.0} |", case.call, case.with, ns * 1_000.0 / fuel.max(0.1));
    }
}

fn print_loops<'a>(bench: &Bench, cases: impl Iterator<Item = &'a Case>) {
    println!("| call for ever | with | ends after ms | by |\n|---|---|---|---|");
    for case in cases {
        let record = bench.decide(&bench.stack(case, u32::MAX), case.export);
        let by = record.outcome.reason().unwrap_or("nothing");
        println!("| {} | {} | {} | {by} |", case.call, case.with, record.us / 1_000);
    }
}

struct Measured {
    ns: f64,
    fuel: f64,
}

/// What components are asked about.
struct Bench {
    runtime: Runtime,
    transcript: Transcript,
    archive: StoreArchive,
    incoming: Arc<str>,
}

impl Bench {
    fn new(store: &Store, limits: Limits) -> Self {
        let archive = recorded(store);
        let entries = archive
            .read(0..MESSAGES as u32)
            .into_iter()
            .map(|(_, archived)| Entry::new(archived.id, Arc::unwrap_or_clone(archived.message)));
        let entries: Vec<Entry> = entries.chain([Entry::new(i64::MAX, Message::user("and now?"))]).collect();
        Bench {
            runtime: Runtime::new(RuntimeConfig { limits, ..RuntimeConfig::new(Compiler::Here) }).expect("an engine"),
            transcript: Transcript::new(entries, MESSAGES, "general"),
            archive,
            incoming: "a line of what was found\n".repeat(4_000).into(),
        }
    }

    /// Time and fuel of one call: of many, less those of a component that is the same and calls nothing.
    fn measure(&self, case: &Case) -> Measured {
        let mut count = 32.min(case.most);
        loop {
            let (us, fuel) = self.shortest(case, count);
            let (us_without, fuel_without) = self.shortest(case, 0);
            let (us, fuel) = (us.saturating_sub(us_without), fuel.saturating_sub(fuel_without));
            if us >= LONG_ENOUGH_US || count == case.most {
                return Measured { ns: us as f64 * 1_000.0 / f64::from(count), fuel: fuel as f64 / f64::from(count) };
            }
            count = count.saturating_mul(4).min(case.most);
        }
    }

    fn stack(&self, case: &Case, count: u32) -> Stack {
        let policy = Policy::from_bytes(&self.runtime, case.call, &case.component(count).build());
        let policy = policy.unwrap_or_else(|error| panic!("{}, {}: {error}", case.call, case.with));
        let settings = Settings::defaults(policy.description());
        Stack::new([], Layer { policy: Arc::new(policy), settings })
    }

    fn shortest(&self, case: &Case, count: u32) -> (u64, u64) {
        let stack = self.stack(case, count);
        let runs = (0..TIMES).map(|_| {
            let record = self.decide(&stack, case.export);
            assert!(
                !matches!(record.outcome, Outcome::Failed { .. }),
                "{}, {}: {:?}",
                case.call,
                case.with,
                record.outcome
            );
            (record.us, record.fuel)
        });
        runs.min().expect("a run")
    }

    /// Asks about a conversation that nobody has searched or looked through yet.
    fn decide(&self, stack: &Stack, decision: &str) -> Record {
        let archive = self.archive.clone();
        let transcript = || Arc::new(self.transcript.clone().with_archive(Arc::new(archive)));
        let limit = 180_000;
        let mut records = match decision {
            "prune" => {
                let input = PruneInput { limit, window: 200_000, phase: Phase::First, seed_may_go: false };
                stack.prune(&transcript(), input).records
            }
            "summarize" => stack.summarize(&transcript(), 6_000).records,
            "cap" => {
                let text = Arc::clone(&self.incoming);
                stack.cap(IncomingInput { kind: Origin::ToolResult, name: "search".into(), text, limit }).records
            }
            _ => {
                let available = vec![Rung::Trim, Rung::Compact];
                stack.recover(OverflowInput { available, ..OverflowInput::default() }).records
            }
        };
        records.remove(0)
    }
}

/// Records the conversation.
fn recorded(store: &Store) -> StoreArchive {
    let message = |n| DumpedMessage { id: None, message: said(n), tokens: 80, created_at_ms: n as i64 };
    let dump = SessionDump {
        key: "slack:dm:U1".parse().expect("a key"),
        created_at_ms: 0,
        active_at_ms: 0,
        turns: (MESSAGES / 2) as u64,
        dropped_turns: 0,
        marker_template: None,
        verbosity: None,
        messages: (0..MESSAGES).map(message).collect(),
        has_made_up_times: false,
        live: vec![],
        cases: vec![],
        images: vec![],
    };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let key = dump.key.clone();
        store.restore(dump, false, 0).await.expect("a store that can be written");
        let lease = store.lease(&key, "a benchmark", Duration::ZERO, 0).await.expect("a conversation that nobody has");
        store.archive_of(lease.session(), MESSAGES as u32)
    })
}

/// The nth message: questions and answers, tools and their long results between them.
fn said(n: usize) -> Message {
    const SUBJECTS: [&str; 10] = [
        "廣告預算",
        "離職帳號",
        "發票作廢",
        "採購單",
        "庫存盤點",
        "revenue dashboard",
        "deployment rollback",
        "payment webhook",
        "sales_performances",
        "monthly report",
    ];
    let subject = SUBJECTS[n % SUBJECTS.len()];
    let text = format!(
        "case {n}: the {subject} came up again on run {}, someone looked into it and wrote down what was decided \
         before the others left {}",
        n * 7919 % 100_003,
        n / 7 % 20
    );
    match n % LONG_EVERY {
        2 => {
            let blocks = ["find", "read"].map(|name| Block::ToolUse {
                id: format!("{name}{n}"),
                name: name.into(),
                input: serde_json::json!({ "q": subject }),
            });
            Message { role: Role::Assistant, origin: Origin::Assistant, blocks: blocks.into() }
        }
        3 => {
            let blocks = ["find", "read"].map(|name| Block::ToolResult {
                tool_use_id: format!("{name}{n}", n = n - 1),
                content: format!("{text}\n").chars().cycle().take(LONG_CHARS / 2).collect(),
                is_error: false,
            });
            Message { role: Role::User, origin: Origin::ToolResult, blocks: blocks.into() }
        }
        _ if n.is_multiple_of(2) => Message::user(text),
        _ => Message::assistant(text),
    }
}
