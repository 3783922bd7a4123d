//! May a large message be stored whole?

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

/// What to keep of it.
#[derive(Clone, Debug)]
pub struct CapDecision {
    /// To be carried out by [`pmk_core::cap::apply`].
    pub verdict: CapVerdict,
    /// Whose verdict it is.
    pub decided_by: DecidedBy,
    /// Every layer that was asked, the top one first.
    pub records: Vec<Record>,
}

impl Stack {
    /// Decides what to keep of a large message. When no layer answers it is kept whole, but never more of it
    /// than a layer that failed would have allowed.
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
