//! Worlds that must stay whole: those that once did not, and some that nobody has seen.

use std::{
    collections::BTreeSet,
    io::Write,
    time::{SystemTime, UNIX_EPOCH},
};

use pmk_simulation::{Policies, run};

/// So many questions are answered in worlds that nobody has seen; `PMK_SIMULATION_TURNS` names another number.
const FRESH_TURNS: usize = 400;

/// Asserts that nothing is as it must never be; how many questions were answered.
#[track_caller]
fn whole(policies: &Policies, seed: u64, keep: Option<&BTreeSet<usize>>) -> usize {
    let outcome = run(policies, seed, keep, false);
    let kept = keep.map(|keep| {
        let keep: Vec<String> = keep.iter().map(ToString::to_string).collect();
        format!(" --keep {}", keep.join(","))
    });
    assert_eq!(
        outcome.breaches,
        Vec::<String>::new(),
        "replay: cargo run --release -p pmk-simulation -- replay {seed}{}",
        kept.unwrap_or_default()
    );
    outcome.answered
}

#[test]
fn the_same_seed_is_the_same_world_twice() {
    let policies = Policies::load();
    for seed in 1..=12 {
        let [first, second] = [(); 2].map(|()| run(&policies, seed, None, false));
        assert!(!first.ledger.is_empty());
        assert_eq!(first.ledger, second.ledger, "seed {seed}");
    }
}

#[test]
fn worlds_that_once_went_wrong() {
    let policies = Policies::load();
    for line in include_str!("../found.txt").lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
        let case = line.split('#').next().unwrap_or_default();
        let mut words = case.split_whitespace();
        let seed = words.next().and_then(|seed| seed.parse().ok()).expect("a line begins with a seed");
        let keep: Option<BTreeSet<usize>> =
            words.next().map(|keep| keep.split(',').map(|number| number.parse().expect("a number")).collect());
        whole(&policies, seed, keep.as_ref());
    }
}

#[test]
fn worlds_that_nobody_has_seen() {
    let turns = std::env::var("PMK_SIMULATION_TURNS").map_or(FRESH_TURNS, |turns| turns.parse().expect("a number"));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_nanos();
    // Small enough to be typed.
    let first = u64::try_from(now % 1_000_000_000).expect("it is small");
    // Past what the tests' harness keeps of a test that passes: CI's log says which these were.
    writeln!(std::io::stderr(), "worlds that nobody has seen: from seed {first}").expect("somewhere to say it");
    let policies = Policies::load();
    let (mut answered, mut seed) = (0, first);
    while answered < turns {
        answered += whole(&policies, seed, None);
        seed += 1;
    }
}
