//! The metrics of a comparison. Only sums are kept per conversation, and histograms over all calls, so that memory does
//! not grow with what is replayed.

use std::{collections::BTreeMap, ops::AddAssign, time::Duration};

use pmk_policy::Rung;
use serde::Serialize;

use super::questions::{Score, Scores};

/// The result of one conversation with one policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Messages of people.
    pub turns: u64,
    /// Requests to the model, including those for summaries.
    pub calls: u64,
    /// Tokens of all requests.
    pub tokens_sent: u64,
    /// Tokens that repeated the beginning of the request before.
    pub tokens_reused: u64,
    /// Tokens of refused requests, which cost nothing.
    pub tokens_refused: u64,
    /// Tokens sent to have something summarized.
    pub tokens_summarised: u64,
    /// Tokens of the recorded answers, and of summaries.
    pub tokens_answered: u64,
    /// Requests that would have exceeded the limit without the policy.
    pub overflows_predicted: u64,
    /// Requests that the model refused.
    pub overflows_met: u64,
    /// Rungs of recovery, in the order of [`Rung::ALL`].
    pub rungs: [u64; 4],
    /// Requests that were planned again when no rung was left.
    pub replans: u64,
    /// Messages without an answer: refused to the end, or too long alone.
    pub unanswered: u64,
    pub turns_dropped: u64,
    pub results_dropped: u64,
    /// Messages that were shortened in the window, and contents that were capped when they were stored.
    pub messages_replaced: u64,
    pub contents_capped: u64,
    /// Recalled messages, counted each time.
    pub messages_recalled: u64,
    /// Turns that were replaced by a summary.
    pub turns_summarised: u64,
    /// Decisions of all kinds that were asked for.
    pub decisions: u64,
    pub fuel: u64,
    /// Decisions in which a policy failed, and answers that the guard refused.
    pub failures: u64,
    pub rejections: u64,
    /// Answers whose text the guard corrected.
    pub corrections: u64,
}

impl Tally {
    /// Returns the counter of a rung.
    pub fn rung(&mut self, rung: Rung) -> &mut u64 {
        &mut self.rungs[usize::from(rung.code()) - 1]
    }

    /// Returns the tokens of the requests that the model accepted.
    pub fn tokens_accepted(&self) -> u64 {
        self.tokens_sent.saturating_sub(self.tokens_refused)
    }
}

impl AddAssign<&Tally> for Tally {
    fn add_assign(&mut self, other: &Tally) {
        self.turns += other.turns;
        self.calls += other.calls;
        self.tokens_sent += other.tokens_sent;
        self.tokens_reused += other.tokens_reused;
        self.tokens_refused += other.tokens_refused;
        self.tokens_summarised += other.tokens_summarised;
        self.tokens_answered += other.tokens_answered;
        self.overflows_predicted += other.overflows_predicted;
        self.overflows_met += other.overflows_met;
        self.rungs.iter_mut().zip(other.rungs).for_each(|(rung, other)| *rung += other);
        self.replans += other.replans;
        self.unanswered += other.unanswered;
        self.turns_dropped += other.turns_dropped;
        self.results_dropped += other.results_dropped;
        self.messages_replaced += other.messages_replaced;
        self.contents_capped += other.contents_capped;
        self.messages_recalled += other.messages_recalled;
        self.turns_summarised += other.turns_summarised;
        self.decisions += other.decisions;
        self.fuel += other.fuel;
        self.failures += other.failures;
        self.rejections += other.rejections;
        self.corrections += other.corrections;
    }
}

/// A histogram of sizes, accurate to one percent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    counts: BTreeMap<u32, u64>,
    count: u64,
    max: u64,
}

/// The number of buckets per doubling, as a power of two.
const PRECISION: u32 = 7;

impl Histogram {
    /// Adds a value.
    pub fn add(&mut self, value: u64) {
        *self.counts.entry(bucket(value)).or_default() += 1;
        self.count += 1;
        self.max = self.max.max(value);
    }

    /// Adds all values of another histogram.
    pub fn merge(&mut self, other: &Histogram) {
        for (&bucket, count) in &other.counts {
            *self.counts.entry(bucket).or_default() += count;
        }
        self.count += other.count;
        self.max = self.max.max(other.max);
    }

    /// Returns the value that this share of all values does not exceed; 0 if there are none.
    pub fn quantile(&self, share: f64) -> u64 {
        let rank = ((self.count as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        for (&bucket, count) in &self.counts {
            seen += count;
            if seen >= rank {
                return largest(bucket).min(self.max);
            }
        }
        self.max
    }

    /// Returns the largest value.
    pub fn max(&self) -> u64 {
        self.max
    }
}

fn bucket(value: u64) -> u32 {
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(PRECISION + 1);
    // Small values have their own bucket; of larger ones, the leading bits count.
    (shift << PRECISION) + (value >> shift) as u32
}

/// Returns the largest value of a bucket.
fn largest(bucket: u32) -> u64 {
    let shift = (bucket >> PRECISION).saturating_sub(1);
    let leading = u64::from(bucket - (shift << PRECISION));
    (leading << shift) + ((1 << shift) - 1)
}

/// The most turns in the curve.
const MAX_CURVE: usize = 2_000;

/// The results of all conversations with one policy, besides the sums.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// The size of each request.
    pub sizes: Histogram,
    /// The time of each decision, in microseconds.
    pub times: Histogram,
    pub time: Duration,
    /// By turn: the sum of the sizes of first requests, and the number of conversations.
    pub curve: Vec<(u64, u64)>,
    pub scores: Scores,
}

impl Totals {
    /// Adds the first request of a turn.
    pub fn add_turn(&mut self, turn: usize, tokens: u64) {
        let turn = turn.min(MAX_CURVE - 1);
        if self.curve.len() <= turn {
            self.curve.resize(turn + 1, (0, 0));
        }
        self.curve[turn].0 += tokens;
        self.curve[turn].1 += 1;
    }

    /// Adds the results of another thread.
    pub fn merge(&mut self, other: Totals) {
        self.sizes.merge(&other.sizes);
        self.times.merge(&other.times);
        self.time += other.time;
        if self.curve.len() < other.curve.len() {
            self.curve.resize(other.curve.len(), (0, 0));
        }
        for (point, (sum, count)) in self.curve.iter_mut().zip(other.curve) {
            point.0 += sum;
            point.1 += count;
        }
        for (category, score) in other.scores {
            *self.scores.entry(category).or_default() += score;
        }
    }
}

/// The result that is kept of one conversation with one policy.
#[derive(Clone, Copy, Debug, Default)]
pub struct ArmOutcome {
    pub tally: Tally,
    pub score: Score,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_quantile_is_off_by_less_than_a_percent(mut values in prop::collection::vec(0u64..3_000_000, 1..200)) {
            let mut histogram = Histogram::default();
            values.iter().for_each(|&value| histogram.add(value));
            values.sort_unstable();
            for share in [0.01, 0.5, 0.95, 1.0] {
                let exact = values[((values.len() as f64 * share).ceil() as usize).max(1) - 1];
                let found = histogram.quantile(share);
                prop_assert!(found >= exact && found - exact <= exact / 100, "{found} for {exact}");
            }
        }

        #[test]
        fn in_whatever_order_they_are_merged(a in prop::collection::vec(any::<u64>(), 0..50), cut in 0usize..50) {
            let mut whole = Histogram::default();
            a.iter().for_each(|&value| whole.add(value));
            let (mut one, mut other) = (Histogram::default(), Histogram::default());
            let cut = cut.min(a.len());
            a[cut..].iter().for_each(|&value| one.add(value));
            a[..cut].iter().for_each(|&value| other.add(value));
            one.merge(&other);
            prop_assert_eq!(one, whole);
        }
    }

    #[test]
    fn nothing_has_no_quantile() {
        assert_eq!(Histogram::default().quantile(0.5), 0);
    }
}
