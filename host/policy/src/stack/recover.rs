//! The recover decision: what to try after the model refused a request as too long.

use pmk_core::{Breach, Rule};

use super::{Judged, Question, Stack};
use crate::{
    decision::{DecidedBy, Decision},
    input::{OverflowInput, Rung},
    instance::{self, RecoverParams},
    limits::Size,
    record::{Outcome, Record},
    state::Task,
};

/// The rung to try next.
#[derive(Clone, Debug)]
pub struct RecoverDecision {
    /// An available rung, or giving up.
    pub rung: Rung,
    /// Who chose it.
    pub decided_by: DecidedBy,
    /// Every layer that was asked, the top one first.
    pub records: Vec<Record>,
}

impl Stack {
    /// Chooses the next rung. When no layer chooses an available one, the host trims if it still can, and otherwise
    /// gives up.
    pub fn recover(&self, overflow: OverflowInput) -> RecoverDecision {
        let available = |rung: Rung| rung == Rung::GiveUp || overflow.available.contains(&rung);
        let question = Question::<RecoverParams> {
            decision: Decision::Recover,
            function: |functions| functions.recover,
            size: Size::small(),
            params: || (instance::borrow(), instance::borrow()),
            task: &|| Task::Recover { overflow: overflow.clone(), chosen: None },
        };
        let asked = self.decide(&question, |task, _| {
            let Task::Recover { chosen, .. } = task else { return Judged::misplaced() };
            // The choice is left to the next layer.
            let Some(code) = chosen else { return Judged { outcome: Outcome::Accepted, answer: None } };
            match Rung::of_code(code).filter(|&rung| available(rung)) {
                Some(rung) => Judged::accepted(rung),
                None => Judged::rejected(&Breach { rule: Rule::Sane, what: unavailable(code) }),
            }
        });
        let trim_or_give_up = if available(Rung::Trim) { Rung::Trim } else { Rung::GiveUp };
        RecoverDecision {
            rung: asked.answer.unwrap_or(trim_or_give_up),
            decided_by: asked.decided_by,
            records: asked.records,
        }
    }
}

fn unavailable(code: u8) -> String {
    match Rung::of_code(code) {
        Some(rung) => format!("chose the rung `{}`, which is not available", rung.name()),
        None => format!("chose the rung {code}, which does not exist"),
    }
}
