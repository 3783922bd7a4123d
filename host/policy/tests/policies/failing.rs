//! Policies that fail during a decision: the next layer decides, the record says why, the next decision is unaffected.

use std::{sync::Arc, time::Duration};

use pmk_core::{Block, Message, Origin, Role, Transcript, Verdict};
use pmk_policy::{Limits, Outcome, PruneInput, Stack};

use crate::{
    component::{Component, DATA},
    decided_by, failed_by, good, layer, over_a_good_one, prune, reason, room, runtime, runtime_with, small_limits,
    transcript,
};

/// Asserts that the layer below decides, and that this can be repeated.
fn passed_over(component: &Component) -> pmk_policy::PruneDecision {
    let runtime = runtime();
    let stack = over_a_good_one(&runtime, component);
    let first = prune(&stack);
    assert_eq!(first.applied.removed, [0, 1], "the layer below removes the first turn: {}", reason(&first));
    assert_eq!(decided_by(&first), stack.layers().nth(1).unwrap().policy.identity().sha256);
    assert!(matches!(first.verdict, Verdict::Rejected(_)), "{:?}", first.verdict);
    assert_eq!(first.records.len(), 2);
    assert_eq!(first.records[0].policy.sha256, stack.top().policy.identity().sha256);
    assert_eq!(first.records[1].outcome, Outcome::Accepted);
    let second = prune(&stack);
    assert_eq!(second.records[0].outcome, first.records[0].outcome);
    assert_eq!(second.records[0].fuel, first.records[0].fuel);
    first
}

#[test]
fn one_that_loops_runs_out_of_fuel() {
    let decision = passed_over(&Component::pruning("(loop $l (br $l))"));
    assert_eq!(failed_by(&decision), "fuel");
    assert!(decision.records[0].reproducible);
    assert!(decision.records[0].fuel > 19_000_000);
}

#[test]
fn one_that_is_too_slow_for_the_wall_clock_is_not_reproducible() {
    let limits = Limits { fuel_base: u64::MAX / 2, wall: Duration::from_millis(50), ..small_limits() };
    // The valid policy below has a wall-clock limit that no machine exceeds.
    let looping = layer(&runtime_with(limits), &Component::pruning("(loop $l (br $l))"));
    let stack = Stack::new([looping], layer(&runtime(), &good()));
    let decision = prune(&stack);
    assert_eq!(failed_by(&decision), "time");
    assert!(!decision.records[0].reproducible);
    assert!(decision.records[1].reproducible);
    assert_eq!(decision.applied.removed, [0, 1]);
}

#[test]
fn one_that_makes_the_host_work_pays_for_it() {
    let shorten = "(loop $l (call $shorten (local.get $plan) (i32.const 1) (i32.const 1) (i32.const 1)) (br $l))";
    assert_eq!(failed_by(&passed_over(&Component::pruning(shorten))), "fuel");
}

#[test]
fn one_that_recurses_overflows_its_own_stack() {
    let decision = passed_over(&Component::pruning("(call $deep)").items("(func $deep (call $deep))"));
    assert_eq!(failed_by(&decision), "trap");
    assert!(reason(&decision).contains("call stack exhausted"), "{}", reason(&decision));
}

/// Regression: it was an access out of bounds, with a hint about names that were there.
#[test]
fn a_recursion_that_left_the_memory_was_not_called_a_stack_overflow() {
    let deep = "(global $sp (mut i32) (i32.const 1024)) \
                (func $deep (global.set $sp (i32.sub (global.get $sp) (i32.const 64))) \
                  (i32.store (global.get $sp) (i32.const 0)) (call $deep))";
    let decision = passed_over(&Component::pruning("(call $deep)").items(deep));
    assert_eq!(failed_by(&decision), "trap");
    let said = "out of bounds memory access, probably a stack overflow: a function calls itself again and again (in \
                deep";
    assert!(reason(&decision).contains(said), "{}", reason(&decision));
    // Without a recursion it is only what it is.
    let decision = passed_over(&Component::pruning("(i32.store (i32.const -8) (i32.const 0))"));
    assert!(reason(&decision).contains("out of bounds memory access (in prune"), "{}", reason(&decision));
}

#[test]
fn one_that_allocates_without_end_meets_the_ceiling() {
    let decision = passed_over(&Component::pruning("(loop $l (drop (memory.grow (i32.const 16))) (br $l))"));
    assert_eq!(failed_by(&decision), "memory");
    assert!(decision.records[0].peak_bytes <= 8 << 20);
    assert!(decision.records[0].peak_bytes > 7 << 20);
}

#[test]
fn one_whose_tables_grow_without_end_meets_the_ceiling() {
    let decision = passed_over(
        &Component::pruning("(loop $l (drop (table.grow (ref.null func) (i32.const 10000))) (br $l))")
            .items("(table 1 funcref)"),
    );
    assert_eq!(failed_by(&decision), "table");
}

#[test]
fn one_that_traps_says_where() {
    let decision = passed_over(
        &Component::pruning("(call $inner)")
            .items("(func $_ZN6policy5inner17h0123456789abcdefE unreachable) (func $inner (call $_ZN6policy5inner17h0123456789abcdefE))"),
    );
    assert_eq!(failed_by(&decision), "trap");
    assert!(
        reason(&decision).contains("`unreachable` instruction executed (in policy::inner"),
        "{}",
        reason(&decision)
    );
    let Outcome::Failed { backtrace, .. } = &decision.records[0].outcome else { panic!() };
    assert!(backtrace.len() >= 3, "{backtrace:?}");
}

#[test]
fn the_message_of_a_panic_reaches_the_operator() {
    let decision = passed_over(
        &Component::pruning(&format!("(call $log (i32.const 1) (i32.const {DATA}) (i32.const 12)) unreachable"))
            .data("it went bust"),
    );
    assert!(reason(&decision).contains("executed: it went bust (in"), "{}", reason(&decision));
    assert_eq!(decision.records[0].log[0].text, "it went bust");
}

#[test]
fn plans_that_break_a_rule_are_refused_with_its_number() {
    let remove =
        |start: i32, end: i32| format!("(call $remove (local.get $plan) (i32.const {start}) (i32.const {end}))");
    for (plan, rule) in [
        (remove(0, 99), 8),
        (remove(3, 3), 8),
        (remove(4, 2), 8),
        (remove(-1, -1), 8),
        (format!("{} {}", remove(0, 4), remove(2, 6)), 8),
        (remove(10, 11), 2),
        (remove(0, 1), 1),
        (remove(1, 2), 1),
        (
            format!(
                "(loop $l {} (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 100))))",
                remove(0, 2)
            ),
            8,
        ),
    ] {
        let decision = passed_over(&Component::pruning(&plan));
        assert!(
            matches!(decision.records[0].outcome, Outcome::Rejected { rule: found, .. } if found == rule),
            "{plan}: {:?}",
            decision.records[0].outcome
        );
        assert_eq!(decision.verdict.rules(), [rule]);
    }
}

#[test]
fn a_marker_of_a_megabyte_is_corrected_or_stopped() {
    let marker = |bytes: u32| {
        Component::pruning(&format!(
            "(call $remove (local.get $plan) (i32.const 0) (i32.const 2)) \
             (memory.fill (i32.const 65536) (i32.const 120) (i32.const {bytes})) \
             (call $marker (local.get $plan) (i32.const 65536) (i32.const {bytes}))"
        ))
    };
    let runtime = runtime();
    let corrected = prune(&over_a_good_one(&runtime, &marker(1 << 19)));
    assert_eq!(corrected.records.len(), 1);
    assert_eq!(corrected.records[0].outcome, Outcome::Corrected { rules: vec![6] });
    assert_eq!(corrected.verdict.name(), "corrected");
    let (written, _) = corrected.applied.marker.unwrap();
    assert_eq!(written.text(), "(此處省略 1 輪較舊的對話以節省 context)");
    let stopped = passed_over(&marker((1 << 20) + 1));
    assert_eq!(failed_by(&stopped), "host-allocation");
}

#[test]
fn a_giant_log_is_cut_and_stops_nobody() {
    let component = Component::pruning(
        "(call $remove (local.get $plan) (i32.const 0) (i32.const 2)) \
         (memory.fill (i32.const 65536) (i32.const 120) (i32.const 500000)) \
         (loop $l (call $log (i32.const 3) (i32.const 65536) (i32.const 500000)) \
           (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 2))))",
    );
    let runtime = runtime();
    let decision = prune(&over_a_good_one(&runtime, &component));
    assert_eq!(decision.records[0].outcome, Outcome::Accepted);
    assert_eq!(decision.records[0].log.iter().map(|line| line.text.len()).sum::<usize>(), 8 << 10);
    assert!(decision.records[0].log_is_cut);
}

#[test]
fn a_small_policy_needs_little_fuel() {
    let limits = Limits { fuel_base: 10_000, fuel_per_message: 0, ..small_limits() };
    let decision = prune(&over_a_good_one(&runtime_with(limits), &good()));
    assert_eq!(decision.records[0].outcome, Outcome::Accepted, "{:?}", decision.records[0]);
}

#[test]
fn a_plan_that_grows_the_prompt_is_refused() {
    let runtime = runtime();
    let stack = Stack::new([], layer(&runtime, &good()));
    let short = [Message::user("a"), Message::assistant("b"), Message::user("c")];
    let decision = stack.prune(&Arc::new(Transcript::of_messages(short)), room());
    assert!(matches!(decision.records[0].outcome, Outcome::Rejected { rule: 5, .. }), "{:?}", decision.records[0]);
    assert_eq!(decision.applied.kept, [0, 1, 2]);
}

#[test]
fn a_plan_that_splits_a_tool_pair_is_refused() {
    let call = Block::ToolUse { id: "t1".into(), name: "search".into(), input: serde_json::json!({}) };
    let result = Block::ToolResult { tool_use_id: "t1".into(), content: "found ".repeat(900), is_error: false };
    let messages = [
        Message::user("look"),
        Message { role: Role::Assistant, origin: Origin::Assistant, blocks: vec![call] },
        Message { role: Role::User, origin: Origin::ToolResult, blocks: vec![result] },
        Message::assistant("done"),
        Message::user("and now?"),
    ];
    let transcript = Arc::new(Transcript::of_messages(messages));
    let runtime = runtime();
    // The turn alone exceeds the limit, so parts of it may be removed, but not the result without its call.
    let tight = PruneInput { limit: 400, ..room() };
    for (range, accepted) in [("(i32.const 2) (i32.const 3)", false), ("(i32.const 1) (i32.const 3)", true)] {
        let component = Component::pruning(&format!("(call $remove (local.get $plan) {range})"));
        let decision = Stack::new([], layer(&runtime, &component)).prune(&transcript, tight);
        let outcome = &decision.records[0].outcome;
        if accepted {
            assert_eq!(outcome, &Outcome::Accepted);
        } else {
            assert!(matches!(outcome, Outcome::Rejected { rule: 1, .. }), "{outcome:?}");
        }
    }
}

#[test]
fn when_all_layers_fail_the_floor_decides() {
    let runtime = runtime();
    let bad = Component::pruning("unreachable");
    let stack = Stack::new([layer(&runtime, &bad)], layer(&runtime, &bad));
    let decision = prune(&stack);
    assert_eq!(decided_by(&decision), "floor");
    assert_eq!(decision.records.len(), 2);
    assert_eq!(decision.applied.kept, [8, 9, 10]);
}

#[test]
fn the_same_input_costs_the_same_fuel() {
    let component = Component::pruning(
        "(call $tokens (local.get $transcript) (i32.const 0) (i32.const -1) (i32.const 256)) \
         (call $remove (local.get $plan) (i32.const 0) (i32.sub (i32.load (i32.const 260)) (i32.const 1)))",
    );
    let (one, other) = (runtime(), runtime());
    let decisions = [&one, &other, &one].map(|runtime| {
        let stack = Stack::new([layer(runtime, &component)], layer(runtime, &good()));
        let decision = stack.prune(&transcript(40), room());
        assert_eq!(decision.records[0].outcome, Outcome::Accepted);
        (decision.records[0].fuel, decision.applied.removed)
    });
    assert_eq!(decisions[0].1.len(), 80);
    assert_eq!(decisions[0], decisions[1]);
    assert_eq!(decisions[0], decisions[2]);
}
