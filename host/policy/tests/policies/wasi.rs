//! WASI is available and denies everything.

use pmk_policy::{LogLevel, Outcome, Stack};

use crate::{
    component::{Component, DATA},
    failed_by, layer, over_a_good_one, prune, reason, runtime,
};

/// Prints the text at [`DATA`] to stderr, `times` times.
fn printing(length: u32, times: u32) -> String {
    format!(
        "(loop $l (call $print (call $get-stderr) (i32.const {DATA}) (i32.const {length}) (i32.const 2048)) \
         (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const {times}))))"
    )
}

#[test]
fn exit_is_only_a_failure() {
    let runtime = runtime();
    let decision = prune(&over_a_good_one(&runtime, &Component::pruning("(call $exit (i32.const 1))")));
    assert_eq!(failed_by(&decision), "exit");
    assert_eq!(decision.applied.removed, [0, 1]);
}

#[test]
fn what_is_printed_goes_to_the_log() {
    let runtime = runtime();
    let component = Component::pruning(&printing(6, 2)).data("hello\\n");
    let decision = prune(&Stack::new([], layer(&runtime, &component)));
    assert_eq!(decision.records[0].outcome, Outcome::Accepted);
    let log: Vec<_> = decision.records[0].log.iter().map(|line| (line.level, line.text.as_str())).collect();
    assert_eq!(log, [(LogLevel::Error, "hello"), (LogLevel::Error, "hello")]);
}

#[test]
fn printing_without_end_drops_the_tail() {
    let runtime = runtime();
    let component = Component::pruning(&printing(1_000, 900)).data(&"x".repeat(1_000));
    let decision = prune(&Stack::new([], layer(&runtime, &component)));
    assert_eq!(decision.records[0].outcome, Outcome::Accepted);
    assert_eq!(decision.records[0].log.iter().map(|line| line.text.len()).sum::<usize>(), 8 << 10);
}

#[test]
fn the_message_of_a_printed_panic_reaches_the_operator() {
    let runtime = runtime();
    let body = format!("{} unreachable", printing(27, 1));
    let component = Component::pruning(&body).data("panicked at src/lib.rs: oh no");
    let decision = prune(&over_a_good_one(&runtime, &component));
    assert!(reason(&decision).contains(": panicked at src/lib.rs: oh (in"), "{}", reason(&decision));
}

#[test]
fn clocks_and_random_numbers_never_change() {
    let runtime = runtime();
    // Removes the first turn if the clock shows 0 and two random numbers are equal.
    let component = Component::pruning(
        "(if (i32.and (i64.eqz (call $now)) (i64.eq (call $random) (call $random))) \
           (then (call $remove (local.get $plan) (i32.const 0) (i32.const 2))))",
    );
    let stack = Stack::new([], layer(&runtime, &component));
    assert_eq!(prune(&stack).applied.removed, [0, 1]);
    assert_eq!(prune(&stack).records[0].fuel, prune(&stack).records[0].fuel);
}

#[test]
fn it_works_inside_an_async_runtime() {
    let tokio = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let runtime = runtime();
    let component = Component::pruning(&printing(6, 2)).data("hello\\n");
    let stack = Stack::new([], layer(&runtime, &component));
    let decision = tokio.block_on(async { prune(&stack) });
    assert_eq!(decision.records[0].outcome, Outcome::Accepted);
}
