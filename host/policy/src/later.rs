//! A later minor version of the contract must not affect components of an earlier one. The later version is simulated
//! here by adding to what this host offers.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{path::Path, sync::Arc};

use pmk_core::{Message, Origin, Transcript};
use wasmtime::component::{Linker, Resource};

use crate::{
    DecidedBy, IncomingInput, Layer, LoadError, OverflowInput, Phase, Policy, PruneInput, Rung, Runtime, RuntimeConfig,
    Settings, Stack, compile::Compiler, contract, contract::handle, state::State,
};

/// A minor version that this host does not have yet.
const LATER: &str = "1.99.0";

/// Adds a method to a resource of every decision, and a function to the interface of all.
fn add_to_linker(linker: &mut Linker<State>) {
    let mut context = linker.instance(&contract::interface("context")).unwrap();
    let unread = |_: wasmtime::StoreContextMut<'_, State>, _: (Resource<handle::Transcript>,)| Ok((7_u32,));
    context.func_wrap("[method]transcript.unread", unread).unwrap();
    let mut host = linker.instance(&contract::interface("host")).unwrap();
    host.func_wrap("moon-phase", |_: wasmtime::StoreContextMut<'_, State>, (): ()| Ok((3_u8,))).unwrap();
}

fn now() -> Runtime {
    Runtime::new(RuntimeConfig::new(Compiler::Here)).unwrap()
}

fn later() -> Runtime {
    Runtime::offering(RuntimeConfig::new(Compiler::Here), add_to_linker).unwrap()
}

fn stack(runtime: &Runtime, bytes: &[u8]) -> Result<Stack, LoadError> {
    let policy = Policy::from_bytes(runtime, "p.wasm", bytes)?;
    let settings = Settings::defaults(policy.description());
    Ok(Stack::new([], Layer { policy: Arc::new(policy), settings }))
}

fn conversation(turns: usize) -> Arc<Transcript> {
    let turn = |n| {
        let (question, answer) = ("how much is left? ".repeat(n % 7 + 1), "about a third. ".repeat(n % 5 + 9));
        [Message::user(question), Message::assistant(answer)]
    };
    Arc::new(Transcript::of_messages((0..turns).flat_map(turn).chain([Message::user("and now?")])))
}

/// Every decision of a stack, with its cost.
fn decisions(stack: &Stack) -> Vec<String> {
    let mut all = Vec::new();
    for (turns, limit) in [(3, 100_000), (40, 2_000), (400, 9_000), (400, 30_000)] {
        let input = PruneInput { limit, window: limit + 4_000, phase: Phase::First, seed_may_go: false };
        let decision = stack.prune(&conversation(turns), input);
        assert_ne!(decision.decided_by, DecidedBy::Floor, "{:?}", decision.records);
        let (kept, fuel) = (&decision.applied.kept, decision.records[0].fuel);
        all.push(format!("{kept:?} {:?} {} {fuel}", decision.applied.marker, decision.applied.tokens_after));
    }
    let text: Arc<str> = "a line of what was found\n".repeat(9_000).into();
    for kind in [Origin::Seed, Origin::MraResult, Origin::ToolResult] {
        let decision = stack.cap(IncomingInput { kind, name: "erp".into(), text: text.clone(), limit: 20_000 });
        all.push(format!("{:?} {:?} {}", decision.verdict, decision.decided_by, decision.records[0].fuel));
    }
    let available = vec![Rung::Trim, Rung::Compact, Rung::Rotate];
    let decision = stack.recover(OverflowInput { available, ..OverflowInput::default() });
    all.push(format!("{:?} {:?} {}", decision.rung, decision.decided_by, decision.records[0].fuel));
    all
}

#[test]
fn components_of_1_0_0_decide_as_ever_when_the_contract_grows() {
    for name in ["standard", "strict"] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/contract-1.0.0").join(name);
        let bytes = std::fs::read(file.with_extension("wasm")).unwrap();
        let policy = Policy::from_bytes(&now(), "p.wasm", &bytes).unwrap();
        assert!(policy.imports().iter().all(|import| import.ends_with("@1.0.0")), "{:?}", policy.imports());
        let (now, later) = (stack(&now(), &bytes).unwrap(), stack(&later(), &bytes).unwrap());
        assert_eq!(decisions(&now), decisions(&later), "{name}");
    }
}

/// A policy that removes nothing if the later host's function returns the expected value.
fn wanting(version: &str, import: &str, call: &str) -> Vec<u8> {
    let text = format!(
        r#"(component
        (import "pmk:policy/context@{version}" (instance $context
            (export "description" (type $description (sub resource)))
            (export "transcript" (type $transcript (sub resource)))
            (export "budget" (type $budget (sub resource)))
            (export "plan" (type $plan (sub resource)))
            (export "[method]description.name" (func (param "self" (borrow $description)) (param "name" string)))
            (export "[method]transcript.unread" (func (param "self" (borrow $transcript)) (result u32)))))
        (alias export $context "description" (type $description))
        (alias export $context "transcript" (type $transcript))
        (alias export $context "budget" (type $budget))
        (alias export $context "plan" (type $plan))
        {import}
        (core module $memory (memory (export "memory") 1) (data (i32.const 0) "later"))
        (core instance $memory (instantiate $memory))
        (alias core export $memory "memory" (core memory $mem))
        (core func $name (canon lower (func $context "[method]description.name") (memory $mem)))
        (core func $unread (canon lower (func $context "[method]transcript.unread")))
        {call}
        (core func $drop-description (canon resource.drop $description))
        (core func $drop-transcript (canon resource.drop $transcript))
        (core func $drop-budget (canon resource.drop $budget))
        (core func $drop-plan (canon resource.drop $plan))
        (core module $policy
            (import "host" "name" (func $name (param i32 i32 i32)))
            (import "host" "unread" (func $unread (param i32) (result i32)))
            (import "host" "moon" (func $moon (result i32)))
            (import "host" "drop-description" (func $drop-description (param i32)))
            (import "host" "drop-transcript" (func $drop-transcript (param i32)))
            (import "host" "drop-budget" (func $drop-budget (param i32)))
            (import "host" "drop-plan" (func $drop-plan (param i32)))
            (func (export "describe") (param i32)
                (call $name (local.get 0) (i32.const 0) (i32.const 5)) (call $drop-description (local.get 0)))
            (func (export "prune") (param i32 i32 i32)
                (if (i32.ne (call $unread (local.get 0)) (i32.const 7)) (then unreachable))
                (if (i32.ne (call $moon) (i32.const 3)) (then unreachable))
                (call $drop-transcript (local.get 0))
                (call $drop-budget (local.get 1))
                (call $drop-plan (local.get 2))))
        (core instance $policy (instantiate $policy (with "host" (instance
            (export "name" (func $name)) (export "unread" (func $unread)) (export "moon" (func $moon))
            (export "drop-description" (func $drop-description)) (export "drop-transcript" (func $drop-transcript))
            (export "drop-budget" (func $drop-budget)) (export "drop-plan" (func $drop-plan))))))
        (func $describe (param "description" (borrow $description)) (canon lift (core func $policy "describe")))
        (instance $describe (export "describe" (func $describe)))
        (export "pmk:policy/describe@{version}" (instance $describe))
        (func $prune (param "transcript" (borrow $transcript)) (param "budget" (borrow $budget))
            (param "plan" (borrow $plan)) (canon lift (core func $policy "prune")))
        (instance $prune (export "prune" (func $prune)))
        (export "pmk:policy/prune@{version}" (instance $prune)))"#
    );
    wat::parse_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn wanting_both(version: &str) -> Vec<u8> {
    let import =
        format!(r#"(import "pmk:policy/host@{version}" (instance $host (export "moon-phase" (func (result u8)))))"#);
    wanting(version, &import, r#"(core func $moon (canon lower (func $host "moon-phase")))"#)
}

#[test]
fn a_component_of_the_later_minor_uses_what_was_added() {
    let stack = stack(&later(), &wanting_both(LATER)).unwrap();
    let input = PruneInput { limit: 90_000, window: 100_000, phase: Phase::First, seed_may_go: false };
    let decision = stack.prune(&conversation(3), input);
    assert_eq!(decision.decided_by.name(), "later", "{:?}", decision.records);
}

#[test]
fn where_it_is_not_there_yet_the_host_says_what_is_wanted_and_what_it_offers() {
    let offers = contract::VERSION;
    let error = stack(&now(), &wanting_both(LATER)).expect_err("a refusal");
    assert_eq!(
        error.to_string(),
        format!(
            "policy `p.wasm` requires `pmk:policy/context@{LATER}`, this host offers {offers}, which has no such \
             `[method]transcript.unread`"
        )
    );
    assert!(error.hint().unwrap().contains(&format!("`pmk:policy@{offers}`")), "{error}");

    let error = stack(&now(), &wanting_both("2.0.0")).expect_err("a refusal");
    assert_eq!(
        error.to_string(),
        format!("policy `p.wasm` requires `pmk:policy/context@2.0.0`, this host offers {offers}")
    );
    assert!(error.hint().unwrap().contains("a pmk-host that offers the other version"), "{error}");

    // A component that claims this host's own version is not told to find a later host.
    let error = stack(&now(), &wanting_both(offers)).expect_err("a refusal");
    assert!(matches!(error, LoadError::Unlinkable { .. }), "{error}");
}
