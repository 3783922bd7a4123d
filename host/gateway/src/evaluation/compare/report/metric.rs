//! The metrics by which policies are compared, and their wording.

use pmk_statistics::{Effect, Finding, Ratio};

use crate::evaluation::compare::{metrics::ArmOutcome, prices::Price, runner::Replayed};

/// What rounding leaves of an equality is smaller, and none.
const SMALLEST: f64 = 1e-9;

/// A metric by which policies are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    Tokens,
    Cost,
    Evidence,
    Answered,
    PrefixKept,
    TurnsDropped,
    Overflows,
}

impl Metric {
    /// Every metric, in the order of the report.
    pub const ALL: [Metric; 7] = [
        Metric::Tokens,
        Metric::Cost,
        Metric::Evidence,
        Metric::Answered,
        Metric::PrefixKept,
        Metric::TurnsDropped,
        Metric::Overflows,
    ];

    /// The name for machines.
    pub const fn key(self) -> &'static str {
        match self {
            Metric::Tokens => "tokens_sent",
            Metric::Cost => "dollars",
            Metric::Evidence => "evidence_visible",
            Metric::Answered => "questions_answered",
            Metric::PrefixKept => "prefix_kept",
            Metric::TurnsDropped => "turns_dropped",
            Metric::Overflows => "overflows_met",
        }
    }

    /// The name in a sentence.
    pub const fn name(self) -> &'static str {
        match self {
            Metric::Tokens => "tokens sent",
            Metric::Cost => "cost",
            Metric::Evidence => "evidence visible",
            Metric::Answered => "questions answered",
            Metric::PrefixKept => "prefix kept",
            Metric::TurnsDropped => "turns dropped",
            Metric::Overflows => "overflows",
        }
    }

    /// The unit of an effect.
    pub const fn unit(self) -> &'static str {
        match self {
            Metric::Tokens | Metric::Cost => "share of the baseline",
            Metric::Evidence | Metric::Answered | Metric::PrefixKept => "share",
            Metric::TurnsDropped | Metric::Overflows => "a conversation",
        }
    }

    pub(super) const fn effect(self) -> Effect {
        match self {
            Metric::Tokens | Metric::Cost => Effect::Relative,
            Metric::Evidence | Metric::Answered | Metric::PrefixKept => Effect::Share,
            Metric::TurnsDropped | Metric::Overflows => Effect::Difference,
        }
    }

    /// Whether there are data for this metric.
    pub(super) fn is_measured(self, price: Option<Price>, conversations: &[Replayed]) -> bool {
        let has_any = |count: fn(&ArmOutcome) -> u64| {
            conversations.iter().flat_map(|one| &one.outcomes).any(|one| count(one) > 0)
        };
        match self {
            Metric::Cost => price.is_some(),
            Metric::Evidence => has_any(|outcome| outcome.score.with_evidence),
            Metric::Answered => has_any(|outcome| outcome.score.with_answer),
            Metric::PrefixKept => has_any(|outcome| outcome.tally.tokens_accepted()),
            _ => true,
        }
    }

    /// Returns the metric of one conversation.
    pub(super) fn of(self, outcome: &ArmOutcome, price: Option<Price>) -> Ratio {
        let ArmOutcome { tally, score } = outcome;
        let (sum, of) = match self {
            Metric::Tokens => (tally.tokens_sent, 1),
            Metric::Cost => return Ratio::new(price.map_or(0.0, |price| price.of(tally)), 1.0),
            Metric::Evidence => (score.visible, score.with_evidence),
            Metric::Answered => (score.answered, score.with_answer),
            Metric::PrefixKept => (tally.tokens_reused, tally.tokens_accepted()),
            Metric::TurnsDropped => (tally.turns_dropped, 1),
            Metric::Overflows => (tally.overflows_met, 1),
        };
        Ratio::new(sum as f64, of as f64)
    }

    /// Describes a difference in words, with its interval.
    pub fn phrase(self, found: &Finding) -> String {
        let less = found.effect < 0.0;
        let size = self.size(found.effect.abs());
        let (low, high) = found.interval;
        let (near, far) = if less { (-high, -low) } else { (low, high) };
        let within = format!("[{}, {}]", self.number(near), self.number(far));
        match (self, less) {
            (Metric::Tokens, true) => format!("sends {size} fewer tokens {within}"),
            (Metric::Tokens, false) => format!("sends {size} more tokens {within}"),
            (Metric::Cost, true) => format!("costs {size} less {within}"),
            (Metric::Cost, false) => format!("costs {size} more {within}"),
            (Metric::Evidence, true) => format!("keeps {size} less evidence {within}"),
            (Metric::Evidence, false) => format!("keeps {size} more evidence {within}"),
            (Metric::Answered, true) => format!("answers {size} fewer questions {within}"),
            (Metric::Answered, false) => format!("answers {size} more questions {within}"),
            (Metric::PrefixKept, true) => format!("repeats {size} less of its prompts {within}"),
            (Metric::PrefixKept, false) => format!("repeats {size} more of its prompts {within}"),
            (Metric::TurnsDropped, true) => format!("drops {size} fewer turns a conversation {within}"),
            (Metric::TurnsDropped, false) => format!("drops {size} more turns a conversation {within}"),
            (Metric::Overflows, true) => format!("meets {size} fewer overflows a conversation {within}"),
            (Metric::Overflows, false) => format!("meets {size} more overflows a conversation {within}"),
        }
    }

    /// Formats an effect with its unit.
    pub fn size(self, effect: f64) -> String {
        let number = self.number(effect);
        match self {
            Metric::Tokens | Metric::Cost => format!("{number} %"),
            Metric::Evidence | Metric::Answered | Metric::PrefixKept => format!("{number} points"),
            Metric::TurnsDropped | Metric::Overflows => number,
        }
    }

    /// Formats an effect without its unit.
    pub fn number(self, effect: f64) -> String {
        significant(match self {
            Metric::TurnsDropped | Metric::Overflows => effect,
            _ => effect * 100.0,
        })
    }
}

/// Formats a number with two significant digits, the digits of a whole number in full.
pub fn significant(number: f64) -> String {
    if number.abs() < SMALLEST {
        return "0".to_owned();
    }
    let decimals = decimals(number);
    format!("{number:.decimals$}")
}

/// Formats two numbers as [`significant`] does, with as many decimals as it gives their difference.
pub fn significant_both(numbers: [f64; 2]) -> [String; 2] {
    let difference = numbers[1] - numbers[0];
    numbers.map(|number| {
        if number.abs() < SMALLEST || difference.abs() < SMALLEST {
            return significant(number);
        }
        let decimals = decimals(number).max(decimals(difference));
        format!("{number:.decimals$}")
    })
}

/// Returns the decimals by which a number has two significant digits.
fn decimals(number: f64) -> usize {
    // The exponent is that of the rounded number.
    let rounded = format!("{number:.1e}");
    let exponent = rounded.rsplit_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0_i32);
    usize::try_from(1 - exponent).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluation::compare::metrics::Tally;

    fn found(effect: f64, interval: (f64, f64)) -> Finding {
        Finding { values: (1.0, 1.0), effect, interval, p: 0.001, adjusted_p: 0.002, is_shown: true, detectable: 0.1 }
    }

    #[test]
    fn a_difference_is_said_plainly() {
        let said = |metric: Metric, effect, interval| metric.phrase(&found(effect, interval));
        assert_eq!(said(Metric::Tokens, -0.312, (-0.35, -0.27)), "sends 31 % fewer tokens [27, 35]");
        assert_eq!(said(Metric::Evidence, -0.04, (-0.07, -0.01)), "keeps 4.0 points less evidence [1.0, 7.0]");
        assert_eq!(said(Metric::Cost, 1.5, (1.2, 1.75)), "costs 150 % more [120, 175]");
        assert_eq!(said(Metric::Overflows, 0.25, (0.0, 0.5)), "meets 0.25 more overflows a conversation [0, 0.50]");
    }

    /// Regression: a policy whose requests were refused seemed to keep less of its prompts.
    #[test]
    fn what_the_model_refused_counted_as_a_prompt_that_nothing_was_kept_of() {
        let tally = Tally { tokens_sent: 300, tokens_refused: 100, tokens_reused: 150, ..Tally::default() };
        let kept = Metric::PrefixKept.of(&ArmOutcome { tally, ..ArmOutcome::default() }, None);
        assert_eq!(kept, Ratio::new(150.0, 200.0));
    }

    /// Once, a difference was claimed with a size of 0 and an interval of `[0, 0]`.
    #[test]
    fn a_small_difference_has_its_size() {
        let said = |metric: Metric, effect, interval| metric.phrase(&found(effect, interval));
        assert_eq!(said(Metric::Tokens, -0.0002, (-0.00035, -0.000_096)), "sends 0.020 % fewer tokens [0.0096, 0.035]");
        assert_eq!(
            said(Metric::Overflows, 0.035, (0.0, 0.0996)),
            "meets 0.035 more overflows a conversation [0, 0.10]"
        );
        let written = [0.0, -0.0, 1e-17, -0.004, 0.999, 9.94, 9.96].map(|effect| Metric::Overflows.number(effect));
        assert_eq!(written, ["0", "0", "0", "-0.0040", "1.0", "9.9", "10"]);
    }
}
