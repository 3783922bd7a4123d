//! Measures decisions in replays of histories of 200 messages, on one and on two threads.
//!
//! `cargo bench -p pmk-host --bench compare`

use std::{fs, path::Path, sync::Arc};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use pmk_host::evaluation::compare::{
    histories,
    replay::{Arm, Setup},
    runner::{Comparison, Watch},
};
use pmk_models::sim::{Sim, SimConfig};
use pmk_policy::{Compiler, Layer, Policy, Runtime, RuntimeConfig, Settings, Stack};
use serde_json::json;

const CONVERSATIONS: usize = 48;
const TURNS: usize = 100;
const WINDOW: u64 = 24_000;

struct Nobody;

impl Watch for Nobody {
    fn done(&self) {}

    fn more(&self) {}
}

fn layer(runtime: &Runtime, name: &str) -> Layer {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins").join(format!("{name}.wasm"));
    let policy = Policy::load(runtime, &path).expect("a shipped policy");
    let settings = Settings::defaults(policy.description());
    Layer { policy: Arc::new(policy), settings }
}

fn fill(folder: &Path) {
    for number in 0..CONVERSATIONS {
        let message = |role: &str, turn: usize| {
            let words = format!("turn {turn} of conversation {number} 預算與時程 ").repeat(8);
            json!({"role": role, "content": words}).to_string()
        };
        let lines = (0..TURNS).flat_map(|turn| [message("user", turn), message("assistant", turn)]);
        fs::write(folder.join(format!("{number}.jsonl")), lines.collect::<Vec<_>>().join("\n")).expect("a file");
    }
}

fn replay(c: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a folder");
    fill(folder.path());
    let (found, _) = histories::find(folder.path(), None).expect("the histories");
    let found: Vec<histories::Source> = found.into_iter().map(Into::into).collect();
    let runtime = Runtime::new(RuntimeConfig::new(Compiler::Here)).expect("an engine");
    let base = layer(&runtime, "standard");
    let stacks = [vec![], vec![layer(&runtime, "strict")]];
    let arms: Vec<Arm> = stacks
        .into_iter()
        .enumerate()
        .map(|(number, layers)| Arm { label: number.to_string(), stack: Stack::new(layers, base.clone()) })
        .collect();
    let sim = Sim::new(SimConfig { window: WINDOW, ..SimConfig::default() });
    let setup = Setup { window: WINDOW, budget: None, sim, history_turns: None, by_receipts: false };
    let mut group = c.benchmark_group("replay");
    group.sample_size(10).throughput(Throughput::Elements((CONVERSATIONS * TURNS * arms.len()) as u64));
    for jobs in [1, 2] {
        let comparison = Comparison { arms: &arms, setup: &setup, questions: None, jobs };
        group.bench_function(BenchmarkId::from_parameter(jobs), |b| b.iter(|| comparison.run(found.clone(), &Nobody)));
    }
    group.finish();
}

criterion_group!(benches, replay);
criterion_main!(benches);
