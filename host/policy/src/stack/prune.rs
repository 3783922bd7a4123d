//! The prune decision: which messages the model sees.

use std::sync::Arc;

use pmk_core::{Applied, Breach, Guard, Plan, Rule, Transcript, Verdict, floor};

use super::{Judged, Question, Stack};
use crate::{
    decision::{DecidedBy, Decision},
    input::PruneInput,
    instance::{self, PruneParams},
    limits::Size,
    record::{Outcome, Record},
    state::Task,
};

/// The result of a prune decision.
#[derive(Clone, Debug)]
pub struct PruneDecision {
    /// The plan that is used, applied.
    pub applied: Applied,
    /// Who made the plan.
    pub decided_by: DecidedBy,
    /// The guard's verdict on the top policy that prunes, even when another one decided in the end. A policy that gave
    /// no answer is rejected by rule 8.
    pub verdict: Verdict,
    /// Every layer that was asked, the top one first.
    pub records: Vec<Record>,
}

impl Stack {
    /// Decides which messages the model sees. Always returns a request; only the new message by itself can still exceed
    /// the limit ([`Applied::tokens_after`]).
    pub fn prune(&self, transcript: &Arc<Transcript>, input: PruneInput) -> PruneDecision {
        let guard = Guard { limit: input.limit, seed_may_go: input.seed_may_go, must_shrink: false };
        let question = Question::<PruneParams> {
            decision: Decision::Prune,
            function: |functions| functions.prune,
            size: Size::of(transcript),
            params: || (instance::borrow(), instance::borrow(), instance::borrow()),
            task: &|| Task::Prune { transcript: transcript.clone(), input, plan: Plan::new() },
        };
        let mut verdicts = Vec::new();
        let asked = self.decide(&question, |task, _| {
            let Task::Prune { plan, .. } = task else { return Judged::misplaced() };
            match guard.apply(transcript, &plan) {
                Ok(applied) => {
                    verdicts.push(applied.verdict());
                    Judged { outcome: outcome(&applied), answer: Some(applied) }
                }
                Err(breach) => {
                    let judged = Judged::rejected(&breach);
                    verdicts.push(Verdict::Rejected(breach));
                    judged
                }
            }
        });
        let verdict = match asked.records.iter().map(|record| &record.outcome).find(|outcome| !outcome.is_skipped()) {
            Some(Outcome::Failed { reason, .. }) => {
                Verdict::Rejected(Breach { rule: Rule::Sane, what: reason.clone() })
            }
            _ => verdicts.into_iter().next().unwrap_or(Verdict::Accepted),
        };
        PruneDecision {
            applied: asked.answer.unwrap_or_else(|| floor::decide(transcript, input.limit)),
            decided_by: asked.decided_by,
            verdict,
            records: asked.records,
        }
    }
}

fn outcome(applied: &Applied) -> Outcome {
    if applied.corrected.is_empty() {
        return Outcome::Accepted;
    }
    Outcome::Corrected { rules: applied.corrected.iter().map(|rule| rule.number()).collect() }
}
