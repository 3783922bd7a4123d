//! Determines which differences between two policies are significant, and which may be due to chance.
//!
//! The same conversations went through both policies, so they are compared pair by pair. A difference is claimed only
//! where two tests agree: a permutation test that swaps the policies within each pair, which bounds false claims
//! whatever the distribution, and a confidence interval from resampled conversations that excludes zero. Several
//! differences are tested together, so both are corrected: the p-values by Holm's method, the intervals by their level,
//! so that all of them hold together. All randomness comes from a seed.
//!
//! [`evidence`] is for what is looked at while it goes on.

#![deny(missing_docs)]

mod bet;
mod bootstrap;
mod holm;
mod power;
mod sign_flip;

pub use bet::evidence;
pub use bootstrap::{Bounds, interval};

/// Parameters of the tests.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The random seed: the same one gives the same findings on every machine.
    pub seed: u64,
    /// The number of resamples of the conversations.
    pub resamples: usize,
    /// The number of random permutations, where there are too many to try all.
    pub flips: usize,
    /// The significance level: the share of comparisons without any difference in which one may be claimed.
    pub level: f64,
    /// The probability with which a difference that is called detectable is found.
    pub power: f64,
}

impl Settings {
    /// The settings of a report.
    pub fn seeded(seed: u64) -> Settings {
        Settings { seed, resamples: 10_000, flips: 9_999, level: 0.05, power: 0.8 }
    }
}

/// A measurement of one conversation, as a ratio. A plain amount has the denominator 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ratio {
    /// The numerator.
    pub sum: f64,
    /// The denominator.
    pub of: f64,
}

impl Ratio {
    /// Creates a ratio.
    pub fn new(sum: f64, of: f64) -> Ratio {
        Ratio { sum, of }
    }

    fn add(&mut self, other: Ratio) {
        self.sum += other.sum;
        self.of += other.of;
    }

    /// The value; NaN if the denominator is 0.
    pub fn value(self) -> f64 {
        self.sum / self.of
    }
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The second relative to the first, minus 1.
    Relative,
    /// The second minus the first.
    Difference,
    /// The second minus the first, both of which are shares.
    Share,
}

impl Effect {
    fn between(self, a: Ratio, b: Ratio) -> f64 {
        match self {
            Effect::Relative => b.value() / a.value() - 1.0,
            Effect::Difference | Effect::Share => b.value() - a.value(),
        }
    }

    /// Between which values it is, if that is known.
    fn bounds(self) -> Option<Bounds> {
        (self == Effect::Share).then_some((-1.0, 1.0))
    }

    /// The size of the effect, which is the same when the two are swapped.
    fn distance(self, a: Ratio, b: Ratio) -> f64 {
        match self {
            Effect::Relative => (b.value() / a.value()).ln().abs(),
            Effect::Difference | Effect::Share => (b.value() - a.value()).abs(),
        }
    }
}

/// One metric of two policies, for each conversation.
#[derive(Clone, Debug)]
pub struct Measured {
    /// How the second policy is compared with the first.
    pub effect: Effect,
    /// The first policy's and the second's measurement of each conversation; in the same order in every metric.
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

    /// The conversations that say something. One without a denominator, as one that no question is about, must not count
    /// as an observation.
    fn observed(&self) -> impl Iterator<Item = &(Ratio, Ratio)> {
        self.pairs.iter().filter(|(a, b)| a.of != 0.0 || b.of != 0.0)
    }

    /// Whether the policies differ in any conversation.
    fn differs(&self) -> bool {
        self.pairs.iter().any(|(a, b)| a != b)
    }
}

/// The findings on one metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finding {
    /// The value of each policy.
    pub values: (f64, f64),
    /// How the second differs from the first, by its [`Effect`].
    pub effect: f64,
    /// The confidence interval of the effect; all intervals together hold in 95 % of comparisons.
    pub interval: (f64, f64),
    /// The p-value: how often chance alone gives an effect of at least this size.
    pub p: f64,
    /// The p-value, corrected for the number of metrics tested.
    pub adjusted_p: f64,
    /// Whether a difference is claimed.
    pub is_shown: bool,
    /// The effect that would be found four times out of five; infinite if there are too few conversations to show any.
    pub detectable: f64,
}

/// Tests several metrics of the same conversations together.
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
            let interval = resampled.interval(one.observed().count(), one.effect.bounds(), family, settings);
            let values = match one.effect {
                Effect::Relative => (a.sum, b.sum),
                Effect::Difference | Effect::Share => (a.value(), b.value()),
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

    /// Pairs in which the second is larger by `more`, with some variation.
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
        // Once, everything was found in one conversation, which does not vary.
        let one = Measured { effect: Effect::Difference, pairs: pairs(1, -300.0) };
        let found = find(&[one], &settings())[0];
        assert!(!found.is_shown && found.detectable.is_infinite(), "nor does one: {found:?}");
        let equal =
            Measured { effect: Effect::Relative, pairs: vec![(Ratio::new(1.0, 1.0), Ratio::new(1.0, 1.0)); 30] };
        let found = find(&[equal], &settings())[0];
        assert_eq!((found.effect, found.p, found.is_shown, found.detectable), (0.0, 1.0, false, 0.0));
        let none = Measured { effect: Effect::Difference, pairs: vec![] };
        assert!(!find(&[none], &settings())[0].is_shown);
    }

    /// Once, the many that no question is about made an interval of a single conversation exact, and a difference that
    /// four cannot show was said to be found from a certain size on.
    #[test]
    fn conversations_without_questions_counted_as_if_they_had_some() {
        let none = Ratio::new(0.0, 0.0);
        let find_in = |asked: &[(Ratio, Ratio)]| {
            let measured = Measured { effect: Effect::Difference, pairs: [asked, &[(none, none); 40]].concat() };
            find(&[measured], &settings())[0]
        };
        let all = (f64::NEG_INFINITY, f64::INFINITY);
        let found = find_in(&[(Ratio::new(0.0, 1.0), Ratio::new(1.0, 1.0))]);
        assert_eq!((found.effect, found.interval, found.is_shown), (1.0, all, false));
        let visible = [(3.0, 1.0), (1.0, 4.0), (4.0, 2.0), (2.0, 5.0)];
        let found = find_in(&visible.map(|(a, b)| (Ratio::new(a, 5.0), Ratio::new(b, 5.0))));
        assert!(!found.is_shown && found.detectable.is_infinite(), "four pairs cannot show anything: {found:?}");
        let of_one = [&[Ratio::new(1.0, 2.0)][..], &[none; 40]].concat();
        assert_eq!(interval(&of_one, None, &settings()), all);
    }

    /// Once, eight conversations that all lost everything were said to show, without any doubt, that all others do.
    #[test]
    fn conversations_that_agree_left_no_doubt_about_all_others() {
        let (none, all) = (Ratio::new(0.0, 2.0), Ratio::new(2.0, 2.0));
        let find_in = |pair| {
            let measured = Measured { effect: Effect::Share, pairs: vec![pair; 8] };
            find(&[measured], &settings())[0]
        };
        // 0.025 ^ (1 / 8): as large a share of others would be missed eight times in a row that often.
        let (seen, found) = (0.630_6, find_in((all, none)));
        assert!(found.is_shown && (found.interval.0 + 1.0).abs() < 1e-9, "{found:?}");
        assert!((found.interval.1 - (1.0 - 2.0 * seen)).abs() < 1e-3, "{found:?}");
        let alike = find_in((all, all));
        assert!(!alike.is_shown && (alike.interval.1 - (1.0 - seen)).abs() < 1e-3, "{alike:?}");
        let single = interval(&[all; 8], Some((0.0, 1.0)), &settings());
        assert!((single.0 - seen).abs() < 1e-3 && (single.1 - 1.0).abs() < 1e-9, "{single:?}");
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
