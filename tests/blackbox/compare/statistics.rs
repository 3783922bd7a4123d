//! Nothing is claimed that is not there, and what is there is found as often as the report says. On what two real
//! policies did to the conversations of the corpus.

use std::thread;

use pmk_statistics::{Effect, Measured, Ratio, Settings, find};
use rand_chacha::{
    ChaCha8Rng,
    rand_core::{RngCore, SeedableRng},
};
use serde_json::Value;

use super::compared;

/// Comparisons without a difference.
const RUNS: u64 = 1_000;

/// How often one of them may claim one: 5 %, and what 1,000 runs may be off by.
const MOST_CLAIMS: usize = 65;

/// Fewer draws than a report's: what is claimed does not depend on it.
fn settings(seed: u64) -> Settings {
    Settings { resamples: 400, flips: 499, ..Settings::seeded(seed) }
}

/// How a metric is read off what one policy did to a conversation.
type Reading<'a> = &'a dyn Fn(&Value) -> Ratio;

/// What `standard` and `strict` did, metric by metric.
fn measured() -> Vec<Measured> {
    let number = |value: &Value| value.as_f64().expect("a number");
    let metrics: [(Effect, Reading<'_>); 5] = [
        (Effect::Relative, &|one| Ratio::new(number(&one["tokens_sent"]), 1.0)),
        (Effect::Relative, &|one| Ratio::new(number(&one["dollars"]), 1.0)),
        (Effect::Difference, &|one| {
            let visible = &one["questions"]["visible"];
            Ratio::new(number(&visible["yes"]), number(&visible["asked"]))
        }),
        (Effect::Difference, &|one| Ratio::new(number(&one["tokens_reused"]), number(&one["tokens_sent"]))),
        (Effect::Difference, &|one| Ratio::new(number(&one["turns_dropped"]), 1.0)),
    ];
    let conversations = compared().document["conversations"].as_array().expect("conversations");
    metrics
        .iter()
        .map(|(effect, of)| {
            let pair = |one: &Value| (of(&one["policies"]["standard"]), of(&one["policies"]["strict"]));
            Measured { effect: *effect, pairs: conversations.iter().map(pair).collect() }
        })
        .collect()
}

/// The same with the policies swapped by chance in every conversation, in all metrics alike.
fn swapped(measured: &[Measured], seed: u64) -> Vec<Measured> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let swaps: Vec<bool> = measured[0].pairs.iter().map(|_| random.next_u32() & 1 == 1).collect();
    let swap = |(&(a, b), &swap): (&(Ratio, Ratio), &bool)| if swap { (b, a) } else { (a, b) };
    let swap_all =
        |one: &Measured| Measured { effect: one.effect, pairs: one.pairs.iter().zip(&swaps).map(swap).collect() };
    measured.iter().map(swap_all).collect()
}

/// In how many runs something holds.
fn count(runs: u64, holds: impl Fn(u64) -> bool + Sync) -> usize {
    let jobs = thread::available_parallelism().map_or(1, |jobs| jobs.get() as u64);
    thread::scope(|scope| {
        let holds = &holds;
        let parts: Vec<_> = (0..jobs)
            .map(|job| scope.spawn(move || (job..runs).step_by(jobs as usize).filter(|&run| holds(run)).count()))
            .collect();
        parts.into_iter().map(|part| part.join().expect("no panic")).sum()
    })
}

#[test]
fn chance_alone_is_claimed_in_five_runs_of_a_hundred_at_most() {
    let measured = measured();
    assert!(find(&measured, &settings(0)).iter().any(|found| found.is_shown), "they do differ");
    let claims = count(RUNS, |run| find(&swapped(&measured, run), &settings(run)).iter().any(|found| found.is_shown));
    assert!(claims <= MOST_CLAIMS, "a difference was claimed in {claims} of {RUNS} runs");
}

#[test]
fn a_planted_effect_of_the_size_that_is_stated_is_found() {
    const PLANTED_RUNS: u64 = 400;
    let measured = measured();
    let found = count(PLANTED_RUNS, |run| {
        let mut planted = swapped(&measured, run);
        let detectable = find(&planted, &settings(run))[0].detectable;
        let tokens = &mut planted[0].pairs;
        let mean = tokens.iter().map(|(a, _)| a.sum).sum::<f64>() / tokens.len() as f64;
        tokens.iter_mut().for_each(|(_, b)| b.sum += mean * detectable);
        find(&planted, &settings(run))[0].is_shown
    });
    let share = found as f64 / PLANTED_RUNS as f64;
    // The stated power is 80 %; 400 runs may be off by four points, twice over.
    assert!(share >= 0.72, "found in {share} of the runs");
}
