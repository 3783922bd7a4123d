//! Properties of the trim rung and of the floor.

use std::collections::BTreeSet;

use pmk_core::{Guard, Plan, floor, testing};
use proptest::prelude::*;

use crate::{check_request, oracle::Oracle, sent_as_history, some_limit};

/// The steps of the floor: the messages removed by then, and whether a marker stands for them.
fn steps(oracle: &Oracle<'_>) -> Vec<(BTreeSet<usize>, bool)> {
    let seed_end = oracle.seed_end();
    let last_turn = (0..oracle.current).rev().find(|&at| oracle.starts_turn(at)).map(|at| oracle.part(at).0);
    let current = oracle.new_message().map_or(oracle.len(), |new| oracle.part(new).0);
    let kept_from = last_turn.unwrap_or_else(|| oracle.part(oracle.stored_end()).0.min(current));
    let movable = |range: std::ops::Range<usize>| range.filter(|&at| !oracle.is_marker(at)).collect::<BTreeSet<_>>();

    let mut steps: Vec<_> = [kept_from, oracle.part(oracle.stored_end()).0.min(current), current]
        .map(|end| (movable(seed_end..end), true))
        .into();
    let mut gone = steps[2].0.clone();
    for at in current..oracle.len() {
        if oracle.in_pair(at) && !gone.contains(&at) {
            gone.extend(oracle.tied(at));
            steps.push((gone.clone(), true));
        }
    }
    gone.extend(movable(0..oracle.current));
    steps.push((gone.clone(), true));
    steps.push((gone.clone(), false));
    for at in oracle.current + 1..oracle.len() {
        gone.extend(movable(at..at + 1));
        steps.push((gone.clone(), false));
    }
    steps
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn the_floor_gives_up_no_more_than_it_must_and_in_order(seed in any::<u64>(), turns in 0usize..12) {
        let transcript = testing::random_transcript(seed, turns);
        let oracle = Oracle::new(&transcript);
        let limit = some_limit(seed, &transcript);
        let applied = floor::decide(&transcript, limit);
        check_request(&transcript, &applied, None);

        let alone = oracle.new_message().map_or(0, |new| oracle.cost(new));
        prop_assert!(applied.tokens_after <= limit.max(alone));
        prop_assert!(applied.replaced.is_empty() && applied.corrected.is_empty());

        let nothing = oracle.cost_without(&BTreeSet::new(), None, true);
        let steps = steps(&oracle);
        let costs = |(gone, marker): &(BTreeSet<usize>, bool)| oracle.cost_without(gone, None, *marker);
        prop_assert!(applied.tokens_after <= nothing);
        let expected = if costs(&steps[0]) > nothing.min(limit) && nothing <= limit {
            (BTreeSet::new(), true)
        } else {
            steps.iter().find(|step| costs(step) <= nothing.min(limit)).unwrap_or(&steps[steps.len() - 1]).clone()
        };
        let gone: BTreeSet<usize> =
            applied.removed.iter().map(|&at| at as usize).filter(|&at| !oracle.is_marker(at)).collect();
        prop_assert_eq!(&gone, &expected.0);
        prop_assert_eq!(applied.tokens_after, costs(&expected));
    }

    #[test]
    fn trim_keeps_the_seed_and_the_last_turn_and_is_idempotent(seed in any::<u64>(), turns in 0usize..12) {
        let transcript = testing::random_transcript(seed, turns);
        let oracle = Oracle::new(&transcript);
        let plan = floor::trim(&transcript);
        let guard = Guard { limit: u64::MAX, seed_may_go: false, must_shrink: false };
        let Ok(applied) = guard.apply(&transcript, &plan) else {
            let nothing = transcript.total_tokens().max(Plan::new().tokens(&transcript));
            prop_assert!(plan.tokens(&transcript) > nothing, "refused though it helps");
            return Ok(());
        };
        check_request(&transcript, &applied, None);
        let expected = &steps(&oracle)[0].0;
        prop_assert!((0..oracle.len()).all(|at| oracle.is_marker(at)
            || expected.contains(&at) == applied.removed.contains(&(at as u32))));

        let trimmed = sent_as_history(&transcript, &applied);
        let again = floor::trim(&trimmed);
        prop_assert!(again.edits().is_empty());
        prop_assert!(!guard.apply(&trimmed, &again).expect("nothing to refuse").changes_anything());
    }
}
