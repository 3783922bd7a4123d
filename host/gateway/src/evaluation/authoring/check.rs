//! Checks whether a policy is sound. Every decision that it makes is asked for many times: about conversations of all
//! kinds, at several budgets, with its settings as they are and at their extremes. Each answer is judged by the host's
//! own guard, and the same question must get the same answer twice.

mod examiner;
mod judgement;
mod prune;
mod questions;
mod variants;

use pmk_policy::{Layer, Limits, Stack};
use serde::Serialize;

use self::examiner::Examiner;
pub use self::examiner::{Check, Cost, ENOUGH, Finding, Reason, Wasteful};
use super::{
    histories::Named,
    stage::{self, Stage},
};

/// The longest conversation in a quick check and with extreme settings: longer ones only add time.
const SHORT_MESSAGES: usize = 500;

/// The result of a check.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The results by kind of question.
    pub checks: Vec<Check>,
    /// The highest cost of a single decision.
    pub cost: Cost,
}

impl Report {
    /// Returns how many questions had a bad answer.
    pub fn failed(&self) -> u32 {
        self.checks.iter().map(|check| check.failed).sum()
    }

    /// Returns how many questions were not asked because too many of their kind had failed.
    pub fn not_asked(&self) -> u32 {
        self.checks.iter().map(|check| check.not_asked).sum()
    }

    /// Returns how many questions were asked.
    pub fn asked(&self) -> u32 {
        self.checks.iter().map(Check::asked).sum()
    }
}

/// Runs the questions that reveal most mistakes: the settings as they are, on conversations that are not long. `asked`
/// is called after each question.
pub fn quick(layer: &Layer, histories: &[Named], limits: &Limits, asked: &mut dyn FnMut()) -> Report {
    let mut examiner = Examiner::new(limits, asked);
    stage::quietly(|| {
        let (exports, stack) = (layer.policy.exports(), Stack::new([], layer.clone()));
        questions::all(&mut examiner, exports, &stack, &short(histories), &prune::FEWER_PERCENTS);
    });
    examiner.report()
}

/// Runs all questions. `asked` is called after each question, for showing progress.
pub fn run(stage: &Stage, histories: &[Named], limits: &Limits, asked: &mut dyn FnMut()) -> Report {
    let exports = stage.policy().exports();
    let mut examiner = Examiner::new(limits, asked);
    stage::quietly(|| {
        questions::all(&mut examiner, exports, &stage.as_set(), histories, &prune::PERCENTS);
        let short = short(histories);
        for variant in variants::of(stage) {
            examiner.set(&variant.set);
            questions::all(&mut examiner, exports, &variant.stack, &short, &prune::FEWER_PERCENTS);
        }
    });
    examiner.report()
}

fn short(histories: &[Named]) -> Vec<Named> {
    histories.iter().filter(|named| named.transcript.len() <= SHORT_MESSAGES).cloned().collect()
}
