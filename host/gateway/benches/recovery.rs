//! Measures the recovery of the session of specification 001 (15,276 entries, 35 MB, all of it live) without a model
//! call: from the refusal to the next request.
//!
//! `cargo bench --workspace --bench recovery`. `trim` is the standard policy's first rung; `rotate` is its last one,
//! taken because the two before it are refused as well, so its time is that of all three steps.

use std::{
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use async_trait::async_trait;
use criterion::{Criterion, criterion_group, criterion_main};
use pmk_core::{Block, Entry, Message, SessionKey};
use pmk_host::{
    access::audience::Prompts,
    calibration::Calibration,
    chat::{Attachments, Inbound, ReplyTo},
    config::Config,
    front::{Delivery, Front, FrontError, Intake, Kind, Progress},
    gateway::Gateway,
    ledger::{Ledger, report::TurnReport},
    mra::{self, Mra},
    services::{Parts, Services, SharedLibrary},
    store::{BeginOutcome, Hold, Outgoing, Recorded, Sent, Store},
};
use pmk_knowledge::Library;
use pmk_models::{Answer, ErrorClass, Meter, Model, ModelError, Request, Stop, Usage};
use pmk_policy::{Compiler, Layer, Policy, Runtime, RuntimeConfig, Settings, Stack};
use pmk_system::clock::Clock;
use tokio_util::sync::CancellationToken;

const ENTRIES: usize = 15_276;
const ENTRY_BYTES: usize = 2_290;
const KEY: &str = "console:dm:U1";
const NOW: i64 = 1_760_000_000_000;

/// A model that refuses this many prompts, then answers; it records the time of each request.
struct Refusing {
    refusals: AtomicU64,
    asked: Mutex<Vec<Instant>>,
}

#[async_trait]
impl Model for Refusing {
    fn provider(&self) -> &'static str {
        "bench"
    }

    fn name(&self) -> &str {
        "refusing"
    }

    /// Large enough that nothing is pruned before the first call.
    fn window(&self) -> u64 {
        100_000_000
    }

    async fn ask(&self, _request: &Request, _meter: &Meter) -> Result<Answer, ModelError> {
        self.asked.lock().expect("not poisoned").push(Instant::now());
        if self.refusals.load(Ordering::Relaxed) > 0 {
            self.refusals.fetch_sub(1, Ordering::Relaxed);
            let class = ErrorClass::Overflow { observed_tokens: None, allowed_tokens: None, is_of_request: false };
            return Err(ModelError::new(class, "prompt is too long"));
        }
        let blocks = vec![Block::Text { text: "recovered".into() }];
        Ok(Answer { blocks, stop: Stop::End, usage: Usage::default() })
    }
}

/// A front that asks one question.
struct One;

#[async_trait]
impl Front for One {
    async fn listen(&self, intake: &dyn Intake, _stop: CancellationToken) -> Result<(), FrontError> {
        intake.accept(question("the question")).await.map(drop).map_err(|_| FrontError::Closed)
    }

    async fn placeholder(&self, _question: &Inbound, _text: &str) -> Result<Option<String>, FrontError> {
        Ok(None)
    }

    async fn progress(&self, _progress: &Progress) -> Result<(), FrontError> {
        Ok(())
    }

    fn split(&self, text: &str, _kind: Kind) -> Vec<String> {
        vec![text.to_owned()]
    }

    async fn deliver(&self, _part: Delivery<'_>) -> Result<Option<String>, FrontError> {
        Ok(None)
    }

    async fn report(&self, _event_id: &str, _report: &TurnReport) -> Result<(), FrontError> {
        Ok(())
    }
}

fn question(event_id: &str) -> Inbound {
    Inbound {
        event_id: event_id.into(),
        aliases: vec![],
        key: KEY.parse::<SessionKey>().expect("a key"),
        user: "U1".into(),
        reply_to: ReplyTo { channel: "D1".into(), thread_ts: None },
        text: "What was the last thing we talked about?".into(),
        attached: Attachments::default(),
        if_awaited: false,
        by_app: false,
        team: None,
        in_group: false,
        asked_at: None,
        ts: String::new(),
    }
}

/// Creates a home whose only conversation is the session of specification 001.
async fn session(home: &Path) {
    let store = Store::open(home).expect("a store");
    let inbox = store.accept(&question("before"), NOW).await.expect("accepts").expect("new");
    let BeginOutcome::Ask(open) = store.begin(inbox, None, Hold::Alone, NOW).await.expect("begins") else {
        panic!("a new turn")
    };
    let messages = (0..ENTRIES)
        .map(|n| {
            let text = format!("{n} {}", "日誌 the daemon says more of the same. ".repeat(ENTRY_BYTES / 43));
            Entry::new(0, if n % 2 == 0 { Message::user(text) } else { Message::assistant(text) })
        })
        .collect();
    let report = TurnReport::of_command(open.inbound.event_id.clone(), open.inbound.key.clone(), "none");
    let recorded = Recorded { messages, keep_live: true, ..Recorded::of(report, vec![Outgoing::reply("x")], 0) };
    store.record(open.turn, recorded, NOW).await.expect("records");
    store.finish(open.turn, vec![Sent { part: 0, id: None }], vec![], NOW).await.expect("finishes");
}

fn standard() -> Stack {
    let runtime = Runtime::new(RuntimeConfig::new(Compiler::Here)).expect("an engine");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plugins/standard.wasm");
    let policy = Policy::load(&runtime, path).expect("the standard policy");
    let settings = Settings::defaults(policy.description());
    Stack::new([], Layer { policy: Arc::new(policy), settings })
}

/// Returns the time from the first refusal to the request that is answered.
async fn recovery(home: &Path, refusals: u64) -> Duration {
    let model = Arc::new(Refusing { refusals: AtomicU64::new(refusals), asked: Mutex::default() });
    let asked: Arc<dyn Model> = Arc::clone(&model) as Arc<dyn Model>;
    let store = Store::open(home).expect("a store");
    let ledger = Ledger::open(Arc::new(store.clone()), home);
    let parts = Parts {
        home,
        clock: Clock::system(),
        store,
        stack: standard(),
        model: asked,
        front: Arc::new(One),
        ledger,
        config: Config::default(),
        library: SharedLibrary::new(Library::open(home).expect("a library")),
        calibration: Calibration::default(),
        takes_tools: None,
        prompts: Prompts::default(),
        mra: Mra::new(mra::Config::default()),
        seeder: None,
        load: Arc::new(|_, _| unreachable!("there is no experiment")),
    };
    let services = Services::new(parts, CancellationToken::new());
    Gateway::new(&services).run().await.expect("it runs");
    let asked = model.asked.lock().expect("not poisoned");
    *asked.last().expect("asked") - asked[0]
}

fn recoveries(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let template = tempfile::tempdir().expect("a folder");
    runtime.block_on(session(template.path()));
    let mut group = criterion.benchmark_group("recovery");
    group.sample_size(10).measurement_time(Duration::from_secs(10));
    for (name, refusals) in [("trim", 1), ("all rungs", 3)] {
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|times| {
                (0..times)
                    .map(|_| {
                        let home = tempfile::tempdir().expect("a folder");
                        let gateway = home.path().join("gateway");
                        std::fs::create_dir(&gateway).expect("a folder");
                        for file in std::fs::read_dir(template.path().join("gateway")).expect("the store") {
                            let file = file.expect("readable");
                            std::fs::copy(file.path(), gateway.join(file.file_name())).expect("a copy");
                        }
                        runtime.block_on(recovery(home.path(), refusals))
                    })
                    .sum()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, recoveries);
criterion_main!(benches);
