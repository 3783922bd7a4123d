//! A policy that keeps failing is suspended, but only in stacks with circuit breakers.

use pmk_core::{CapVerdict, Origin, Verdict};
use pmk_policy::{Change, Decision, IncomingInput, Outcome, PruneInput, Stack, Suspension};

use crate::{
    component::Component, layer, over_a_good_one, prune, reason, room, runtime, stack::with_common_settings, transcript,
};

#[test]
fn a_stack_without_breakers_asks_a_failing_policy_each_time() {
    let stack = over_a_good_one(&runtime(), &Component::pruning("unreachable"));
    for _ in 0..50 {
        assert!(matches!(prune(&stack).records[0].outcome, Outcome::Failed { .. }));
    }
}

#[test]
fn with_breakers_the_next_layer_takes_over_at_once() {
    let stack = over_a_good_one(&runtime(), &Component::pruning("unreachable")).with_breakers();
    for n in 0..5 {
        let decision = prune(&stack);
        let change = decision.records[0].breaker;
        let suspended = Change::Suspended { failures: 5, pause: 20, first: true };
        assert_eq!(change, (n == 4).then_some(suspended), "{n}");
    }
    for _ in 0..20 {
        let decision = prune(&stack);
        assert_eq!(decision.records[0].outcome, Outcome::Skipped { why: "suspended" });
        assert_eq!(reason(&decision), "it was not");
        assert_eq!(decision.records[0].fuel, 0);
        assert_eq!(decision.applied.removed, [0, 1], "the layer below decides");
        assert_eq!(decision.verdict, Verdict::Accepted, "of the one that was asked first");
    }
    assert_eq!(stack.suspensions()[0].left, 0);
    assert!(matches!(prune(&stack).records[0].outcome, Outcome::Failed { .. }), "it is tried again");
    assert_eq!(stack.suspensions()[0].left, 40);
    assert!(prune(&stack).records[0].outcome.is_skipped());
    let record = serde_json::to_value(&prune(&stack).records[0]).unwrap();
    assert_eq!(record["outcome"], serde_json::json!({"result": "skipped", "why": "suspended"}));
    // New breakers start closed.
    assert!(matches!(prune(&stack.with_breakers()).records[0].outcome, Outcome::Failed { .. }));
}

/// Regression: only the ledger told; whoever asked which policies decide was told of a suspended one as of any other.
#[test]
fn a_suspended_policy_was_listed_as_one_that_decides() {
    let stack = over_a_good_one(&runtime(), &Component::pruning("unreachable")).with_breakers();
    for _ in 0..4 {
        prune(&stack);
    }
    assert_eq!(stack.suspensions(), []);
    let failed = prune(&stack);
    prune(&stack);
    let suspension = Suspension {
        policy: failed.records[0].policy.clone(),
        decision: Decision::Prune,
        left: 19,
        reason: failed.records[0].outcome.reason().unwrap().to_owned(),
    };
    assert_eq!(stack.suspensions(), [suspension]);
    assert_eq!(stack.without_breakers().suspensions(), []);
    assert_eq!(stack.with_breakers().suspensions(), [], "new breakers start closed");
}

/// A shadow arm without policies of its own is asked like this: its failures once suspended what served.
#[test]
fn what_is_asked_without_the_breakers_of_a_stack_does_not_count_there() {
    let stack = over_a_good_one(&runtime(), &Component::pruning("unreachable")).with_breakers();
    for _ in 0..20 {
        assert!(matches!(prune(&stack.without_breakers()).records[0].outcome, Outcome::Failed { .. }));
    }
    for _ in 0..5 {
        assert!(matches!(prune(&stack).records[0].outcome, Outcome::Failed { .. }), "it is not suspended");
    }
    assert!(prune(&stack).records[0].outcome.is_skipped());
    assert!(matches!(prune(&stack.without_breakers()).records[0].outcome, Outcome::Failed { .. }));
}

#[test]
fn what_a_suspended_layer_allowed_still_binds_the_layers_below() {
    let runtime = runtime();
    let failing = with_common_settings(Component::new().export("cap", "unreachable"), 50, 1);
    let generous =
        Component::new().export("cap", "(call $cap (local.get $cap-verdict) (i32.const 900) (i32.const 60))");
    let stack = Stack::new([layer(&runtime, &failing)], layer(&runtime, &generous)).with_breakers();
    let seed =
        || IncomingInput { kind: Origin::Seed, name: String::new(), text: "預算 ".repeat(400).into(), limit: 9_000 };
    for _ in 0..5 {
        stack.cap(seed());
    }
    let decision = stack.cap(seed());
    assert!(decision.records[0].outcome.is_skipped());
    assert_eq!(decision.verdict, CapVerdict::Shorten { head: 50, tail: 0 });
}

#[test]
fn a_plan_that_is_only_too_large_does_not_count() {
    // An empty plan exceeds the limit, which does not count against the policy.
    let runtime = runtime();
    let stack = over_a_good_one(&runtime, &Component::pruning("")).with_breakers();
    let tight = PruneInput { limit: 700, ..room() };
    for _ in 0..40 {
        let decision = stack.prune(&transcript(5), tight);
        assert!(matches!(decision.records[0].outcome, Outcome::Rejected { rule: 9, .. }), "{:?}", decision.records[0]);
    }
}

/// Regression: it was said to work again, although such a plan had been no fault before.
#[test]
fn a_trial_whose_plan_was_only_too_large_ended_the_suspension() {
    let runtime = runtime();
    let traps_with_room = "(if (i64.gt_u (call $limit (local.get $budget)) (i64.const 50000)) (then unreachable))";
    let stack = over_a_good_one(&runtime, &Component::pruning(traps_with_room)).with_breakers();
    while stack.suspensions().is_empty() {
        prune(&stack);
    }
    let trial = |limit| {
        while stack.suspensions()[0].left > 0 {
            assert!(prune(&stack).records[0].outcome.is_skipped());
        }
        stack.prune(&transcript(5), PruneInput { limit, ..room() }).records.swap_remove(0)
    };
    let too_large = trial(700);
    assert!(matches!(too_large.outcome, Outcome::Rejected { rule: 9, .. }), "{too_large:?}");
    assert_eq!(too_large.breaker, None);
    assert_eq!(stack.suspensions()[0].left, 20, "it is tried again, no later than before");
    // An empty plan that fits shows that it works.
    assert_eq!(trial(50_000).breaker, Some(Change::Resumed));
    assert_eq!(stack.suspensions(), []);
}

#[test]
fn the_lowest_layer_is_always_asked() {
    let stack = Stack::new([], layer(&runtime(), &Component::pruning("unreachable"))).with_breakers();
    for _ in 0..50 {
        assert!(matches!(prune(&stack).records[0].outcome, Outcome::Failed { .. }));
    }
}
