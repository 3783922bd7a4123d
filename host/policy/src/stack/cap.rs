//! May a large message be stored whole?

use std::sync::Arc;

use pmk_core::{CapVerdict, Origin};

use super::{Judged, Question, Stack};
use crate::{
    instance::{self, CapParams},
    limits::Size,
    record::{DecidedBy, Decision, Record},
    state::{Task, TextSize},
};

/// A large message that is about to be stored.
#[derive(Clone, Debug)]
pub struct IncomingInput {
    /// What it is: seed, mra-result, tool-result or attachment.
    pub kind: Origin,
    /// Repository, tool or file name; may be empty.
    pub name: String,
    /// All of it.
    pub text: Arc<str>,
    /// The hard limit in tokens.
    pub limit: u64,
}

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
