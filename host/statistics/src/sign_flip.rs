//! The permutation test: if the two policies do not differ, then which is which is random in each pair, and swapping
//! them gives a comparison that was just as likely.

use rand_chacha::{
    ChaCha8Rng,
    rand_core::{RngCore, SeedableRng},
};

use super::{Measured, Ratio, Settings};

/// With at most this many pairs, all permutations are tried.
const EXACT_PAIRS: usize = 12;

/// The stream of random numbers used here.
const STREAM: u64 = 1;

/// A metric under permutation.
struct Permuted<'a> {
    measured: &'a Measured,
    /// The sum of both policies.
    both: Ratio,
    observed: f64,
    as_large: usize,
}

/// The p-value of each metric, all from the same permutations.
pub(super) fn p_values(measured: &[Measured], settings: &Settings) -> Vec<f64> {
    let mut permuted: Vec<Permuted<'_>> = measured
        .iter()
        .map(|measured| {
            let (a, b) = measured.totals();
            let both = Ratio::new(a.sum + b.sum, a.of + b.of);
            // The sum of the same numbers in another order may differ in the last digit.
            let observed = measured.effect.distance(a, b) * (1.0 - 1e-9);
            Permuted { measured, both, observed, as_large: 0 }
        })
        .collect();
    let pairs = measured.first().map_or(0, |measured| measured.pairs.len());
    let mut swaps = vec![false; pairs];
    let (tried, chance) = if pairs <= EXACT_PAIRS {
        for pattern in 0..1u32 << pairs {
            swaps.iter_mut().enumerate().for_each(|(at, swap)| *swap = pattern >> at & 1 == 1);
            permuted.iter_mut().for_each(|one| one.look(&swaps));
        }
        (1 << pairs, 0)
    } else {
        let mut random = ChaCha8Rng::seed_from_u64(settings.seed);
        random.set_stream(STREAM);
        for _ in 0..settings.flips {
            for some in swaps.chunks_mut(64) {
                let bits = random.next_u64();
                some.iter_mut().enumerate().for_each(|(at, swap)| *swap = bits >> at & 1 == 1);
            }
            permuted.iter_mut().for_each(|one| one.look(&swaps));
        }
        // The observed comparison is itself one of the equally likely ones.
        (settings.flips, 1)
    };
    permuted.into_iter().map(|one| (one.as_large + chance) as f64 / (tried + chance) as f64).collect()
}

impl Permuted<'_> {
    fn look(&mut self, swaps: &[bool]) {
        let mut more = Ratio::default();
        for ((a, b), &swap) in self.measured.pairs.iter().zip(swaps) {
            let (sum, of) = (b.sum - a.sum, b.of - a.of);
            more.add(if swap { Ratio::new(-sum, -of) } else { Ratio::new(sum, of) });
        }
        let a = Ratio::new((self.both.sum - more.sum) / 2.0, (self.both.of - more.of) / 2.0);
        let b = Ratio::new((self.both.sum + more.sum) / 2.0, (self.both.of + more.of) / 2.0);
        let distance = self.measured.effect.distance(a, b);
        // What cannot be compared is no evidence of a difference.
        self.as_large += usize::from(distance >= self.observed || distance.is_nan() || self.observed.is_nan());
    }
}
