//! The circuit breaker of a layer: suspends a policy that keeps failing.
//!
//! It counts decisions and reads no clock, so that a gateway that receives the same messages in the same order behaves
//! the same. Each kind of decision has its own breaker, because a policy whose `cap` is broken may prune well. The
//! lowest layer has none: below it there is only the floor.

use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use serde::{Deserialize, Serialize};

use crate::decision::{Decision, Identity};

/// How many of the most recent decisions are considered.
const WINDOW: u32 = 20;
/// How many failures among them suspend a policy.
const FAILURES: u32 = 5;
/// Decisions for which a suspended policy is skipped before it is tried again. Doubled each time the trial fails.
const FIRST_PAUSE: u32 = 20;
/// The longest pause.
const LONGEST_PAUSE: u32 = 1_280;

/// How a decision changed the state of the policy that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "change", rename_all = "lowercase")]
pub enum Change {
    /// It failed too often and is skipped for a while.
    Suspended {
        /// How many of the most recent decisions it was asked for failed.
        failures: u32,
        /// How many decisions it is skipped for before it is tried again.
        pause: u32,
        /// Whether this is the first suspension of this policy since it was loaded.
        first: bool,
    },
    /// It was tried again and succeeded.
    Resumed,
}

/// A kind of decision for which a policy is skipped at present.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suspension {
    /// The policy.
    pub policy: Identity,
    /// The kind of decision.
    pub decision: Decision,
    /// How many more decisions it is skipped for before it is tried again.
    pub left: u32,
    /// Why it failed the last time.
    pub reason: String,
}

/// The breakers of one layer.
#[derive(Debug, Default)]
pub(crate) struct Breakers {
    each: [Breaker; Decision::ALL.len()],
    /// Whether the policy has been suspended before, for any kind of decision.
    ever: AtomicBool,
}

#[derive(Debug, Default)]
struct Breaker(Mutex<State>);

#[derive(Debug)]
enum State {
    /// The policy is asked. One bit per decision, the newest lowest; set where it failed.
    Closed { recent: u32 },
    /// The policy is skipped for `left` more decisions; `reason` is why it failed the last time.
    Open { left: u32, pause: u32, reason: String },
}

impl Default for State {
    fn default() -> Self {
        State::Closed { recent: 0 }
    }
}

/// Whether and why a policy is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pass {
    /// As usual.
    Asked,
    /// As a trial after a suspension.
    HalfOpen,
    /// It is skipped.
    Skipped,
}

impl Breakers {
    /// Returns whether the policy is to be asked now.
    pub(crate) fn pass(&self, decision: Decision) -> Pass {
        match &mut *self.of(decision).lock() {
            State::Closed { .. } => Pass::Asked,
            State::Open { left, pause, .. } if *left == 0 => {
                // Concurrent decisions skip it until this trial ends; if it never ends, until the next trial.
                *left = *pause;
                Pass::HalfOpen
            }
            State::Open { left, .. } => {
                *left -= 1;
                Pass::Skipped
            }
        }
    }

    /// Records the outcome of a decision; `fault` is why it failed, if it did.
    pub(crate) fn note(&self, decision: Decision, pass: Pass, fault: Option<&str>) -> Option<Change> {
        let mut state = self.of(decision).lock();
        match (&mut *state, pass) {
            (State::Closed { recent }, _) => {
                *recent = (*recent << 1 | u32::from(fault.is_some())) & ((1 << WINDOW) - 1);
                let failures = recent.count_ones();
                if failures < FAILURES {
                    return None;
                }
                let reason = fault.unwrap_or_default().to_owned();
                *state = State::Open { left: FIRST_PAUSE, pause: FIRST_PAUSE, reason };
                let first = !self.ever.swap(true, Ordering::Relaxed);
                Some(Change::Suspended { failures, pause: FIRST_PAUSE, first })
            }
            (State::Open { .. }, Pass::HalfOpen) if fault.is_none() => {
                *state = State::default();
                Some(Change::Resumed)
            }
            (State::Open { left, pause, reason }, Pass::HalfOpen) => {
                *pause = (*pause * 2).min(LONGEST_PAUSE);
                *left = *pause;
                *reason = fault.unwrap_or_default().to_owned();
                None
            }
            // It was asked before it was suspended: the suspension stands.
            (State::Open { .. }, Pass::Asked | Pass::Skipped) => None,
        }
    }

    /// The kinds of decision for which this policy is skipped at present.
    pub(crate) fn suspensions(&self, policy: &Identity) -> Vec<Suspension> {
        let suspension = |decision| match &*self.of(decision).lock() {
            State::Open { left, reason, .. } => {
                Some(Suspension { policy: policy.clone(), decision, left: *left, reason: reason.clone() })
            }
            State::Closed { .. } => None,
        };
        Decision::ALL.into_iter().filter_map(suspension).collect()
    }

    fn of(&self, decision: Decision) -> &Breaker {
        &self.each[decision as usize]
    }
}

impl Breaker {
    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is consistent after each of the two methods.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes one decision after the other; returns what each changed, and how the policy was asked.
    fn decide(breakers: &Breakers, fails: impl Fn(u32) -> bool, decisions: u32) -> Vec<(u32, Pass, Option<Change>)> {
        let mut told = Vec::new();
        for n in 0..decisions {
            let pass = breakers.pass(Decision::Prune);
            let change = match pass {
                Pass::Skipped => None,
                _ => breakers.note(Decision::Prune, pass, fails(n).then_some("broken")),
            };
            if change.is_some() || pass == Pass::HalfOpen {
                told.push((n, pass, change));
            }
        }
        told
    }

    fn suspended(failures: u32, first: bool) -> Option<Change> {
        Some(Change::Suspended { failures, pause: FIRST_PAUSE, first })
    }

    #[test]
    fn five_failures_in_a_row_suspend_and_trials_come_ever_later() {
        let told = decide(&Breakers::default(), |_| true, 8_000);
        let first = (4, Pass::Asked, suspended(5, true));
        assert_eq!(told[0], first);
        let trials: Vec<u32> = told[1..].iter().map(|(n, ..)| *n).collect();
        // It is skipped for 20 decisions, then 40, 80, … and never more than 1,280.
        assert_eq!(trials, [25, 66, 147, 308, 629, 1_270, 2_551, 3_832, 5_113, 6_394, 7_675]);
        assert!(told[1..].iter().all(|(_, pass, change)| *pass == Pass::HalfOpen && change.is_none()));
    }

    #[test]
    fn five_failures_among_twenty_suspend_and_four_do_not() {
        assert_eq!(decide(&Breakers::default(), |n| n % 4 == 0, 20), [(16, Pass::Asked, suspended(5, true))]);
        assert_eq!(decide(&Breakers::default(), |n| n % 5 == 0, 1_000), []);
    }

    #[test]
    fn one_that_does_well_again_is_asked_again_and_the_first_suspension_is_told_apart() {
        let breakers = Breakers::default();
        let told = decide(&breakers, |n| n < 5, 100);
        assert_eq!(told, [(4, Pass::Asked, suspended(5, true)), (25, Pass::HalfOpen, Some(Change::Resumed))]);
        assert_eq!(decide(&breakers, |_| true, 5), [(4, Pass::Asked, suspended(5, false))]);
    }

    #[test]
    fn one_kind_of_decision_does_not_suspend_another() {
        let breakers = Breakers::default();
        decide(&breakers, |_| true, 10);
        assert_eq!(breakers.pass(Decision::Prune), Pass::Skipped);
        assert_eq!(breakers.pass(Decision::Cap), Pass::Asked);
    }

    #[test]
    fn a_trial_that_never_comes_back_does_not_end_the_trials() {
        let breakers = Breakers::default();
        decide(&breakers, |_| true, 5);
        let passes: Vec<Pass> = (0..42).map(|_| breakers.pass(Decision::Prune)).collect();
        assert_eq!(passes[20], Pass::HalfOpen);
        assert_eq!(passes[41], Pass::HalfOpen);
        assert_eq!(passes.iter().filter(|pass| **pass == Pass::Skipped).count(), 40);
    }

    #[test]
    fn what_was_asked_before_the_suspension_changes_nothing_after_it() {
        let breakers = Breakers::default();
        let early = breakers.pass(Decision::Prune);
        decide(&breakers, |_| true, 5);
        assert_eq!(breakers.note(Decision::Prune, early, None), None);
        assert_eq!(breakers.pass(Decision::Prune), Pass::Skipped);
    }
}
