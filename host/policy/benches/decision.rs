//! One prune: the checked-in component in a fresh instance, compared with the same policy compiled natively. `prune` is
//! the decision, with plan and guard included in both; `step` is all of it, from the stored messages to those that are
//! sent.
//!
//! `cargo bench --workspace --bench decision`

use std::{path::Path, sync::Arc};

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use pmk_core::{Message, Transcript};
use pmk_policy::{Compiler, DecidedBy, Layer, Phase, Policy, PruneInput, Runtime, RuntimeConfig, Settings, Stack};
use pmk_policy_sdk::{
    Prune,
    testing::{Harness, Room},
};

/// Stored messages; 15,276 are those of the longest real session seen.
const SIZES: [usize; 4] = [100, 1_000, 15_276, 100_000];

/// A window of 200,000 tokens minus the room for the answer.
const ROOM: PruneInput = PruneInput { limit: 180_000, window: 200_000, phase: Phase::First, seed_may_go: false };

fn decision(criterion: &mut Criterion) {
    let runtime = Runtime::new(RuntimeConfig::new(Compiler::Here)).expect("an engine");
    policy::<standard::Standard>(criterion, &runtime, "standard");
    policy::<strict::Strict>(criterion, &runtime, "strict");
    policy::<tool_lean::ToolLean>(criterion, &runtime, "tool-lean");
}

fn policy<P: Prune>(criterion: &mut Criterion, runtime: &Runtime, name: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins").join(name).with_extension("wasm");
    let policy = Policy::load(runtime, file).expect("the checked-in component");
    let settings = Settings::defaults(policy.description());
    let stack = Stack::new([], Layer { policy: Arc::new(policy), settings });
    let native = Harness::<P>::new();
    let room = Room { window: ROOM.window, ..Room::from(ROOM.limit) };
    let mut group = criterion.benchmark_group(format!("prune/{name}"));
    for messages in SIZES {
        let transcript = conversation(messages);
        let decided = stack.prune(&transcript, ROOM);
        assert_ne!(decided.decided_by, DecidedBy::Floor, "the policy itself must be what is timed");
        group.bench_function(BenchmarkId::new("component", messages), |bencher| {
            bencher.iter(|| stack.prune(&transcript, ROOM));
        });
        group.bench_function(BenchmarkId::new("native", messages), |bencher| {
            bencher.iter(|| native.prune(&transcript, room));
        });
    }
    group.finish();
    let mut group = criterion.benchmark_group(format!("step/{name}"));
    for messages in SIZES {
        let conversation = conversation(messages);
        let view = || Arc::new(Transcript::new(conversation.entries().to_vec(), conversation.current(), ""));
        group.bench_function(BenchmarkId::new("component", messages), |bencher| {
            bencher.iter(|| {
                let transcript = view();
                stack.prune(&transcript, ROOM).applied.messages(&transcript)
            });
        });
        group.bench_function(BenchmarkId::new("native", messages), |bencher| {
            bencher.iter(|| {
                let transcript = view();
                native.prune(&transcript, room).map(|applied| applied.messages(&transcript))
            });
        });
    }
    group.finish();
}

/// Questions and answers of about 60 tokens each.
fn conversation(messages: usize) -> Arc<Transcript> {
    let turns = (0..messages / 2).flat_map(|turn| {
        [
            Message::user(format!("question {turn}: {}", "how much is left of it? ".repeat(7))),
            Message::assistant(format!("answer {turn}: {}", "about a third of that. ".repeat(7))),
        ]
    });
    Arc::new(Transcript::of_messages(turns.chain([Message::user("and now?")])))
}

criterion_group!(benches, decision);
criterion_main!(benches);
