//! Step 3: the policy decides what of the conversation the model gets, and the live window is edited
//! accordingly, before the model is called and whatever comes of the call.

use std::sync::Arc;

use pmk_core::{Applied, Message, request};
use pmk_policy::{DecidedBy, Phase, PruneInput, Record};

use super::{TurnError, gather::Gathered};
use crate::{
    gateway::Gateway,
    ledger::Event,
    store::{Replacement, WindowEdit},
};

/// What is going to be sent.
pub(super) struct Budgeted {
    pub applied: Applied,
    pub decided_by: DecidedBy,
}

impl Budgeted {
    /// The messages of the request, as every provider accepts them.
    pub fn messages(&self, gathered: &Gathered) -> Vec<Message> {
        request::alternate(self.applied.messages(&gathered.transcript))
    }
}

pub(super) async fn budget(gateway: &Gateway, gathered: &Gathered) -> Result<Budgeted, TurnError> {
    let stack = Arc::clone(&gateway.stack);
    let transcript = Arc::clone(&gathered.transcript);
    let input = PruneInput {
        limit: gathered.room.limit,
        window: gathered.room.window,
        phase: Phase::First,
        seed_may_go: gateway.config.policy.seed_may_go,
    };
    // A decision takes microseconds, but a bad component may use all the time it is allowed.
    let decision = tokio::task::spawn_blocking(move || stack.prune(&transcript, input))
        .await
        .expect("a policy decision does not panic on the host's side");
    note_failures(gateway, gathered, &decision.records);
    if decision.applied.turns_dropped > 0 {
        tracing::info!(
            session = %gathered.turn.inbound.key,
            "pruned session: dropped {} turn-pair(s); now {} approx tokens",
            decision.applied.turns_dropped,
            decision.applied.tokens_after
        );
    }
    // A message too large alone is not sent, and must not cost the conversation what it holds.
    if decision.applied.tokens_after <= gathered.room.limit {
        edit_window(gateway, gathered, &decision.applied).await?;
    }
    Ok(Budgeted { applied: decision.applied, decided_by: decision.decided_by })
}

/// Tells operator and ledger of every layer that did not decide although it was asked.
pub(super) fn note_failures(gateway: &Gateway, gathered: &Gathered, records: &[Record]) {
    for record in records {
        let Some(reason) = record.outcome.reason() else { continue };
        tracing::warn!(policy = record.policy.name, sha256 = record.policy.sha256, reason, "policy failed");
        gateway.ledger.note(Event::PolicyFailed {
            actor: gathered.turn.inbound.user.clone(),
            policy: record.policy.name.clone(),
            version: record.policy.version.clone(),
            sha256: record.policy.sha256.clone(),
            decision: record.decision.name().to_owned(),
            reason: reason.to_owned(),
        });
    }
}

/// Carries a decision over to the live window. Costs nothing when it changes nothing.
pub(super) async fn edit_window(gateway: &Gateway, gathered: &Gathered, applied: &Applied) -> Result<(), TurnError> {
    if !applied.changes_anything() {
        return Ok(());
    }
    let position = |index: u32| gathered.positions[index as usize];
    let edit = WindowEdit {
        removed: applied.removed.iter().filter_map(|&index| position(index)).collect(),
        replaced: applied
            .replaced
            .iter()
            .filter_map(|replaced| {
                position(replaced.index).map(|position| Replacement {
                    position,
                    message: Arc::clone(&replaced.message),
                    tokens: replaced.tokens,
                    chars: replaced.chars_after,
                })
            })
            .collect(),
        dropped_turns_total: applied.turns_dropped_total,
        marker_template: match &applied.marker {
            Some((marker, _)) => marker.template().map(str::to_owned),
            None => gathered.marker_template.clone(),
        },
    };
    gateway.store.edit_live(gathered.turn.session, edit).await?;
    Ok(())
}
