//! The circuit breaker of a layer: a policy that keeps failing is not asked for a while.
//!
//! It counts decisions and looks at no clock, so a running gateway that gets the same messages in the same order does
//! the same. Each kind of decision has a breaker of its own, because a policy whose `cap` is broken may prune well.
//! The lowest layer has none: below it there is nobody to take over but the floor.

use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use serde::Serialize;

use crate::decision::Decision;

/// The decisions that are looked back on.
const WINDOW: u32 = 20;
/// Failures among them that suspend a policy.
const FAILURES: u32 = 5;
/// Decisions that go past a suspended policy before it is tried again. Doubled each time the trial fails.
const FIRST_PAUSE: u32 = 20;
/// The longest that the pause gets.
const LONGEST_PAUSE: u32 = 1_280;

/// What a decision changed for the policy that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "change", rename_all = "lowercase")]
pub enum Change {
    /// It failed too often and is not asked for a while.
    Suspended {
        /// How often it failed among the last decisions it was asked for.
        failures: u32,
        /// How many decisions go past it before it is tried again.
        pause: u32,
        /// Whether that is the first time for this policy since it began to serve.
        first: bool,
    },
    /// It was tried again and did well.
    Resumed,
}

/// The breakers of one layer.
#[derive(Debug, Default)]
pub(crate) struct Breakers {
    each: [Breaker; 4],
    /// Whether the policy was suspended before, for whatever kind of decision.
    ever: AtomicBool,
}

#[derive(Debug, Default)]
struct Breaker(Mutex<State>);

#[derive(Debug)]
enum State {
    /// The policy is asked. One bit a decision, the newest lowest; set where it failed.
    Closed { recent: u32 },
    /// It is not, until `left` decisions have gone past it.
    Open { left: u32, pause: u32 },
}

impl Default for State {
    fn default() -> Self {
        State::Closed { recent: 0 }
    }
}

/// How a policy is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pass {
    /// As ever.
    Asked,
    /// To see whether it does well again.
    HalfOpen,
    /// Not at all.
    Skipped,
}

impl Breakers {
    /// Whether the policy is to be asked now.
    pub(crate) fn pass(&self, decision: Decision) -> Pass {
        match &mut *self.of(decision).lock() {
            State::Closed { .. } => Pass::Asked,
            State::Open { left, pause } if *left == 0 => {
                // The others go past it until this one is back, and if it never comes back until the next trial.
                *left = *pause;
                Pass::HalfOpen
            }
            State::Open { left, .. } => {
                *left -= 1;
                Pass::Skipped
            }
        }
    }

    /// Notes what came of asking.
    pub(crate) fn note(&self, decision: Decision, pass: Pass, failed: bool) -> Option<Change> {
        let mut state = self.of(decision).lock();
        match (&mut *state, pass) {
            (State::Closed { recent }, _) => {
                *recent = (*recent << 1 | u32::from(failed)) & ((1 << WINDOW) - 1);
                let failures = recent.count_ones();
                if failures < FAILURES {
                    return None;
                }
                *state = State::Open { left: FIRST_PAUSE, pause: FIRST_PAUSE };
                let first = !self.ever.swap(true, Ordering::Relaxed);
                Some(Change::Suspended { failures, pause: FIRST_PAUSE, first })
            }
            (State::Open { .. }, Pass::HalfOpen) if !failed => {
                *state = State::default();
                Some(Change::Resumed)
            }
            (State::Open { left, pause }, Pass::HalfOpen) => {
                *pause = (*pause * 2).min(LONGEST_PAUSE);
                *left = *pause;
                None
            }
            // Asked before it was suspended: that is decided already.
            (State::Open { .. }, Pass::Asked | Pass::Skipped) => None,
        }
    }

    fn of(&self, decision: Decision) -> &Breaker {
        &self.each[decision as usize]
    }
}

impl Breaker {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Whole after each of the two methods.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One decision after the other; what each changed, and how the policy was asked.
    fn decide(breakers: &Breakers, fails: impl Fn(u32) -> bool, decisions: u32) -> Vec<(u32, Pass, Option<Change>)> {
        let mut told = Vec::new();
        for n in 0..decisions {
            let pass = breakers.pass(Decision::Prune);
            let change = match pass {
                Pass::Skipped => None,
                _ => breakers.note(Decision::Prune, pass, fails(n)),
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
        // 20 go past it, then 40, 80, … and never more than 1,280.
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
        assert_eq!(breakers.note(Decision::Prune, early, false), None);
        assert_eq!(breakers.pass(Decision::Prune), Pass::Skipped);
    }
}
