//! Layers: which are asked, which decides, and the bounds that a failed layer sets for those below.

use pmk_core::{CapVerdict, Origin, Verdict};
use pmk_policy::{DecidedBy, IncomingInput, Limits, Outcome, OverflowInput, Rung, Runtime, Stack, Trust};

use crate::{
    component::{Component, DATA},
    good, layer, prune, runtime, small_limits, transcript,
};

fn incoming(kind: Origin) -> IncomingInput {
    IncomingInput { kind, name: "repo".into(), text: "預算 ".repeat(4_000).into(), limit: 100_000 }
}

/// Declares `max-session-tokens`, `seed-cap` and `mra-result-cap`, all with this default and minimum.
pub fn with_common_settings(component: Component, default: i64, min: i64) -> Component {
    let declare = |offset: u32, length: u32| {
        format!(
            "(call $declare-integer (local.get $description) (i32.const {}) (i32.const {length}) \
             (i64.const {default}) (i64.const {min}) (i64.const 1000000) (i32.const 0) (i32.const 0))",
            DATA + offset
        )
    };
    let declarations = format!("{} {} {}", declare(0, 18), declare(18, 8), declare(26, 14));
    component.data("max-session-tokensseed-capmra-result-cap").describing(&declarations)
}

#[test]
fn a_layer_that_does_not_prune_is_not_asked() {
    let runtime = runtime();
    let stack = Stack::new([layer(&runtime, &Component::new().export("cap", ""))], layer(&runtime, &good()));
    let decision = prune(&stack);
    assert_eq!(decision.verdict, Verdict::Accepted);
    assert_eq!(decision.records.len(), 1);
    assert_eq!(decision.applied.removed, [0, 1]);
}

#[test]
fn the_top_layer_decides() {
    let runtime = runtime();
    let top = Component::pruning("(call $remove (local.get $plan) (i32.const 0) (i32.const 4))");
    let stack = Stack::new([layer(&runtime, &top)], layer(&runtime, &good()));
    let decision = prune(&stack);
    assert_eq!(decision.applied.removed, [0, 1, 2, 3]);
    assert_eq!(decision.records.len(), 1);
    assert_eq!(stack.top().policy.identity(), &decision.records[0].policy);
}

#[test]
fn a_cap_is_what_the_policy_says() {
    let runtime = runtime();
    let component = Component::new().export(
        "cap",
        "(call $cap (local.get $cap-verdict) (call $incoming-tokens (local.get $incoming)) (i32.const 7))",
    );
    let stack = Stack::new([], layer(&runtime, &component));
    let decision = stack.cap(incoming(Origin::ToolResult));
    let tokens = pmk_core::tokens::estimate(&incoming(Origin::ToolResult).text);
    assert_eq!(decision.verdict, CapVerdict::Shorten { head: tokens, tail: 7 });
    assert_eq!(decision.records[0].outcome, Outcome::Accepted);
}

#[test]
fn what_a_failed_layer_allowed_binds_the_layers_below() {
    let runtime = runtime();
    let failing =
        with_common_settings(Component::new().export("cap", "unreachable").export("prune", "unreachable"), 50, 1);
    let generous =
        Component::new().export("cap", "(call $cap (local.get $cap-verdict) (i32.const 900) (i32.const 60))");
    let stack = Stack::new([layer(&runtime, &failing)], layer(&runtime, &generous));
    assert_eq!(stack.cap(incoming(Origin::Seed)).verdict, CapVerdict::Shorten { head: 50, tail: 0 });
    assert_eq!(stack.cap(incoming(Origin::ToolResult)).verdict, CapVerdict::Shorten { head: 900, tail: 60 });

    let nobody = Stack::new([], layer(&runtime, &failing));
    let decision = nobody.cap(incoming(Origin::MraResult));
    assert_eq!(decision.verdict, CapVerdict::Shorten { head: 50, tail: 0 });
    assert_eq!(decision.decided_by, DecidedBy::Floor);
    assert_eq!(nobody.cap(incoming(Origin::Attachment)).verdict, CapVerdict::Keep);
}

#[test]
fn a_bound_reaches_the_settings_of_the_layer_below() {
    let runtime = runtime();
    // Removes as many messages as `max-session-tokens` says.
    let obedient = |default: i64, min: i64| {
        let prune = Component::pruning(&format!(
            "(call $setting-integer (i32.const {DATA}) (i32.const 18) (i32.const 256)) \
             (call $remove (local.get $plan) (i32.const 0) (i32.wrap_i64 (i64.load (i32.const 264))))"
        ));
        layer(&runtime, &with_common_settings(prune, default, min))
    };
    let removed = |stack: &Stack| prune(stack).applied.removed.len();
    assert_eq!(removed(&Stack::new([], obedient(6, 1))), 6);
    let failing = layer(&runtime, &with_common_settings(Component::pruning("unreachable"), 2, 1));
    assert_eq!(removed(&Stack::new([failing.clone()], obedient(6, 1))), 2);
    assert_eq!(removed(&Stack::new([failing.clone()], obedient(0, 0))), 2, "0 means no bound of its own");
    assert_eq!(removed(&Stack::new([failing], obedient(6, 4))), 4, "not below what it declares as its minimum");
}

#[test]
fn a_rung_must_be_available() {
    let runtime = runtime();
    let choosing = |rung: u32| {
        let body = format!("(call $choose (local.get $recovery) (i32.const {rung}))");
        layer(&runtime, &Component::new().export("recover", &body))
    };
    let overflow = |available: &[Rung]| OverflowInput { available: available.to_vec(), ..OverflowInput::default() };
    let stack = Stack::new([choosing(3)], choosing(2));
    assert_eq!(stack.recover(overflow(&[Rung::Trim, Rung::Compact, Rung::Rotate])).rung, Rung::Rotate);
    let decision = stack.recover(overflow(&[Rung::Trim, Rung::Compact]));
    assert_eq!(decision.rung, Rung::Compact);
    assert_eq!(decision.records[0].outcome.reason(), Some("chose the rung `rotate`, which is not available"));
    let decision = stack.recover(overflow(&[Rung::Trim]));
    assert_eq!((decision.rung, decision.decided_by), (Rung::Trim, DecidedBy::Floor));
    assert_eq!(stack.recover(overflow(&[])).rung, Rung::GiveUp);
    assert_eq!(Stack::new([], choosing(4)).recover(overflow(&[Rung::Trim])).rung, Rung::GiveUp);
    let nonsense = Stack::new([], choosing(77)).recover(overflow(&[]));
    assert_eq!(nonsense.records[0].outcome.reason(), Some("chose the rung 77, which does not exist"));
}

/// Regression: a policy that left the choice to the next one was recorded as failed, and suspended after five times.
#[test]
fn a_choice_that_is_left_to_the_layer_below_is_no_fault() {
    let runtime = runtime();
    let silent = layer(&runtime, &Component::new().export("recover", ""));
    let choosing = Component::new().export("recover", "(call $choose (local.get $recovery) (i32.const 2))");
    let overflow = OverflowInput { available: vec![Rung::Trim, Rung::Compact], ..OverflowInput::default() };
    let stack = Stack::new([silent.clone()], layer(&runtime, &choosing)).with_breakers();
    for _ in 0..10 {
        let decision = stack.recover(overflow.clone());
        assert_eq!((decision.rung, decision.records.len()), (Rung::Compact, 2));
        assert_eq!(decision.records[0].outcome, Outcome::Accepted);
    }
    let alone = Stack::new([], silent).recover(overflow);
    assert_eq!((alone.rung, alone.decided_by), (Rung::Trim, DecidedBy::Floor));
}

#[test]
fn a_summary_is_cut_to_what_is_allowed() {
    let runtime = runtime();
    let body = format!(
        "(loop $l (call $append (local.get $summary) (i32.const {DATA}) (i32.const 10)) \
         (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 100))))"
    );
    let verbose = Component::new().export("summarize", &body).data("ten bytes ");
    let stack = Stack::new([], layer(&runtime, &verbose));
    let whole = stack.summarize(&transcript(3), 6_000);
    assert_eq!(whole.text, "ten bytes ".repeat(100));
    assert_eq!(whole.records[0].outcome, Outcome::Accepted);
    let cut = stack.summarize(&transcript(3), 20);
    assert!(pmk_core::tokens::estimate(&cut.text) <= 20 && !cut.text.is_empty());
    assert_eq!(cut.records[0].outcome, Outcome::Corrected { rules: vec![7] });

    let mute = Stack::new([], layer(&runtime, &Component::new().export("summarize", "unreachable")));
    let nothing = mute.summarize(&transcript(3), 6_000);
    assert_eq!((nothing.text.as_str(), nothing.decided_by), ("", DecidedBy::Floor));
}

/// An empty summary counted as an answer, so a fresh session began with nothing.
#[test]
fn a_summary_that_says_nothing_is_left_to_the_layer_below() {
    let runtime = runtime();
    let writing = |text: &str| {
        let append = format!("(call $append (local.get $summary) (i32.const {DATA}) (i32.const {}))", text.len());
        layer(&runtime, &Component::new().export("summarize", &append).data(text))
    };
    for nothing in ["", "  ", "\u{200b}\u{feff} "] {
        let decision = Stack::new([writing(nothing)], writing("what was said")).summarize(&transcript(3), 6_000);
        assert_eq!((decision.text.as_str(), decision.records.len()), ("what was said", 2), "{nothing:?}");
        assert!(!decision.records[0].outcome.is_bad());
        let alone = Stack::new([], writing(nothing)).summarize(&transcript(3), 6_000);
        assert_eq!((alone.text.as_str(), alone.decided_by), ("", DecidedBy::Floor), "{nothing:?}");
    }
}

#[test]
fn reading_past_the_end_gives_what_is_there() {
    let runtime = runtime();
    let component = Component::pruning(
        "(call $text (local.get $transcript) (i32.const 99) (i32.const 0) (i32.const -1) (i32.const 256)) \
         (if (i32.load (i32.const 260)) (then unreachable)) \
         (call $text (local.get $transcript) (i32.const 0) (i32.const -1) (i32.const 9) (i32.const 256)) \
         (if (i32.load (i32.const 260)) (then unreachable)) \
         (call $text (local.get $transcript) (i32.const 10) (i32.const 4) (i32.const -1) (i32.const 256)) \
         (if (i32.ne (i32.load (i32.const 260)) (i32.const 4)) (then unreachable)) \
         (call $tokens (local.get $transcript) (i32.const 9) (i32.const 99) (i32.const 256)) \
         (if (i32.ne (i32.load (i32.const 260)) (i32.const 2)) (then unreachable)) \
         (call $tokens (local.get $transcript) (i32.const 8) (i32.const 3) (i32.const 256)) \
         (if (i32.load (i32.const 260)) (then unreachable))",
    );
    let decision = prune(&Stack::new([], layer(&runtime, &component)));
    assert_eq!(decision.records[0].outcome, Outcome::Accepted);
    // Of three reads of a text, only one was of a text that exists.
    assert_eq!(decision.records[0].texts_read.iter().collect::<Vec<_>>(), [(10, 4)]);
}

#[test]
fn more_decisions_at_once_than_the_pool_holds_wait_for_each_other() {
    let runtime = runtime();
    let stack = Stack::new([], layer(&runtime, &good()));
    std::thread::scope(|scope| {
        for _ in 0..64 {
            scope.spawn(|| assert_eq!(prune(&stack).applied.removed, [0, 1]));
        }
    });
}

#[test]
fn a_record_serializes_for_the_ledger() {
    let runtime = runtime();
    let failing = layer(&runtime, &Component::pruning("unreachable"));
    let decision = prune(&Stack::new([failing], layer(&runtime, &good())));
    let json = serde_json::to_value(&decision.records).unwrap();
    assert_eq!(json[0]["policy"]["name"], "test");
    assert_eq!(json[0]["decision"], "prune");
    assert_eq!(json[0]["outcome"]["result"], "failed");
    assert_eq!(json[0]["outcome"]["kind"], "trap");
    assert_eq!(json[1]["outcome"]["result"], "accepted");
    assert!(json[1]["fuel"].as_u64().unwrap() > 0);
}

/// Regression: only policies and settings were compared, and other limits than before were not taken over.
#[test]
fn policies_with_other_limits_were_taken_for_the_same() {
    let runtime = runtime();
    let of = |runtime: &Runtime| Stack::new([layer(runtime, &good())], layer(runtime, &good()));
    let stack = of(&runtime);
    assert!(stack.decides_like(&of(&runtime).with_breakers()));
    let more_fuel = Limits { fuel_base: 30_000_000, ..small_limits() };
    assert!(!stack.decides_like(&of(&runtime.under(more_fuel, Trust::default()))));
    assert!(!stack.decides_like(&of(&runtime).with_seed_may_go(true)));
    let with_a_setting = layer(&runtime, &with_common_settings(good(), 50, 1));
    assert!(!stack.decides_like(&Stack::new([with_a_setting], layer(&runtime, &good()))));
    assert!(!stack.decides_like(&Stack::new([], layer(&runtime, &good()))));
}
