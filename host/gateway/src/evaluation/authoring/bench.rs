//! Measures what a policy costs: decisions per second, fuel and memory by the length of a conversation, and loading
//! time.

use std::{
    path::Path,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use pmk_core::{Origin, Transcript};
use pmk_policy::{
    Compiler, Decision, IncomingInput, Limits, OverflowInput, Phase, PruneInput, Record, Rung, Runtime, RuntimeConfig,
    Stack, compile::Taken,
};
use pmk_system::error::Failure;
use serde::Serialize;

use super::{
    histories,
    stage::{self, Stage},
};
use crate::policies;

/// The message counts of the conversations; the last is that of the longest real session seen.
const SIZES: [usize; 3] = [100, 1_000, 15_276];

/// Older messages of each conversation, which are no longer in the window and can be searched.
pub const ARCHIVED: usize = 10_000;

/// The least number of decisions that are timed, however long they take.
const LEAST: usize = 10;

/// The number of characters of the text that is capped.
const TEXT_CHARS: usize = 100_000;

/// One decision, timed many times.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// The kind of decision.
    pub decision: Decision,
    /// The number of messages of the conversation; none for a cap and a recovery.
    pub messages: Option<usize>,
    /// Decisions per second on one thread, guard included.
    pub per_second: f64,
    /// The same on all cores together.
    pub per_second_all_cores: f64,
    /// The median time, in microseconds.
    pub p50_us: u64,
    /// The 95th percentile of the time.
    pub p95_us: u64,
    /// The fuel of one decision.
    pub fuel: u64,
    /// The peak linear memory of one decision, in bytes.
    pub peak_bytes: u64,
    /// Why the policy's answer was unusable, if it was.
    pub refused: Option<String>,
}

/// How long loading takes.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Loading {
    /// With compiling, in milliseconds.
    pub cold_ms: f64,
    /// From the cache of compiled code.
    pub cached_ms: f64,
    /// What compiling used in the process that did it.
    pub compiled: Option<Taken>,
}

/// Loads a component, a file or an [embedded](crate::embedded) one, first with an empty cache and then with the cache
/// filled. `scratch` is an empty folder.
///
/// # Errors
/// It cannot be loaded.
pub fn loading(file: &Path, limits: Limits, scratch: &Path) -> Result<Loading, Failure> {
    let load = || -> Result<_, Failure> {
        let cache_dir = Some(scratch.to_owned());
        let runtime = Runtime::new(RuntimeConfig { compiler: Compiler::Child, cache_dir, limits })?;
        let start = Instant::now();
        let policy = policies::load_unseen(&runtime, file)?;
        Ok((start.elapsed().as_secs_f64() * 1_000.0, policy.compiled()))
    };
    let (cold_ms, compiled) = load()?;
    let (cached_ms, _) = load()?;
    Ok(Loading { cold_ms, cached_ms, compiled })
}

/// Times every decision that the policy makes, for about `time` each. `started` is called with the name of each.
pub fn run(stage: &Stage, time: Duration, started: &mut dyn FnMut(&str)) -> Vec<Measured> {
    let exports = stage.policy().exports();
    let stack = stage.as_set();
    let mut measured = Vec::new();
    stage::quietly(|| {
        for messages in SIZES {
            let transcript = Arc::new(histories::long_with_archive(messages, ARCHIVED));
            if exports.prune {
                started(&format!("prune, {messages} messages"));
                measured.push(measure(Decision::Prune, Some(messages), time, &|| prune(&stack, &transcript)));
            }
            if exports.summarize {
                started(&format!("summarize, {messages} messages"));
                let ask = || stack.summarize(&transcript, 6_000).records;
                measured.push(measure(Decision::Summarize, Some(messages), time, &ask));
            }
        }
        if exports.cap {
            started("cap");
            let text: Arc<str> = "line of a log 42\n".chars().cycle().take(TEXT_CHARS).collect::<String>().into();
            measured.push(measure(Decision::Cap, None, time, &|| cap(&stack, &text)));
        }
        if exports.recover {
            started("recover");
            measured.push(measure(Decision::Recover, None, time, &|| recover(&stack)));
        }
    });
    measured
}

/// Requires half of the conversation to be removed. The archive is in memory, and is indexed before the first timed
/// decision.
fn prune(stack: &Stack, transcript: &Arc<Transcript>) -> Vec<Record> {
    let limit = transcript.total_tokens() / 2;
    stack
        .prune(transcript, PruneInput { limit, window: limit * 4 / 3, phase: Phase::First, seed_may_go: false })
        .records
}

fn cap(stack: &Stack, text: &Arc<str>) -> Vec<Record> {
    let kind = Origin::ToolResult;
    stack.cap(IncomingInput { kind, name: "log".to_owned(), text: Arc::clone(text), limit: 180_000 }).records
}

fn recover(stack: &Stack) -> Vec<Record> {
    stack.recover(OverflowInput { available: Rung::ALL.to_vec(), ..OverflowInput::default() }).records
}

fn measure(
    decision: Decision,
    messages: Option<usize>,
    time: Duration,
    ask: &(dyn Fn() -> Vec<Record> + Sync),
) -> Measured {
    // The first decision warms code and data and is not timed.
    let record = ask().into_iter().next();
    let mut took = timed(time, ask);
    took.sort_unstable();
    let percentile = |percent: usize| {
        let at = (took.len() * percent).div_ceil(100).saturating_sub(1);
        took.get(at).map_or(0, |took| u64::try_from(took.as_micros()).unwrap_or(u64::MAX))
    };
    Measured {
        decision,
        messages,
        per_second: rate(&took),
        per_second_all_cores: on_all_cores(time, ask),
        p50_us: percentile(50),
        p95_us: percentile(95),
        fuel: record.as_ref().map_or(0, |record| record.fuel),
        peak_bytes: record.as_ref().map_or(0, |record| record.peak_bytes),
        refused: record.and_then(|record| record.outcome.reason().map(str::to_owned)),
    }
}

fn timed(time: Duration, ask: &(dyn Fn() -> Vec<Record> + Sync)) -> Vec<Duration> {
    let begun = Instant::now();
    let mut took = Vec::new();
    while took.len() < LEAST || begun.elapsed() < time {
        let start = Instant::now();
        let records = ask();
        took.push(start.elapsed());
        drop(records);
    }
    took
}

fn rate(took: &[Duration]) -> f64 {
    let total: Duration = took.iter().sum();
    took.len() as f64 / total.as_secs_f64().max(f64::MIN_POSITIVE)
}

fn on_all_cores(time: Duration, ask: &(dyn Fn() -> Vec<Record> + Sync)) -> f64 {
    let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(|| stage::quietly(|| rate(&timed(time, ask))))).collect();
        workers.into_iter().filter_map(|worker| worker.join().ok()).sum()
    })
}
