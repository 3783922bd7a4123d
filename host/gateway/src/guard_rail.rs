//! The guard rail: is an arm worse than the control beyond doubt?
//!
//! Turns of one conversation are correlated, so conversations are counted instead. A conversation counts once for each
//! kind of trouble: at its first turn in which a policy failed, and at its first in which the model refused the prompt
//! as too long. Arms are drawn by a hash. If an arm makes no difference, the arm of the next conversation in trouble
//! depends only on the weights of the draw: it is this arm with the probability `p` = its weight over the sum of both
//! weights. That holds whatever people ask, however long conversations are and however they change over time.
//!
//! Failures need more care, because a policy that keeps failing is suspended, and each arm has circuit breakers of its
//! own, which hide failures of all its conversations. What is hidden of an arm only lowers the evidence against it. What
//! is hidden of the control would raise it, so failures count up to the first turn in which a policy of the control was
//! skipped, and no longer.
//!
//! The evidence is [a bet](pmk_statistics::evidence) against that hypothesis, for trouble that is some `r` times as
//! likely as with the control, each above 1. It ever exceeds `1/a` with a probability of at most `a` unless the arm is
//! worse, however often one looks. An experiment spends [`ALPHA`] on all its arms and both kinds of trouble together.

use std::fmt;

use crate::store::{ArmConversation, assignment::share};

#[cfg(test)]
pub(crate) mod simulation;

/// The highest probability that an experiment ever stops an arm that is no worse than the control.
pub const ALPHA: f64 = 0.05;

/// The assumed ratios of trouble. Any list keeps the error bound; this one detects slight harm late and plain harm
/// within some ten conversations.
const RATIOS: [f64; 8] = [1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 100.0];

/// A kind of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardrailMetric {
    /// A policy failed, or nothing made the prompt fit.
    Failures,
    /// The model refused a prompt as too long.
    Overflows,
}

impl GuardrailMetric {
    const ALL: [GuardrailMetric; 2] = [GuardrailMetric::Failures, GuardrailMetric::Overflows];

    /// The name in printed output.
    pub const fn name(self) -> &'static str {
        match self {
            GuardrailMetric::Failures => "failures",
            GuardrailMetric::Overflows => "overflows",
        }
    }

    /// Whether a conversation has this trouble; failures since `hidden_ms` do not count.
    fn is_in(self, conversation: &ArmConversation, hidden_ms: Option<i64>) -> bool {
        match self {
            GuardrailMetric::Failures => conversation
                .first_failed_ms
                .is_some_and(|failed_ms| hidden_ms.is_none_or(|hidden_ms| failed_ms < hidden_ms)),
            GuardrailMetric::Overflows => conversation.overflowed > 0,
        }
    }
}

/// The number of conversations in trouble, and of all conversations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    pub bad: u64,
    pub of: u64,
}

/// The finding that an arm is worse.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finding {
    pub worse: GuardrailMetric,
    pub arm: Share,
    pub control: Share,
    /// The evidence: the current value of the bet.
    pub evidence: f64,
    /// The value that it had to reach.
    pub bound: f64,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding { worse, arm, control, .. } = self;
        let name = worse.name();
        write!(
            f,
            "{name} in {} of {} conversations, the control's in {} of {}",
            arm.bad, arm.of, control.bad, control.of
        )
    }
}

/// The value that the evidence must reach when this many arms are or were compared with the control.
pub fn bound(rivals: usize) -> f64 {
    (rivals.max(1) * GuardrailMetric::ALL.len()) as f64 / ALPHA
}

/// Returns a finding if this arm, one of `rivals` that are or were compared with the control, is worse.
pub fn judge(conversations: &[ArmConversation], arm: &str, control: &str, rivals: usize) -> Option<Finding> {
    let (bound, hidden_ms) = (bound(rivals), hidden_since(conversations, control));
    GuardrailMetric::ALL.into_iter().find_map(|worse| {
        let evidence = evidence(conversations, arm, control, worse);
        let share = |name: &str| {
            let of = conversations.iter().filter(|conversation| conversation.arm == name && conversation.turns > 0);
            Share { bad: of.clone().filter(|of| worse.is_in(of, hidden_ms)).count() as u64, of: of.count() as u64 }
        };
        (evidence >= bound).then(|| Finding { worse, arm: share(arm), control: share(control), evidence, bound })
    })
}

/// Returns since when failures of the control may be hidden, because a policy of it was suspended.
pub fn hidden_since(conversations: &[ArmConversation], control: &str) -> Option<i64> {
    conversations.iter().filter(|it| it.arm == control).filter_map(|it| it.first_skipped_ms).min()
}

/// Returns the evidence that this arm is worse: the current value of the bet.
pub fn evidence(conversations: &[ArmConversation], arm: &str, control: &str, worse: GuardrailMetric) -> f64 {
    let hidden_ms = hidden_since(conversations, control);
    let in_trouble = conversations
        .iter()
        .filter(|it| worse.is_in(it, hidden_ms) && (it.arm == arm || it.arm == control))
        .map(|it| (it.arm == arm, share(&it.weights, arm, control)));
    pmk_statistics::evidence(in_trouble, &RATIOS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        guard_rail::simulation::{Suspending, Team, Trouble},
        store::assignment::Weights,
    };

    fn bad(arm: &str, weights: [(&str, u32); 2]) -> ArmConversation {
        let weights: Weights = weights.into_iter().map(|(arm, weight)| (arm.to_owned(), weight)).collect();
        ArmConversation { arm: arm.into(), weights, turns: 3, overflowed: 1, ..ArmConversation::default() }
    }

    #[test]
    fn some_conversations_in_trouble_of_one_arm_alone_are_enough() {
        let of_one: Vec<ArmConversation> = (0..7).map(|_| bad("b", [("a", 1), ("b", 1)])).collect();
        assert_eq!(judge(&of_one[..6], "b", "a", 1), None);
        let verdict = judge(&of_one, "b", "a", 1).expect("seven of seven");
        assert_eq!(
            (verdict.worse, verdict.arm, verdict.control.bad),
            (GuardrailMetric::Overflows, Share { bad: 7, of: 7 }, 0)
        );
        assert_eq!(verdict.to_string(), "overflows in 7 of 7 conversations, the control's in 0 of 0");
        assert_eq!(judge(&of_one, "b", "a", 3), None, "more arms, more to prove");
        assert_eq!(judge(&of_one, "a", "b", 1), None, "the other way round it is good");
        // If nine of ten conversations are the arm's, trouble in seven of them says little.
        let large: Vec<ArmConversation> = (0..7).map(|_| bad("b", [("a", 1), ("b", 9)])).collect();
        assert_eq!(judge(&large, "b", "a", 1), None);
    }

    fn failed(arm: &str, weights: [(&str, u32); 2], at_ms: i64) -> ArmConversation {
        ArmConversation { failed: 1, overflowed: 0, first_failed_ms: Some(at_ms), ..bad(arm, weights) }
    }

    /// Once, an arm was stopped that was the same as the control, as suspensions hid more failures of the control.
    #[test]
    fn failures_count_until_those_of_the_control_may_be_hidden() {
        let equal = [("a", 1), ("b", 1)];
        let mut all: Vec<ArmConversation> = (1..=7).map(|at_ms| failed("b", equal, at_ms)).collect();
        all.push(ArmConversation { first_skipped_ms: Some(8), ..failed("a", equal, 8) });
        let verdict = judge(&all, "b", "a", 1).expect("seven of seven");
        assert_eq!((verdict.worse, verdict.arm.bad, verdict.control.bad), (GuardrailMetric::Failures, 7, 0));
        all[7].first_skipped_ms = Some(7);
        assert_eq!(judge(&all, "b", "a", 1), None, "one of the seven counts no more");
        assert_eq!(hidden_since(&all, "a"), Some(7));
        assert_eq!(hidden_since(&all, "b"), None, "what is hidden of the arm harms nobody");
    }

    /// Once, each failure of the control from before an arm was there counted as evidence for that arm.
    #[test]
    fn failures_from_before_an_arm_was_added_are_no_evidence_for_it() {
        let before = (0..20).map(|at_ms| failed("a", [("a", 1), ("b", 0)], at_ms));
        let since = (20..27).map(|at_ms| failed("b", [("a", 1), ("b", 1)], at_ms));
        let all: Vec<ArmConversation> = before.chain(since).collect();
        assert_eq!(judge(&all, "b", "a", 1).map(|verdict| verdict.worse), Some(GuardrailMetric::Failures));
    }

    /// Once, an arm with the very policies of the control was stopped in a third of such experiments.
    #[test]
    fn an_arm_that_fails_as_often_as_the_control_is_hardly_ever_stopped_whatever_suspensions_hide() {
        let stopped = |experiments: u64, weights, fails, are_skips_known| {
            let is_stopped = |seed: &u64| {
                let mut team = Suspending::new(*seed, 200, weights, fails);
                team.are_skips_known = are_skips_known;
                (0..2_000).any(|_| team.turn() && judge(&team.conversations, "b", "a", 1).is_some())
            };
            (0..experiments).filter(is_stopped).count()
        };
        for weights in [[1, 1], [9, 1], [1, 9]] {
            let stopped = stopped(100, weights, [0.5, 0.5], true);
            assert!(stopped as f64 <= 100.0 * ALPHA, "{weights:?}: {stopped} of 100");
        }
        let if_all_counted = stopped(100, [1, 1], [0.5, 0.5], false);
        assert!(if_all_counted as f64 > 100.0 * ALPHA * 2.0, "all failures seen would not do: {if_all_counted} of 100");
        assert_eq!(stopped(20, [1, 1], [0.0, 1.0], true), 20, "one that alone fails");
    }

    /// Regression: the manual said seven, however many arms there are.
    #[test]
    fn it_takes_more_conversations_to_stop_one_of_several_arms() {
        for (rivals, enough) in [(1, 7), (2, 8), (3, 9)] {
            let of_one: Vec<ArmConversation> = (0..enough).map(|_| bad("b", [("a", 1), ("b", 1)])).collect();
            assert_eq!(judge(&of_one[1..], "b", "a", rivals), None, "{rivals}");
            assert!(judge(&of_one, "b", "a", rivals).is_some(), "{rivals}");
        }
    }

    #[test]
    fn trouble_on_both_sides_is_no_evidence() {
        let both: Vec<ArmConversation> =
            (0..400).map(|n| bad(if n % 2 == 0 { "a" } else { "b" }, [("a", 1), ("b", 1)])).collect();
        assert_eq!(judge(&both, "b", "a", 1), None);
        assert!(evidence(&both, "b", "a", GuardrailMetric::Overflows) < 1.0);
    }

    /// An arm equal to the control, checked after each turn that went wrong, in 1,000 experiments of a team in which
    /// some conversations have far more trouble than others.
    #[test]
    fn an_arm_that_is_no_worse_is_stopped_as_seldom_as_promised() {
        let trouble = Trouble { everybody: 0.01, some: 0.3, share_of_some: 0.2 };
        let (mut stopped, mut by_turns) = (0, 0);
        for seed in 0..1_000 {
            let mut team = Team::new(seed, 60, [trouble; 2]);
            let (mut is_stopped, mut is_stopped_by_turns) = (false, false);
            for _ in 0..1_200 {
                if team.turn() {
                    is_stopped |= judge(&team.conversations, "b", "a", 1).is_some();
                    is_stopped_by_turns |= counts_turns(&team.conversations);
                }
            }
            stopped += u32::from(is_stopped);
            by_turns += u32::from(is_stopped_by_turns);
        }
        assert!(f64::from(stopped) <= 1_000.0 * ALPHA, "{stopped} of 1,000");
        assert!(f64::from(by_turns) > 1_000.0 * ALPHA * 2.0, "counting turns would not do: {by_turns} of 1,000");
    }

    /// The same bet on turns instead of conversations, which treats turns as independent of each other.
    fn counts_turns(conversations: &[ArmConversation]) -> bool {
        let of =
            |arm: &str| conversations.iter().filter(|it| it.arm == arm).map(|it| it.overflowed).sum::<u64>() as i32;
        let bet = |ratio: f64| (2.0 * ratio / (ratio + 1.0)).powi(of("b")) * (2.0 / (ratio + 1.0)).powi(of("a"));
        RATIOS.into_iter().map(bet).sum::<f64>() / RATIOS.len() as f64 >= bound(1)
    }

    #[test]
    fn a_bad_arm_is_stopped_before_long() {
        let control = Trouble { everybody: 0.01, some: 0.01, share_of_some: 0.0 };
        let bad = Trouble { everybody: 0.25, ..control };
        let mut turns: Vec<u32> = (0..200)
            .map(|seed| {
                let mut team = Team::new(seed, 60, [control, bad]);
                (1..=1_200)
                    .find(|_| team.turn() && judge(&team.conversations, "b", "a", 1).is_some())
                    .unwrap_or(u32::MAX)
            })
            .collect();
        turns.sort_unstable();
        let (median, most) = (turns[100], turns[190]);
        assert!(median <= 100 && most <= 500, "of both arms together: half within {median}, 95 % within {most}");
    }
}
