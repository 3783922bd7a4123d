//! The figures of each arm, and which differences from the control are significant.
//!
//! Figures are per turn, but the unit of observation is the conversation, because the turns of one conversation are
//! correlated. What a turn takes depends on the age of its conversation, so only conversations that were [drawn with the
//! same weights](comparable) are compared. An arm's figure is the ratio of two sums over its conversations, and its
//! variance is that of such a ratio. The intervals are asymptotic confidence sequences (Waudby-Smith, Arbour, Sinha, Kennedy, Ramdas,
//! *Time-uniform central limit theory*, 2021): they hold at all times at once, so that one may look every day and stop
//! at any time. The price is that they are wider than those of a test that is looked at once. All figures of all arms
//! share [`LEVEL`].

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::Serialize;

use super::{allocation, arms::Arms};
use crate::{
    config::{ArmConfig, ExperimentConfig},
    store::{ArmConversation, Design, DesignedArm, StoppedArm, assignment},
};

/// The probability that any difference at all is ever claimed where there is none.
pub const LEVEL: f64 = 0.05;

/// The least number of conversations with an answer of each arm for a finding: limit theorems do not hold for a handful.
pub const LEAST_CONVERSATIONS: usize = 12;

/// The number of conversations of both arms together at which the intervals are narrowest.
const NARROWEST_AT: f64 = 100.0;

/// The role of an arm in its experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Control,
    Arm,
    Shadow,
    /// No longer part of the experiment.
    Gone,
}

/// The sums of an arm's figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ArmFigures {
    pub arm: String,
    pub role: Role,
    /// The arm's share of new conversations; `None` for a shadow, or if it is no longer part of the experiment.
    pub weight: Option<u32>,
    pub conversations: u64,
    /// The number of conversations that the weights give it on average.
    pub conversations_expected: f64,
    pub turns: u64,
    pub failed: u64,
    /// Turns in which a suspended policy was skipped and none failed.
    pub unseen: u64,
    pub overflowed: u64,
    pub reasked: u64,
    pub likes: u64,
    pub dislikes: u64,
    /// Turns whose question people stopped or deleted before it was answered.
    pub called_off: u64,
    /// As counted by the provider.
    pub tokens_in: u64,
    pub tokens_out: u64,
    /// The average per turn whose answer people have.
    pub latency_ms: Option<u64>,
    /// The number of conversations that were moved to another arm.
    pub moved: u64,
    /// Since when, and why, the arm gets no more conversations.
    pub stopped: Option<Stopped>,
    /// Since when it has had its policies, if it had others before.
    pub policies_changed_at: Option<String>,
    /// What is compared with the control.
    pub compared: Option<Compared>,
    /// The differences from the control.
    pub differences: Vec<Difference>,
}

/// How many conversations of an arm and of the control are compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Compared {
    pub arm: u64,
    pub control: u64,
    /// Others were drawn with other weights, and are left out.
    pub weights_changed: bool,
    /// Others were drawn before one of the two got other policies, and are left out.
    pub policies_changed: Option<PoliciesChanged>,
    /// When a suspended policy of the control was first skipped: since then the guard rail counts no failures.
    pub failures_hidden_since: Option<String>,
}

/// Which of the two got other policies last, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PoliciesChanged {
    pub arm: String,
    pub at: String,
}

/// When and why the guard rail stopped an arm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stopped {
    pub at: String,
    pub reason: String,
}

/// A figure of an arm compared with that of the control.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    pub figure: &'static str,
    pub control: f64,
    pub arm: f64,
    /// The interval of the arm's figure minus the control's; `None` where there are too few data, or nothing varies.
    pub interval: Option<[f64; 2]>,
    pub finding: Finding,
}

/// The outcome of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    TooFewConversations,
    NoDifferenceShown,
    Less,
    More,
}

/// All figures of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figures {
    pub experiment: String,
    pub control: Option<String>,
    pub arms: Vec<ArmFigures>,
    /// The arms have other shares of the conversations than their weights and chance explain: the figures are not to be
    /// trusted.
    pub is_mismatched: bool,
}

/// A figure: its name, its sum over turns of a conversation, and the number of these turns.
type Figure = (&'static str, fn(&ArmConversation) -> u64, fn(&ArmConversation) -> u64);

/// Whether a suspended policy would have failed is not known: counted as turns without a failure, those in which it was
/// skipped would make an arm that always fails look good.
///
/// How long a turn that was called off would have taken is not known: with the time until then, an arm that people lose
/// patience with would look fast. So it is in no time, and a figure of its own shows if an arm has more of them.
const FIGURES: [Figure; 8] = [
    ("failures a turn", |it| it.failed, ArmConversation::seen),
    ("overflows a turn", |it| it.overflowed, |it| it.turns),
    ("questions asked again", |it| it.reasked, |it| it.turns),
    ("questions called off", |it| it.called_off, |it| it.turns),
    ("thumbs up a turn", |it| it.likes, |it| it.turns),
    ("thumbs down a turn", |it| it.dislikes, |it| it.turns),
    ("prompt tokens a turn", |it| it.tokens_in, |it| it.turns),
    ("milliseconds an answer", |it| it.latency_ms, ArmConversation::answered),
];

/// Returns the design of an experiment, as it is stored with the conversations.
pub fn design(config: &ExperimentConfig) -> Design {
    let arm = |arm: &ArmConfig| DesignedArm {
        name: arm.name.clone(),
        weight: arm.share(),
        shadow: arm.shadow,
        ..DesignedArm::default()
    };
    let start = config.start.map(|start| start.to_string());
    Design { start, control: config.control.clone(), arms: config.arms.iter().map(arm).collect() }
}

/// Returns the design of an experiment whose arms have been loaded.
pub fn loaded_design(config: &ExperimentConfig, arms: &Arms) -> Design {
    let mut design = design(config);
    for (designed, config) in design.arms.iter_mut().zip(&config.arms) {
        designed.policies = arms.get(&config.name).map(|arm| arm.mark(config));
    }
    design
}

/// Returns how many arms share the error probability: those that are compared with the control, and those that have
/// conversations although they no longer are. Otherwise one could look, remove all arms but the best, and claim it with
/// less evidence.
pub fn rivals<'a>(
    compared: impl Iterator<Item = &'a str>,
    conversations: &'a [ArmConversation],
    control: &str,
) -> usize {
    let drawn = conversations.iter().map(|it| it.arm.as_str());
    compared.chain(drawn).filter(|arm| *arm != control).collect::<BTreeSet<_>>().len()
}

impl Figures {
    /// Notes since when the guard rail counts no failures against an arm.
    pub fn hide_failures_since(&mut self, arm: &str, hidden_ms: Option<i64>) {
        let compared = self.arms.iter_mut().filter(|it| it.arm == arm).filter_map(|it| it.compared.as_mut());
        compared.for_each(|compared| compared.failures_hidden_since = hidden_ms.map(moment));
    }
}

/// Computes the figures of an experiment, with the arms of its stored design if there is one.
pub fn figures(
    experiment: &str,
    design: Option<&Design>,
    conversations: &[ArmConversation],
    stopped: &BTreeMap<String, StoppedArm>,
) -> Figures {
    let mut names: Vec<&str> = design.iter().flat_map(|design| &design.arms).map(|arm| arm.name.as_str()).collect();
    for known in conversations.iter().map(|it| it.arm.as_str()) {
        if !names.contains(&known) {
            names.push(known);
        }
    }
    let control = design.map(|design| design.control.clone());
    let designed = |name: &str| design.and_then(|design| design.arms.iter().find(|arm| arm.name == name));
    let role = |name: &str| match designed(name) {
        Some(arm) if arm.shadow => Role::Shadow,
        Some(_) if control.as_deref() == Some(name) => Role::Control,
        Some(_) => Role::Arm,
        None => Role::Gone,
    };
    let compared = names.iter().copied().filter(|name| role(name) == Role::Arm);
    let rivals = rivals(compared, conversations, control.as_deref().unwrap_or_default());
    let arms = names.iter().map(|&name| {
        let mut arm = sums(name, role(name), conversations);
        arm.weight = designed(name).filter(|arm| !arm.shadow).map(|arm| arm.weight);
        arm.stopped = stopped
            .get(name)
            .map(|StoppedArm { reason, at_ms, .. }| Stopped { at: moment(*at_ms), reason: reason.clone() });
        arm.policies_changed_at = designed(name).and_then(|arm| arm.changes_ms.last().copied()).map(moment);
        if let (Role::Arm, Some(design)) = (arm.role, design) {
            let (all, by_ms) =
                stopped.get(name).map_or((conversations, i64::MAX), |stopped| (&stopped.conversations, stopped.at_ms));
            // With other policies, it is another arm. What a conversation has become until then is due to the former ones.
            let change = design.last_change(name, by_ms);
            let since_ms = change.map_or(i64::MIN, |(_, at_ms)| at_ms);
            let alike: Vec<_> = all.iter().filter(|it| it.drawn_at_ms >= since_ms).cloned().collect();
            // An arm that was stopped is drawn no more: it is compared as it was until then.
            let share = if stopped.contains_key(name) { None } else { design.share(name) };
            let (mut compared, differences) = differences(&alike, name, &design.control, rivals, share);
            compared.policies_changed = change
                .filter(|_| alike.len() < all.len())
                .map(|(arm, at_ms)| PoliciesChanged { arm: arm.to_owned(), at: moment(at_ms) });
            (arm.compared, arm.differences) = (Some(compared), differences);
        }
        arm
    });
    let is_mismatched = allocation::is_mismatched(conversations);
    Figures { experiment: experiment.to_owned(), arms: arms.collect(), control, is_mismatched }
}

fn moment(at_ms: i64) -> String {
    Timestamp::from_millisecond(at_ms).map_or_else(|_| "?".into(), |at| at.to_string())
}

fn sums(name: &str, role: Role, conversations: &[ArmConversation]) -> ArmFigures {
    let of = || conversations.iter().filter(|it| it.arm == name);
    let sum = |what: fn(&ArmConversation) -> u64| of().map(what).sum::<u64>();
    let turns = sum(|it| it.turns);
    ArmFigures {
        arm: name.to_owned(),
        role,
        weight: None,
        conversations: of().count() as u64,
        conversations_expected: allocation::expected(conversations, name),
        turns,
        failed: sum(|it| it.failed),
        unseen: sum(|it| it.unseen),
        overflowed: sum(|it| it.overflowed),
        reasked: sum(|it| it.reasked),
        likes: sum(|it| it.likes),
        dislikes: sum(|it| it.dislikes),
        called_off: sum(|it| it.called_off),
        tokens_in: sum(|it| it.tokens_in),
        tokens_out: sum(|it| it.tokens_out),
        latency_ms: sum(|it| it.latency_ms).checked_div(sum(ArmConversation::answered)),
        moved: of().filter(|it| it.moved).count() as u64,
        stopped: None,
        policies_changed_at: None,
        compared: None,
        differences: vec![],
    }
}

/// Returns the conversations of an arm and of the control that can be compared: those with an answer that were drawn
/// with the newest weights of the two under which both could be drawn. After other weights, one arm has more of the
/// young conversations, in which prompts are short and few questions are asked again, whatever its policies do. `share`
/// is what the weights of new conversations make, if both can be drawn: perhaps none has been drawn with them yet.
fn comparable<'a>(
    conversations: &'a [ArmConversation],
    arm: &str,
    control: &str,
    share: Option<f64>,
) -> (Compared, [Vec<&'a ArmConversation>; 2]) {
    let share_of = |it: &ArmConversation| assignment::share(&it.weights, arm, control);
    let drawn = || conversations.iter().rev().map(share_of).find(|share| *share > 0.0 && *share < 1.0);
    let newest = share.or_else(drawn);
    let answered = conversations.iter().filter(|it| it.turns > 0 && [arm, control].contains(&it.arm.as_str()));
    let alike = || answered.clone().filter(|it| Some(share_of(it)) == newest);
    let [of_arm, of_control] = [arm, control].map(|name| alike().filter(|it| it.arm == name).collect::<Vec<_>>());
    let compared = Compared {
        arm: of_arm.len() as u64,
        control: of_control.len() as u64,
        weights_changed: newest.is_some() && of_arm.len() + of_control.len() < answered.count(),
        policies_changed: None,
        failures_hidden_since: None,
    };
    (compared, [of_arm, of_control])
}

/// Compares an arm, one of `rivals`, with the control in all figures; `share` as in [`comparable`].
fn differences(
    conversations: &[ArmConversation],
    arm: &str,
    control: &str,
    rivals: usize,
    share: Option<f64>,
) -> (Compared, Vec<Difference>) {
    let (compared, [of_arm, of_control]) = comparable(conversations, arm, control, share);
    let level = LEVEL / (FIGURES.len() * rivals.max(1)) as f64;
    let differences = FIGURES
        .into_iter()
        .map(|(figure, amount, turns)| {
            let [arm, control] = [&of_arm, &of_control].map(|of| Ratio::of(of, amount, turns));
            let enough = arm.conversations.min(control.conversations) >= LEAST_CONVERSATIONS as f64;
            let difference = arm.value - control.value;
            let reach = arm.variance_against(&control).sqrt() * width(arm.conversations + control.conversations, level);
            let interval = (enough && reach > 0.0).then_some([difference - reach, difference + reach]);
            // Without any variance there is no interval, and two values differ if they are not the same: among so many
            // conversations, chance sorts those of one value into one arm less than once in a million experiments.
            let finding = if !enough {
                Finding::TooFewConversations
            } else if difference > reach {
                Finding::More
            } else if difference < -reach {
                Finding::Less
            } else {
                Finding::NoDifferenceShown
            };
            Difference { figure, control: control.value, arm: arm.value, interval, finding }
        })
        .collect();
    (compared, differences)
}

/// An amount per turn, over conversations.
struct Ratio {
    value: f64,
    /// The variance of the value, estimated from the differences between conversations.
    variance: f64,
    turns: f64,
    /// Those that have such turns.
    conversations: f64,
}

impl Ratio {
    fn of(
        conversations: &[&ArmConversation],
        amount_of: fn(&ArmConversation) -> u64,
        turns_of: fn(&ArmConversation) -> u64,
    ) -> Ratio {
        let conversations: Vec<&ArmConversation> =
            conversations.iter().copied().filter(|it| turns_of(it) > 0).collect();
        let count = conversations.len() as f64;
        let turns: f64 = conversations.iter().map(|it| turns_of(it) as f64).sum();
        if turns == 0.0 {
            return Ratio { value: 0.0, variance: 0.0, turns, conversations: count };
        }
        let value = conversations.iter().map(|it| amount_of(it) as f64).sum::<f64>() / turns;
        // How far the ratio moves if a conversation is left out. The more of the turns it has, the more it pulls the
        // ratio towards its own, and the less the difference between the two says.
        let squares = conversations.iter().map(|it| {
            let turns_here = turns_of(it) as f64;
            let others = turns - turns_here;
            if others > 0.0 { ((amount_of(it) as f64 - value * turns_here) / others).powi(2) } else { 0.0 }
        });
        let variance = squares.sum::<f64>() * count / (count - 1.0).max(1.0);
        Ratio { value, variance, turns, conversations: count }
    }

    /// Returns the variance of the difference from another value.
    ///
    /// A small arm that has not yet met a rare event seems not to vary at all, and would be taken for exact. Without a
    /// difference, conversations of both arms vary alike, and a variance falls as turns are added; so each arm is also
    /// given what the other's conversations say of its turns, and the larger sum counts. The two sums are the same for
    /// arms of one size; otherwise the interval can only become wider, and it still shrinks as data come in.
    fn variance_against(&self, other: &Ratio) -> f64 {
        let own = self.variance + other.variance;
        let exchanged = self.variance * self.turns / other.turns + other.variance * other.turns / self.turns;
        own.max(exchanged)
    }
}

/// Returns the half-width of the interval in standard errors, for this number of conversations.
fn width(conversations: f64, level: f64) -> f64 {
    let twice = -2.0 * level.ln();
    let rate = conversations * (twice + twice.ln() + 1.0) / NARROWEST_AT;
    (2.0 * (rate + 1.0) / rate * ((rate + 1.0).sqrt() / level).ln()).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::experiment::tests::experiment,
        guard_rail::simulation::{Team, Trouble},
        store::assignment::Weights,
    };

    const ALIKE: Trouble = Trouble { everybody: 0.05, some: 0.3, share_of_some: 0.2 };

    fn claims(team: &Team) -> Vec<(&'static str, Finding)> {
        let (_, differences) = differences(&team.conversations, "b", "a", 1, None);
        differences
            .into_iter()
            .filter(|it| matches!(it.finding, Finding::Less | Finding::More))
            .map(|it| (it.figure, it.finding))
            .collect()
    }

    /// Random halves of one team, looked at twelve times, 1,000 times over.
    #[test]
    fn no_difference_is_claimed_where_there_is_none() {
        let mut runs = 0;
        for seed in 0..1_000 {
            let mut team = Team::new(seed, 150, [ALIKE; 2]);
            let mut claimed = false;
            for _ in 0..12 {
                team.turns(150);
                claimed |= !claims(&team).is_empty();
            }
            runs += u32::from(claimed);
        }
        assert!(runs <= 65, "a difference is claimed in {runs} of 1,000 runs, at a nominal 50");
    }

    /// Once, an arm of a few conversations that had not yet met a rare event counted as one that never does, exactly: a
    /// third of the experiments at 9 to 1 claimed a difference.
    #[test]
    fn a_small_arm_that_has_not_yet_met_a_rare_event_is_no_evidence() {
        let rare = Trouble { everybody: 0.01, some: 0.01, share_of_some: 0.0 };
        for weights in [[9, 1], [19, 1], [1, 9]] {
            let runs = (0..200).filter(|&seed| {
                let mut team = Team::drawn(seed, 400, weights, [rare; 2]);
                (0..8).any(|_| {
                    team.turns(200);
                    !claims(&team).is_empty()
                })
            });
            let runs = runs.count();
            assert!(runs <= 10, "with weights {weights:?}, a difference is claimed in {runs} of 200 runs");
        }
    }

    #[test]
    fn a_difference_that_is_there_is_found_by_a_small_arm_too() {
        let (seldom, often) = (Trouble { everybody: 0.02, some: 0.02, share_of_some: 0.0 }, 0.3);
        let often = Trouble { everybody: often, some: often, ..seldom };
        for (trouble, finding) in [([seldom, often], Finding::More), ([often, seldom], Finding::Less)] {
            let found = (0..100).filter(|&seed| {
                let mut team = Team::drawn(seed, 300, [9, 1], trouble);
                team.turns(3_000);
                claims(&team).contains(&("overflows a turn", finding))
            });
            let found = found.count();
            assert!(found >= 80, "{finding:?} in {found} of 100");
        }
    }

    #[test]
    fn a_difference_that_is_there_is_found() {
        let worse = Trouble { everybody: 0.2, ..ALIKE };
        let found = (0..200).filter(|&seed| {
            let mut team = Team::new(seed, 150, [Trouble { everybody: 0.02, share_of_some: 0.0, ..ALIKE }, worse]);
            team.turns(1_800);
            claims(&team) == [("overflows a turn", Finding::More)]
        });
        let found = found.count();
        assert!(found >= 160, "in {found} of 200");
    }

    /// Once, that was `prompt tokens a turn more`: by all but two of these conversations, the arms are alike.
    #[test]
    fn one_busy_conversation_in_each_arm_is_no_evidence() {
        let of = |arm: &str, turns: u64, tokens: u64| ArmConversation {
            turns,
            tokens_in: turns * tokens,
            ..conversation(arm, 0)
        };
        let arm = |name: &'static str, busy: u64| {
            (0..11).map(move |number| of(name, 5, 3_000 + number)).chain([of(name, 1_000, busy)])
        };
        let conversations: Vec<ArmConversation> = arm("a", 8_000).chain(arm("b", 20_000)).collect();
        let (_, differences) = differences(&conversations, "b", "a", 1, None);
        let tokens = differences.iter().find(|it| it.figure == "prompt tokens a turn").expect("the figure");
        assert_eq!(tokens.finding, Finding::NoDifferenceShown, "{tokens:?}");
    }

    fn conversation(arm: &str, overflowed: u64) -> ArmConversation {
        let (arm, weights) = (arm.into(), Weights::from([("a".into(), 1), ("b".into(), 1)]));
        ArmConversation { arm, weights, turns: 5, overflowed, ..ArmConversation::default() }
    }

    /// Once, that was `no difference shown: 1 against 0`.
    #[test]
    fn what_one_arm_always_and_the_other_never_does_is_a_difference() {
        let apart: Vec<ArmConversation> = (0..12).flat_map(|_| [conversation("a", 0), conversation("b", 5)]).collect();
        for (arm, control, finding) in [("b", "a", Finding::More), ("a", "b", Finding::Less)] {
            let (_, differences) = differences(&apart, arm, control, 1, None);
            let found: Vec<Finding> = differences.iter().map(|it| it.finding).collect();
            let none = Finding::NoDifferenceShown;
            assert_eq!(found, [none, finding, none, none, none, none, none, none]);
            assert!(differences.iter().all(|it| it.interval.is_none()), "nothing varies: {differences:?}");
        }
    }

    /// Conversations of one arm that were drawn with these weights of `a` and `b`. A conversation's prompt grows with its
    /// age.
    fn aged(arm: &str, [of_a, of_b]: [u32; 2], turns: u64, count: u64) -> Vec<ArmConversation> {
        let weights = Weights::from([("a".into(), of_a), ("b".into(), of_b)]);
        let conversation = |number: u64| ArmConversation {
            arm: arm.into(),
            weights: weights.clone(),
            turns,
            tokens_in: turns * (turns + 1) * (50 + number % 7),
            reasked: turns - 1 - number % 2,
            ..ArmConversation::default()
        };
        (0..count).map(conversation).collect()
    }

    /// The arm whose weight was raised has more of the young conversations: it was said to take `less: 408 against 1043`
    /// prompt tokens a turn.
    #[test]
    fn identical_arms_were_said_to_differ_once_their_weights_had_changed() {
        let then = [aged("a", [9, 1], 10, 180), aged("b", [9, 1], 10, 20)].concat();
        let now = [aged("a", [1, 9], 2, 20), aged("b", [1, 9], 2, 180)].concat();
        let (compared, found) = differences(&[then, now].concat(), "b", "a", 1, None);
        assert!(found.iter().all(|it| it.finding == Finding::NoDifferenceShown), "{found:?}");
        assert_eq!(compared, Compared { arm: 180, control: 20, weights_changed: true, ..Compared::default() });
        // An arm that is added later has no part in the conversations of before.
        let then = aged("a", [1, 0], 10, 40);
        let now = [aged("a", [1, 1], 2, 20), aged("b", [1, 1], 2, 20)].concat();
        let (compared, found) = differences(&[then, now].concat(), "b", "a", 1, None);
        assert!(found.iter().all(|it| it.finding == Finding::NoDifferenceShown), "{found:?}");
        assert_eq!(compared, Compared { arm: 20, control: 20, weights_changed: true, ..Compared::default() });
        // Twice the weights are the same weights, and those of a third arm change nothing between these two.
        let then = [aged("a", [1, 1], 10, 12), aged("b", [1, 1], 10, 12)].concat();
        let mut now = [aged("a", [2, 2], 2, 12), aged("b", [2, 2], 2, 12)].concat();
        now.iter_mut().for_each(|it| it.weights.extend([("c".into(), 5)]));
        let (compared, _) = differences(&[then, now].concat(), "b", "a", 1, None);
        assert_eq!(compared, Compared { arm: 24, control: 24, weights_changed: false, ..Compared::default() });
    }

    #[test]
    fn an_arm_with_other_policies_is_compared_since_it_has_them() {
        let drawn = |arm: &str, drawn_at_ms: i64, overflowed: u64| ArmConversation {
            drawn_at_ms,
            ..conversation(arm, overflowed)
        };
        let of = |at_ms: i64, bad: u64| (0..12).flat_map(move |_| [drawn("a", at_ms, 0), drawn("b", at_ms, bad)]);
        let conversations: Vec<ArmConversation> = of(1, 5).chain(of(5, 0)).collect();
        let found = |changed: &str, changes: &[i64], stopped: &BTreeMap<String, StoppedArm>| {
            let mut design = design(&experiment("less", &["a", "b"]));
            design.arms.iter_mut().filter(|arm| arm.name == changed).for_each(|arm| arm.changes_ms = changes.to_vec());
            let figures = figures("less", Some(&design), &conversations, stopped);
            let arm = &figures.arms[1];
            let compared = arm.compared.as_ref().expect("a comparison");
            let since = compared.policies_changed.as_ref().map(|changed| changed.arm.clone());
            (arm.differences[1].finding, compared.arm, since, arm.turns)
        };
        let none = BTreeMap::new();
        assert_eq!(found("neither", &[], &none), (Finding::More, 24, None, 120));
        for changed in ["a", "b"] {
            assert_eq!(found(changed, &[5], &none), (Finding::NoDifferenceShown, 12, Some(changed.into()), 120));
        }
        let stopped =
            StoppedArm { reason: "worse".into(), at_ms: 6, conversations: of(1, 0).chain(of(5, 5)).collect() };
        let stopped = [("b".to_owned(), stopped)].into();
        assert_eq!(found("b", &[7], &stopped), (Finding::More, 24, None, 120), "that was later");
        for changes in [&[5][..], &[5, 7]] {
            assert_eq!(found("b", changes, &stopped), (Finding::More, 12, Some("b".into()), 120));
        }
    }

    /// Once, one could look, keep the best arm and remove the others, and its intervals became narrower.
    #[test]
    fn the_intervals_of_an_arm_became_narrower_when_another_was_removed() {
        let of = |arm: &'static str| (0..30).map(move |number| conversation(arm, number % 3));
        let conversations: Vec<ArmConversation> = ["a", "b", "c"].into_iter().flat_map(of).collect();
        let of_b = |arms: &[&str]| {
            let figures = figures("less", Some(&design(&experiment("less", arms))), &conversations, &BTreeMap::new());
            figures.arms[1].differences.clone()
        };
        let before = of_b(&["a", "b", "c"]);
        assert!(before[1].interval.is_some(), "{before:?}");
        assert_eq!(of_b(&["a", "b"]), before);
        // The guard rail counts the same way, shadows with conversations of an earlier time among them.
        assert_eq!(rivals(["b"].into_iter(), &conversations, "a"), 2);
        assert_eq!(rivals(["b", "c", "d"].into_iter(), &conversations, "a"), 3);
        assert_eq!(rivals(["b"].into_iter(), &[], "a"), 1);
    }

    /// Once, a turn counted with the time until it was stopped: the slower an arm, the faster it looked.
    #[test]
    fn an_arm_whose_answers_people_stop_looked_fast() {
        let of = |arm: &str, called_off: u64, number: u64| ArmConversation {
            called_off,
            latency_ms: (5 - called_off) * (8_000 + number),
            ..conversation(arm, 0)
        };
        let pairs = (0..40).flat_map(|number| [of("a", number % 2, number), of("b", 3 + number % 2, number)]);
        let conversations: Vec<ArmConversation> = pairs.collect();
        let (_, found) = differences(&conversations, "b", "a", 1, None);
        let of_figure = |name: &str| found.iter().find(|it| it.figure == name).map(|it| it.finding);
        assert_eq!(of_figure("milliseconds an answer"), Some(Finding::NoDifferenceShown), "{found:?}");
        assert_eq!(of_figure("questions called off"), Some(Finding::More), "{found:?}");
        // Where nothing of an arm is answered any more, nothing is known of its time.
        let all: Vec<ArmConversation> = (0..40).flat_map(|number| [of("a", 0, number), of("b", 5, number)]).collect();
        let (_, found) = differences(&all, "b", "a", 1, None);
        let time = found.iter().find(|it| it.figure == "milliseconds an answer").expect("the figure");
        assert_eq!((time.finding, time.interval), (Finding::TooFewConversations, None));
    }

    #[test]
    fn a_handful_of_conversations_shows_nothing() {
        let few: Vec<ArmConversation> = (0..11).flat_map(|_| [conversation("a", 0), conversation("b", 5)]).collect();
        let (_, found) = differences(&few, "b", "a", 1, None);
        assert!(found.iter().all(|it| it.finding == Finding::TooFewConversations && it.interval.is_none()));
        let config = experiment("less", &["a", "b"]);
        let figures = figures("less", Some(&design(&config)), &few, &BTreeMap::new());
        let sums: Vec<(&str, Role, u64, u64)> =
            figures.arms.iter().map(|arm| (arm.arm.as_str(), arm.role, arm.turns, arm.overflowed)).collect();
        assert_eq!(sums, [("a", Role::Control, 55, 0), ("b", Role::Arm, 55, 55)]);
    }
}
