//! The cap decision: how much of a large message to keep.

use pmk_core::CapVerdict;

use super::{Judged, Question, Stack};
use crate::{
    decision::{DecidedBy, Decision},
    input::IncomingInput,
    instance::{self, CapParams},
    limits::Size,
    record::Record,
    state::{Task, TextSize},
};

/// How much of it to keep.
#[derive(Clone, Debug)]
pub struct CapDecision {
    /// To be applied by [`pmk_core::cap::apply`].
    pub verdict: CapVerdict,
    /// Who decided.
    pub decided_by: DecidedBy,
    /// Every layer that was asked, the top one first.
    pub records: Vec<Record>,
}

impl Stack {
    /// Decides how much of a large message to keep. When no layer answers, all of it is kept, but never more than a
    /// failed layer would have allowed.
    pub fn cap(&self, incoming: IncomingInput) -> CapDecision {
        let kind = incoming.kind;
        let question = Question::<CapParams> {
            decision: Decision::Cap,
            function: |functions| functions.cap,
            size: Size::of_text(&incoming.text),
            params: || (instance::borrow(), instance::borrow()),
            task: &|| Task::Cap {
                incoming: incoming.clone(),
                size: TextSize::default(),
                verdict: CapVerdict::default(),
            },
        };
        let asked = self.decide(&question, |task, bounds| match task {
            Task::Cap { verdict, .. } => Judged::accepted(bounds.cap(kind, verdict)),
            _ => Judged::misplaced(),
        });
        CapDecision {
            verdict: asked.answer.unwrap_or_else(|| asked.bounds.cap(kind, CapVerdict::Keep)),
            decided_by: asked.decided_by,
            records: asked.records,
        }
    }
}
