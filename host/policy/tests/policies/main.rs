//! How the runtime handles hand-written components, most of them faulty.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod breaker;
mod component;
mod failing;
mod loading;
mod parity;
mod prices;
mod recall;
mod settings;
mod stack;
mod trust;
mod wasi;

use std::{sync::Arc, time::Duration};

use pmk_core::{Message, Transcript};
use pmk_policy::{
    Compiler, DecidedBy, Layer, Limits, Outcome, Phase, Policy, PruneDecision, PruneInput, Runtime, RuntimeConfig,
    Settings, Stack,
};

use component::Component;

/// Limits that a runaway component reaches in milliseconds.
fn small_limits() -> Limits {
    Limits {
        fuel_base: 20_000_000,
        fuel_per_message: 1_000,
        fuel_per_token: 0,
        wall: Duration::from_secs(60),
        memory_bytes: 8 << 20,
        host_allocation_bytes: 1 << 20,
        ..Limits::default()
    }
}

fn runtime() -> Runtime {
    runtime_with(small_limits())
}

fn runtime_with(limits: Limits) -> Runtime {
    Runtime::new(RuntimeConfig { limits, ..RuntimeConfig::new(Compiler::Here) }).unwrap()
}

fn layer(runtime: &Runtime, component: &Component) -> Layer {
    let policy = Policy::from_bytes(runtime, "test.wasm", &component.build()).unwrap();
    let settings = Settings::defaults(policy.description());
    Layer { policy: Arc::new(policy), settings }
}

/// The component above one that removes the first turn.
fn over_a_good_one(runtime: &Runtime, component: &Component) -> Stack {
    Stack::new([layer(runtime, component)], layer(runtime, &good()))
}

/// Removes the first turn.
fn good() -> Component {
    Component::pruning("(call $remove (local.get $plan) (i32.const 0) (i32.const 2))")
}

/// Turns of a question and an answer each, then the new message.
fn transcript(turns: usize) -> Arc<Transcript> {
    let mut messages = Vec::new();
    for turn in 0..turns {
        messages.push(Message::user(format!("question {turn}: {}", "預算 ".repeat(30))));
        messages.push(Message::assistant(format!("answer {turn}: {}", "the budget is fine ".repeat(30))));
    }
    messages.push(Message::user("and now?"));
    Arc::new(Transcript::of_messages(messages))
}

fn room() -> PruneInput {
    PruneInput { limit: 100_000, window: 120_000, phase: Phase::First, seed_may_go: false }
}

fn prune(stack: &Stack) -> PruneDecision {
    stack.prune(&transcript(5), room())
}

/// Why the top layer was skipped.
fn reason(decision: &PruneDecision) -> &str {
    decision.records[0].outcome.reason().unwrap_or("it was not")
}

fn failed_by(decision: &PruneDecision) -> &str {
    match &decision.records[0].outcome {
        Outcome::Failed { kind, .. } => kind,
        other => panic!("{other:?}"),
    }
}

fn decided_by(decision: &PruneDecision) -> &str {
    match &decision.decided_by {
        DecidedBy::Policy(identity) => &identity.sha256,
        DecidedBy::Floor => "floor",
    }
}
