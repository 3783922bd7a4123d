//! Properties of the guard, the floor and the repair of imported histories, against an independent
//! oracle.

mod cases;
mod floor;
mod oracle;
mod repair;

use pmk_core::{
    Applied, Edit, Entry, Guard, Message, Origin, Plan, Role, Transcript, marker, message, request, structure,
    testing::{self, Rng},
};
use proptest::prelude::*;

use crate::oracle::{Limits, Oracle};

/// A hard limit: around the cost of the history, or far from it.
pub fn some_limit(seed: u64, transcript: &Transcript) -> u64 {
    let total = transcript.total_tokens();
    let mut rng = Rng::new(!seed);
    match rng.below(8) {
        0 => u64::MAX,
        1 => rng.below(200) as u64,
        2 => total.saturating_sub(rng.below(40) as u64),
        _ => rng.bits() % (total + total / 4 + 1),
    }
}

/// The history of the next turn: what was sent.
pub fn sent_as_history(transcript: &Transcript, applied: &Applied) -> Transcript {
    let messages = applied.messages(transcript);
    let still_current = applied.kept.iter().filter(|&&at| at as usize >= transcript.current()).count();
    let current = messages.len() - still_current;
    Transcript::new(messages.into_iter().map(|message| Entry::new(1, message)).collect(), current, "general")
}

fn guard(limits: &Limits) -> Guard {
    Guard { limit: limits.limit, seed_may_go: limits.seed_may_go, must_shrink: limits.must_shrink }
}

fn words(plan: &Plan) -> Option<&str> {
    match plan.words() {
        pmk_core::Words::Good(words) => Some(words),
        _ => None,
    }
}

/// Checks that a request that passed is one that the rules allow.
pub fn check_request(transcript: &Transcript, applied: &Applied, words: Option<&str>) {
    let oracle = Oracle::new(transcript);
    let mut every: Vec<u32> = applied.kept.iter().chain(&applied.removed).copied().collect();
    every.sort_unstable();
    assert_eq!(every, (0..transcript.len() as u32).collect::<Vec<_>>());
    assert!(
        applied.kept.is_sorted() && applied.removed.is_sorted() && applied.replaced.is_sorted_by_key(|by| by.index)
    );
    assert!(applied.replaced.iter().all(|by| applied.kept.contains(&by.index)));

    // Rule 2.
    if let Some(new) = oracle.new_message() {
        assert!(applied.kept.contains(&(new as u32)));
        assert!(applied.replaced.iter().all(|by| by.index as usize != new));
    }
    // Rule 1, and the provider's rules.
    let messages = applied.messages(transcript);
    oracle::check_sendable(&request::alternate(message::shared(messages.clone())));
    // Rule 6.
    let gone = applied.removed.iter().map(|&at| at as usize).filter(|&at| !oracle.is_marker(at)).collect();
    let dropped = oracle.stored_turns(&gone);
    let total = transcript.dropped_turns().saturating_add(dropped);
    assert_eq!((applied.turns_dropped, applied.turns_dropped_total), (dropped, total));
    let markers: Vec<&Message> = messages.iter().filter(|message| message.origin == Origin::Marker).collect();
    assert!(markers.len() <= 1);
    if let Some((written, before)) = &applied.marker {
        assert_eq!(written.text(), oracle::marker_text(words, total));
        assert_eq!(markers[0].plain_text(), written.text());
        let after_seed = applied.kept.iter().find(|&&at| at as usize >= oracle.seed_end());
        assert_eq!(after_seed.copied().unwrap_or(transcript.len() as u32), *before);
    }
    // The recall block precedes the new message, is quoted, and is the only one.
    if let Some(recall) = &applied.recall {
        let new = transcript.entries()[oracle.new_message().expect("a new message")].message.clone();
        // Random histories have recall blocks elsewhere, too.
        let blocks = messages.iter().filter(|message| message.origin == Origin::Recall).count();
        let is_block = |&&at: &&u32| transcript.entries()[at as usize].message.origin == Origin::Recall;
        assert_eq!(blocks, applied.kept.iter().filter(is_block).count() + 1);
        let shown = messages.iter().position(|message| *message == *recall.message).expect("the block");
        assert_eq!(messages[shown + 1], *new);
        let text = messages[shown].plain_text();
        let quoted = |line: &str| {
            line.is_empty() || line.starts_with("> ") || line.starts_with("[m") || line.starts_with("(of ")
        };
        assert!(text.lines().skip(1).all(quoted), "{text}");
        assert!(pmk_core::tokens::message(&recall.message) <= recall.tokens);
    }
    // The stated cost is the actual cost.
    let saved: u64 = applied.replaced.iter().map(|by| oracle.cost(by.index as usize) - u64::from(by.tokens)).sum();
    let kept: u64 = applied.kept.iter().map(|&at| oracle.cost(at as usize)).sum();
    let written = applied.marker.as_ref().map_or(0, |(marker, _)| u64::from(marker.tokens()));
    let recalled = applied.recall.as_ref().map_or(0, |recall| u64::from(recall.tokens));
    assert_eq!(applied.tokens_after, kept - saved + written + recalled);
    assert_eq!(applied.tokens_before, (0..oracle.len()).map(|at| oracle.cost(at)).sum::<u64>());
}

fn check_plan(transcript: &Transcript, plan: &Plan, limits: &Limits) -> Result<bool, TestCaseError> {
    let oracle = Oracle::new(transcript);
    let words = words(plan);
    let allowed = oracle.allows(plan, words, limits);
    match guard(limits).apply(transcript, plan) {
        Err(breach) => prop_assert!(!allowed, "refused, and should not be: {breach}"),
        Ok(applied) => {
            prop_assert!(allowed, "let through, and should not be");
            check_request(transcript, &applied, words);
            prop_assert_eq!(plan.tokens(transcript), applied.tokens_after);
            prop_assert!(applied.tokens_after <= limits.limit);
            let (gone, replaced) = oracle.edits(plan).expect("sensible edits");
            prop_assert_eq!(replaced.len(), applied.replaced.len());
            for at in 0..oracle.len() {
                let is_gone = applied.removed.contains(&(at as u32));
                let makes_room = applied.recall.is_some() && oracle.standing_recalls().contains(&at);
                prop_assert!(is_gone == (gone.contains(&at) || makes_room) || oracle.is_marker(at));
            }
            for edit in plan.edits() {
                if let Edit::Replace { reduction, result: Some(by), .. } = edit {
                    oracle.check_replacement(by, *reduction);
                }
            }
        }
    }
    Ok(allowed)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn the_guard_and_the_oracle_agree_on_hostile_plans(
        seed in any::<u64>(), turns in 0usize..12, seed_may_go in any::<bool>(), must_shrink in any::<bool>(),
    ) {
        let transcript = testing::random_transcript(seed, turns);
        let plan = testing::random_plan(seed, &transcript);
        let limits = Limits { limit: some_limit(seed, &transcript), seed_may_go, must_shrink };
        check_plan(&transcript, &plan, &limits)?;
    }

    #[test]
    fn the_guard_and_the_oracle_agree_on_sensible_plans(
        seed in any::<u64>(), turns in 0usize..12, seed_may_go in any::<bool>(), must_shrink in any::<bool>(),
    ) {
        let transcript = testing::random_transcript(seed, turns);
        let plan = testing::sensible_plan(seed, &transcript);
        let limits = Limits { limit: some_limit(seed, &transcript), seed_may_go, must_shrink };
        check_plan(&transcript, &plan, &limits)?;
    }

    #[test]
    fn whole_turns_may_always_go_if_that_helps(seed in any::<u64>(), turns in 1usize..12, which in any::<u64>()) {
        let transcript = testing::random_transcript(seed, turns);
        let oracle = Oracle::new(&transcript);
        let mut plan = Plan::new();
        for (nth, (start, end)) in oracle.parts().into_iter().enumerate() {
            let holds_new = oracle.new_message().is_some_and(|new| start <= new && new < end);
            if !holds_new && which >> (nth % 64) & 1 == 1 {
                plan.remove(&transcript, start as u32, end as u32);
            }
        }
        let limit = some_limit(seed, &transcript);
        let nothing = transcript.total_tokens().max(Plan::new().tokens(&transcript));
        let helps = plan.tokens(&transcript) <= nothing.min(limit);
        let judged = Guard { limit, seed_may_go: false, must_shrink: false }.apply(&transcript, &plan);
        prop_assert_eq!(judged.is_ok(), helps, "{:?}", judged.err());
    }

    #[test]
    fn what_is_summed_up_tears_no_tool_pair_wherever_a_marker_stands(
        seed in any::<u64>(), turns in 1usize..8, place in any::<prop::sample::Index>(),
    ) {
        let mut messages = testing::random_history(seed, turns);
        prop_assume!(!messages.is_empty());
        let at = place.index(messages.len()) + 1;
        messages.insert(at, Message::text(Role::User, Origin::Marker, "（此處省略 1 輪）"));
        prop_assume!(structure::pair_tools(&messages).orphans.is_empty());
        let transcript = Transcript::of_messages(messages.clone());
        for start in 1..transcript.last_turn() {
            let mut plan = Plan::new();
            plan.compact(start as u32, transcript.last_turn() as u32);
            let guard = Guard { limit: u64::MAX, seed_may_go: false, must_shrink: false };
            if guard.apply(&transcript, &plan).is_ok() {
                let kept = [&messages[..start], &messages[transcript.last_turn()..]].concat();
                prop_assert!(structure::pair_tools(&kept).orphans.is_empty(), "from {start}");
            }
        }
    }

    #[test]
    fn a_second_and_a_third_prune_count_on(seed in any::<u64>(), turns in 1usize..12) {
        let mut transcript = testing::random_transcript(seed, turns);
        let mut total = transcript.dropped_turns();
        for round in 0..3 {
            let plan = testing::sensible_plan(seed.wrapping_add(round), &transcript);
            let guard = Guard { limit: u64::MAX, seed_may_go: true, must_shrink: false };
            let Ok(applied) = guard.apply(&transcript, &plan) else { continue };
            total = total.saturating_add(applied.turns_dropped);
            prop_assert_eq!(applied.turns_dropped_total, total);
            let messages = applied.messages(&transcript);
            let shown = messages.iter().find(|message| message.origin == Origin::Marker);
            let told = shown.and_then(|message| marker::parse(&message.plain_text()));
            prop_assert!(told.is_none_or(|told| told == total) || words(&plan).is_some());
            transcript = sent_as_history(&transcript, &applied).with_dropped_turns(total);
        }
    }
}

/// The generators would be useless if nearly all of their plans were rejected, or accepted.
#[test]
fn the_plans_are_worth_judging() {
    let (mut accepted, mut refused, mut emergencies, mut recalls, mut rules) = (0, 0, 0, 0, [0; 10]);
    for seed in 0..4_000 {
        let transcript = testing::random_transcript(seed, 8);
        let plan = match seed % 2 {
            0 => testing::sensible_plan(seed, &transcript),
            _ => testing::random_plan(seed, &transcript),
        };
        let limits = Limits { limit: some_limit(seed, &transcript), seed_may_go: seed % 3 == 0, must_shrink: false };
        match guard(&limits).apply(&transcript, &plan) {
            Ok(applied) => {
                accepted += 1;
                recalls += usize::from(applied.recall.is_some());
                let oracle = Oracle::new(&transcript);
                let torn = |&(start, end): &(usize, usize)| {
                    let gone = |at: usize| applied.removed.contains(&(at as u32)) && !oracle.is_marker(at);
                    (start..end).any(gone) && !(start..end).all(|at| gone(at) || oracle.is_marker(at))
                };
                emergencies += usize::from(oracle.parts().iter().any(torn));
            }
            Err(breach) => {
                refused += 1;
                rules[breach.rule.number() as usize] += 1;
            }
        }
    }
    assert!(accepted > 400 && refused > 400, "{accepted} accepted, {refused} refused");
    assert!(recalls > 100, "{recalls} recalls");
    assert!(emergencies > 20, "{emergencies} emergencies");
    assert!([1, 2, 3, 5, 8, 9].iter().all(|&rule| rules[rule] > 5), "{rules:?}");
}
