//! Is a policy sound? Every decision that it makes is asked for many times: about conversations of all kinds, at
//! several budgets, with its settings at their extremes. Each answer goes before the host's own guard, and the same
//! question must have the same answer twice.

mod examiner;
mod judgement;
mod prune;
mod questions;
mod variants;

use pmk_policy::Limits;
use serde::Serialize;

use self::examiner::Examiner;
pub use self::examiner::{Check, Cost, ENOUGH, Finding, Wasteful};
use super::{
    histories::Named,
    stage::{self, Stage},
};

/// Beyond this, in a quick check and with extreme settings, the length of a conversation adds nothing but time.
const SHORT_MESSAGES: usize = 500;

/// What came of it all.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Questions of one kind each.
    pub checks: Vec<Check>,
    /// The dearest single decision.
    pub cost: Cost,
}

impl Report {
    /// How many questions had a bad answer.
    pub fn failed(&self) -> u32 {
        self.checks.iter().map(|check| check.failed).sum()
    }

    /// How many were not asked, for so many of their kind had failed.
    pub fn not_asked(&self) -> u32 {
        self.checks.iter().map(|check| check.not_asked).sum()
    }

    /// How many questions were asked.
    pub fn asked(&self) -> u32 {
        self.checks.iter().map(Check::asked).sum()
    }
}

/// Asks a policy what most mistakes show in: its defaults, on conversations that are not long. `asked` is called after
/// each question.
pub fn quick(stage: &Stage, histories: &[Named], limits: &Limits, asked: &mut dyn FnMut()) -> Report {
    let mut examiner = Examiner::new(limits, asked);
    stage::quietly(|| {
        let (exports, stack) = (stage.policy().exports(), stage.with_defaults());
        questions::all(&mut examiner, exports, &stack, &short(histories), &prune::FEWER_PERCENTS);
    });
    examiner.report()
}

/// Asks a policy everything. `asked` is called after each question, for whoever shows progress.
pub fn run(stage: &Stage, histories: &[Named], limits: &Limits, asked: &mut dyn FnMut()) -> Report {
    let exports = stage.policy().exports();
    let mut examiner = Examiner::new(limits, asked);
    stage::quietly(|| {
        questions::all(&mut examiner, exports, &stage.with_defaults(), histories, &prune::PERCENTS);
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
