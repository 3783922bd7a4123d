//! Which differences between two policies are shown, and which may be chance.
//!
//! The same conversations went through both, so they are compared pair by pair. A difference is only claimed
//! where two looks agree: a permutation of who is who in every pair, which bounds false claims
//! whatever the distribution, and an interval from resampled conversations that leaves out zero. Several
//! differences are looked at together, so both are corrected: the p-values by Holm's method, the
//! intervals by their level, so that all of them hold together. Everything random comes from a seed.

#![deny(missing_docs)]

mod bootstrap;
mod holm;
mod power;
mod sign_flip;

pub use bootstrap::interval;

/// How much is claimed on how much.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The same one gives the same findings on every machine.
    pub seed: u64,
    /// Resamples of the conversations.
    pub resamples: usize,
    /// Permutations, where there are too many to try all.
    pub flips: usize,
    /// The share of comparisons without any difference in which one may be claimed.
    pub level: f64,
    /// How often a difference that is called detectable is found.
    pub power: f64,
}

impl Settings {
    /// What a report is made with.
    pub fn seeded(seed: u64) -> Settings {
        Settings { seed, resamples: 10_000, flips: 9_999, level: 0.05, power: 0.8 }
    }
}

/// What was measured of one conversation: so much of so many. What has no whole is of 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ratio {
    /// So much.
    pub sum: f64,
    /// Of so many.
    pub of: f64,
}

impl Ratio {
    /// So much of so many.
    pub fn new(sum: f64, of: f64) -> Ratio {
        Ratio { sum, of }
    }

    fn add(&mut self, other: Ratio) {
        self.sum += other.sum;
        self.of += other.of;
    }

    /// The value; none of nothing.
    pub fn value(self) -> f64 {
        self.sum / self.of
    }
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The second as a share of the first, less 1.
    Relative,
    /// The second less the first.
    Difference,
}

impl Effect {
    fn between(self, a: Ratio, b: Ratio) -> f64 {
        match self {
            Effect::Relative => b.value() / a.value() - 1.0,
            Effect::Difference => b.value() - a.value(),
        }
    }

    /// The same, as far from nothing whoever is first.
    fn distance(self, a: Ratio, b: Ratio) -> f64 {
        match self {
            Effect::Relative => (b.value() / a.value()).ln().abs(),
            Effect::Difference => (b.value() - a.value()).abs(),
        }
    }
}

/// One metric of two policies, conversation by conversation.
#[derive(Clone, Debug)]
pub struct Measured {
    /// How the second is compared with the first.
    pub effect: Effect,
    /// The first policy's and the second's, a conversation each; in the same order in every metric.
    pub pairs: Vec<(Ratio, Ratio)>,
}

impl Measured {
    fn totals(&self) -> (Ratio, Ratio) {
        self.pairs.iter().fold(Default::default(), |(mut a, mut b): (Ratio, Ratio), pair| {
            a.add(pair.0);
            b.add(pair.1);
            (a, b)
        })
    }

    /// Whether the policies differ anywhere at all.
    fn differs(&self) -> bool {
        self.pairs.iter().any(|(a, b)| a != b)
    }
}

/// What is known of one metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finding {
    /// The value of each.
    pub values: (f64, f64),
    /// How the second differs from the first, as [`Effect`] has it.
    pub effect: f64,
    /// Where the effect lies, all intervals together in 95 % of comparisons.
    pub interval: (f64, f64),
    /// How often chance alone gives as much.
    pub p: f64,
    /// The same, corrected for how many metrics are looked at.
    pub adjusted_p: f64,
    /// Whether a difference is claimed.
    pub is_shown: bool,
    /// The effect that would be found four times out of five.
    pub detectable: f64,
}

/// Looks at metrics of the same conversations together.
pub fn find(measured: &[Measured], settings: &Settings) -> Vec<Finding> {
    let family = measured.iter().filter(|one| one.differs()).count().max(1);
    let p_values = sign_flip::p_values(measured, settings);
    let differing: Vec<f64> =
        measured.iter().zip(&p_values).filter(|(one, _)| one.differs()).map(|(_, &p)| p).collect();
    let mut adjusted = holm::adjusted(&differing).into_iter();
    let resampled = bootstrap::effects(measured, settings);
    measured
        .iter()
        .zip(p_values)
        .zip(resampled)
        .map(|((one, p), mut resampled)| {
            let (a, b) = one.totals();
            let adjusted_p = if one.differs() { adjusted.next().unwrap_or(1.0) } else { 1.0 };
            let interval = resampled.interval(one.pairs.len(), family, settings);
            let values = match one.effect {
                Effect::Relative => (a.sum, b.sum),
                Effect::Difference => (a.value(), b.value()),
            };
            let leaves_out_zero = interval.0 > 0.0 || interval.1 < 0.0;
            Finding {
                values,
                effect: one.effect.between(a, b),
                interval,
                p,
                adjusted_p,
                is_shown: adjusted_p <= settings.level && leaves_out_zero,
                detectable: power::detectable(one, family, settings),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pairs in which the second is larger by `more`, give or take some.
    fn pairs(count: usize, more: f64) -> Vec<(Ratio, Ratio)> {
        let of = |sum| Ratio::new(sum, 1.0);
        (0..count).map(|n| (of(1_000.0 + (n * 37 % 100) as f64), of(1_000.0 + more + (n * 61 % 100) as f64))).collect()
    }

    fn settings() -> Settings {
        Settings { resamples: 2_000, flips: 1_999, ..Settings::seeded(7) }
    }

    #[test]
    fn a_plain_difference_is_shown_with_its_size() {
        let measured = Measured { effect: Effect::Relative, pairs: pairs(30, -300.0) };
        let found = find(&[measured], &settings())[0];
        assert!(found.is_shown && found.p < 0.001, "{found:?}");
        assert!((-0.30..-0.27).contains(&found.effect), "{found:?}");
        assert!(found.interval.0 < found.effect && found.effect < found.interval.1);
        assert!((0.005..0.05).contains(&found.detectable), "{found:?}");
    }

    #[test]
    fn nothing_is_shown_where_there_is_nothing_or_too_little() {
        let same = Measured { effect: Effect::Difference, pairs: pairs(30, 0.0) };
        assert!(!find(&[same], &settings())[0].is_shown);
        let few = Measured { effect: Effect::Relative, pairs: pairs(5, -300.0) };
        let found = find(&[few], &settings())[0];
        assert!(!found.is_shown && found.detectable.is_infinite(), "five pairs cannot show anything: {found:?}");
        let equal =
            Measured { effect: Effect::Relative, pairs: vec![(Ratio::new(1.0, 1.0), Ratio::new(1.0, 1.0)); 30] };
        let found = find(&[equal], &settings())[0];
        assert_eq!((found.effect, found.p, found.is_shown), (0.0, 1.0, false));
        let none = Measured { effect: Effect::Difference, pairs: vec![] };
        assert!(!find(&[none], &settings())[0].is_shown);
    }

    #[test]
    fn the_same_seed_says_the_same() {
        let measured = [
            Measured { effect: Effect::Relative, pairs: pairs(30, 20.0) },
            Measured { effect: Effect::Difference, pairs: pairs(30, 3.0) },
        ];
        assert_eq!(find(&measured, &settings()), find(&measured, &settings()));
        assert_ne!(find(&measured, &settings()), find(&measured, &Settings { seed: 8, ..settings() }));
    }
}
