//! The size of the smallest effect that can be detected. Not by a formula that assumes normally distributed
//! differences: an effect is added to the random differences between conversations, and the permutation test is
//! applied.

use rand_chacha::{
    ChaCha8Rng,
    rand_core::{RngCore, SeedableRng},
};

use super::{Effect, Measured, Ratio, Settings};

/// The stream of random numbers used here.
const STREAM: u64 = 3;

/// The maximum number of permutations for estimating the critical value.
const MOST_FLIPS: usize = 1_999;

/// Iterations until an effect and the value that it must exceed agree.
const STEPS: usize = 60;

/// The effect that is found with the given power, where `family` metrics are tested together. Infinite where there are
/// too few conversations to find any.
pub(super) fn detectable(measured: &Measured, family: usize, settings: &Settings) -> f64 {
    let (chance, critical) = (by_chance(measured), settings.level / family as f64);
    // Of all swaps of so many pairs, none and all give the largest effect.
    if measured.differs() && 0.5_f64.powf(chance.len() as f64 - 1.0) > critical {
        return f64::INFINITY;
    }
    if chance.iter().all(|part| *part == 0.0) {
        return 0.0;
    }
    let mut random = ChaCha8Rng::seed_from_u64(settings.seed);
    random.set_stream(STREAM);
    // For each permutation: the effect of chance, and what remains of an effect of 1 that all conversations share.
    let flips: Vec<(f64, f64)> = (0..settings.flips.min(MOST_FLIPS))
        .map(|_| {
            let (mut by_chance, mut of_effect) = (0.0, 0.0);
            for some in chance.chunks(64) {
                let bits = random.next_u64();
                for (at, part) in some.iter().enumerate() {
                    let sign = if bits >> at & 1 == 1 { 1.0 } else { -1.0 };
                    by_chance += sign * part;
                    of_effect += sign;
                }
            }
            (by_chance, of_effect / chance.len() as f64)
        })
        .collect();
    let noise = quantile(flips.iter().map(|(by_chance, _)| *by_chance), settings.power);
    let mut effect = 0.0;
    for _ in 0..STEPS {
        let under_permutation = flips.iter().map(|(by_chance, of_effect)| (by_chance + effect * of_effect).abs());
        let next = quantile(under_permutation, 1.0 - critical) + noise;
        if (next - effect).abs() <= 1e-6 * next {
            return next;
        }
        effect = next;
    }
    f64::INFINITY
}

/// What each conversation that says something contributes to the effect beyond what all have in common.
fn by_chance(measured: &Measured) -> Vec<f64> {
    let (a, b) = measured.totals();
    let parts = measured.observed().map(|(one, other)| match measured.effect {
        Effect::Relative => (other.sum - b.sum / a.sum * one.sum) / a.sum,
        Effect::Difference | Effect::Share => beyond(*other, b) - beyond(*one, a),
    });
    parts.map(|part| if part.is_finite() { part } else { 0.0 }).collect()
}

fn beyond(one: Ratio, all: Ratio) -> f64 {
    (one.sum - all.value() * one.of) / all.of
}

/// The value that this share of all values does not exceed.
fn quantile(values: impl Iterator<Item = f64>, share: f64) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let rank = (values.len() as f64 * share).ceil() as usize;
    values.get(rank.saturating_sub(1).min(values.len().saturating_sub(1))).copied().unwrap_or(f64::INFINITY)
}
