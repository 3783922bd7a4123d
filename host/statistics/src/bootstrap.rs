//! Bootstrap confidence intervals: the conversations are resampled many times, and the effect is computed for each
//! resample.

use rand_chacha::{
    ChaCha8Rng,
    rand_core::{RngCore, SeedableRng},
};
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

use super::{Measured, Ratio, Settings};

/// The stream of random numbers used here.
const STREAM: u64 = 2;

/// The least and the largest value there can be.
pub type Bounds = (f64, f64);

/// Below this width, only rounding makes resamples differ.
const SAME: f64 = 1e-9;

/// The effects of one metric in all resamples.
pub(super) struct Effects(Vec<f64>);

/// The effects of every metric, in the same resamples.
pub(super) fn effects(measured: &[Measured], settings: &Settings) -> Vec<Effects> {
    let mut effects: Vec<Effects> = measured.iter().map(|_| Effects(Vec::with_capacity(settings.resamples))).collect();
    let count = measured.first().map_or(0, |measured| measured.pairs.len());
    each_resample(count, settings, |drawn| {
        for (measured, effects) in measured.iter().zip(&mut effects) {
            let (mut a, mut b) = (Ratio::default(), Ratio::default());
            for &at in drawn {
                let pair = measured.pairs[at];
                a.add(pair.0);
                b.add(pair.1);
            }
            effects.0.push(measured.effect.between(a, b));
        }
    });
    effects
}

/// The 95 % confidence interval of the value of a single policy. A value that is a share has these bounds.
pub fn interval(ratios: &[Ratio], bounds: Option<Bounds>, settings: &Settings) -> (f64, f64) {
    let mut values = Effects(Vec::with_capacity(settings.resamples));
    each_resample(ratios.len(), settings, |drawn| {
        let mut sum = Ratio::default();
        drawn.iter().for_each(|&at| sum.add(ratios[at]));
        values.0.push(sum.value());
    });
    values.interval(ratios.iter().filter(|ratio| ratio.of != 0.0).count(), bounds, 1, settings)
}

/// Draws `count` of `count` conversations, with replacement.
fn each_resample(count: usize, settings: &Settings, mut look: impl FnMut(&[usize])) {
    if count == 0 {
        return;
    }
    let mut random = ChaCha8Rng::seed_from_u64(settings.seed);
    random.set_stream(STREAM);
    let mut drawn = vec![0; count];
    for _ in 0..settings.resamples {
        // 2^32 equally likely numbers are divided evenly among the indexes, give or take one.
        drawn.iter_mut().for_each(|at| *at = ((u64::from(random.next_u32()) * count as u64) >> 32) as usize);
        look(&drawn);
    }
}

impl Effects {
    /// The confidence interval, corrected for `family` metrics that are tested together. Of the conversations, `count`
    /// say something.
    ///
    /// Where all of these agree, no resample shows what others may be like: the interval then leaves room for as many
    /// others, as different as the bounds allow, as would have been missed that often.
    pub fn interval(&mut self, count: usize, bounds: Option<Bounds>, family: usize, settings: &Settings) -> (f64, f64) {
        // A resample without any questions has no ratio.
        self.0.retain(|effect| effect.is_finite());
        let freedom = count.saturating_sub(1) as f64;
        if self.0.is_empty() || freedom < 1.0 {
            return (f64::NEG_INFINITY, f64::INFINITY);
        }
        self.0.sort_by(f64::total_cmp);
        let student = StudentsT::new(0.0, 1.0, freedom).expect("one degree of freedom or more");
        let beyond = student.inverse_cdf(1.0 - settings.level / (2.0 * family as f64));
        // A small sample underestimates the variance; wider tails compensate for that (Hesterberg, 2015).
        let tail = Normal::standard().cdf(-beyond * (count as f64 / freedom).sqrt());
        let cut = ((tail * self.0.len() as f64) as usize).min((self.0.len() - 1) / 2);
        let (low, high) = (self.0[cut], self.0[self.0.len() - 1 - cut]);
        match bounds {
            Some((least, most)) if high - low < SAME => {
                let unseen = 1.0 - (settings.level / (2.0 * family as f64)).powf(1.0 / count as f64);
                (low + unseen * (least - low), high + unseen * (most - high))
            }
            _ => (low, high),
        }
    }
}
