//! What to try after the model refused a request as too long?

use pmk_core::{Breach, Rule};
use serde::Serialize;

use super::{Judged, Phase, Question, Stack};
use crate::{
    instance::{self, RecoverParams},
    limits::Size,
    record::{DecidedBy, Decision, Record},
    state::Task,
};

/// One step of recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rung {
    /// The seed pair and the most recent turn stay.
    Trim,
    /// The model summarises the middle.
    Compact,
    /// A fresh session opens with a local summary.
    Rotate,
    /// An honest message.
    GiveUp,
}

impl Rung {
    /// Every rung, in the order of the contract's codes.
    pub const ALL: [Rung; 4] = [Rung::Trim, Rung::Compact, Rung::Rotate, Rung::GiveUp];

    /// The code of the contract, from 1.
    pub const fn code(self) -> u8 {
        self as u8 + 1
    }

    /// The rung of a code.
    pub(crate) fn of_code(code: u8) -> Option<Rung> {
        Rung::ALL.into_iter().find(|rung| rung.code() == code)
    }

    /// The name used in events and output.
    pub const fn name(self) -> &'static str {
        match self {
            Rung::Trim => "trim",
            Rung::Compact => "compact",
            Rung::Rotate => "rotate",
            Rung::GiveUp => "give-up",
        }
    }
}

/// A refused request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OverflowInput {
    /// Which call it was.
    pub phase: Phase,
    /// Rungs tried in this turn, in order.
    pub tried: Vec<Rung>,
    /// Rungs that can still be tried; giving up always can and need not be listed.
    pub available: Vec<Rung>,
    /// Tokens the provider counted, where it said so.
    pub observed_tokens: Option<u64>,
    /// Tokens the provider allows, where it said so.
    pub allowed_tokens: Option<u64>,
}

/// Which rung comes next.
#[derive(Clone, Debug)]
pub struct RecoverDecision {
    /// One that is available, or giving up.
    pub rung: Rung,
    /// Who chose it.
    pub decided_by: DecidedBy,
    /// Every layer that was asked, the top one first.
    pub records: Vec<Record>,
}

impl Stack {
    /// Chooses the next rung. When no layer chooses one that is available, the host trims if it still can and else
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
            match chosen.and_then(Rung::of_code).filter(|&rung| available(rung)) {
                Some(rung) => Judged::accepted(rung),
                None => Judged::rejected(&Breach { rule: Rule::Sane, what: unavailable(chosen) }),
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

fn unavailable(chosen: Option<u8>) -> String {
    match chosen {
        None => "chose no rung".to_owned(),
        Some(code) => match Rung::of_code(code) {
            Some(rung) => format!("chose the rung `{}`, which is not available", rung.name()),
            None => format!("chose the rung {code}, which does not exist"),
        },
    }
}
