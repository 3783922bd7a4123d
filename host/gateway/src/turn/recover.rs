//! Step 5: the prompt was too long. The policy names the next rung, the host carries it out; each rung
//! starts from the window as it was before recovery began and must shrink the request by a tenth.
//!
//! This version has the trim rung; a policy that asks for another is told what is available.

use std::sync::Arc;

use pmk_core::{Guard, floor};
use pmk_policy::{OverflowInput, Phase, Rung};

use super::{
    TurnError,
    ask::Asked,
    budget::{self, Budgeted},
    gather::Gathered,
};
use crate::{gateway::Gateway, ledger::Event};

/// The last rung's name, in events and on the console.
pub(super) const GIVE_UP: &str = "give-up";

/// The trim rung's name.
const TRIM: &str = "trim";

/// What the provider said about the size.
#[derive(Clone, Copy)]
pub(super) struct Overflow {
    pub observed_tokens: Option<u64>,
    pub allowed_tokens: Option<u64>,
}

/// The window to try next and the rung that made it; none when there is nothing left to try. Then the
/// floor's window is kept, so that the next turn does not fail the same way.
pub(super) async fn recover(
    gateway: &Gateway,
    gathered: &Gathered,
    asked: &Asked,
    overflow: Overflow,
) -> Result<Option<(&'static str, Budgeted)>, TurnError> {
    let actor = || gathered.turn.inbound.user.clone();
    gateway.ledger.note(Event::ContextExceeded {
        actor: actor(),
        session_tokens_before: asked.budgeted.applied.tokens_after,
        retrieval_atoms: 0,
        phase: "first-call",
        observed_tokens: overflow.observed_tokens,
        allowed_tokens: overflow.allowed_tokens,
    });
    let trimmed = if asked.rungs.is_empty() { trim(gathered) } else { None };
    let available: Vec<Rung> = trimmed.iter().map(|_| Rung::Trim).chain([Rung::GiveUp]).collect();
    let rung = choose(gateway, gathered, asked, overflow, available).await;
    match (rung, trimmed) {
        (Rung::Trim, Some(applied)) => {
            gateway.ledger.note(Event::ContextForcePruned {
                actor: actor(),
                dropped_pairs: applied.turns_dropped,
                tokens_after: applied.tokens_after,
            });
            budget::edit_window(gateway, gathered, &applied).await?;
            Ok(Some((TRIM, Budgeted { applied, decided_by: asked.budgeted.decided_by.clone() })))
        }
        _ => {
            let floor = floor::decide(&gathered.transcript, gathered.room.limit);
            budget::edit_window(gateway, gathered, &floor).await?;
            Ok(None)
        }
    }
}

/// The trim rung, if it helps.
fn trim(gathered: &Gathered) -> Option<pmk_core::Applied> {
    let guard = Guard { limit: gathered.room.limit, seed_may_go: false, must_shrink: true };
    guard.apply(&gathered.transcript, &floor::trim(&gathered.transcript)).ok()
}

async fn choose(
    gateway: &Gateway,
    gathered: &Gathered,
    asked: &Asked,
    overflow: Overflow,
    available: Vec<Rung>,
) -> Rung {
    let input = OverflowInput {
        phase: Phase::First,
        tried: asked.rungs.iter().map(|_| Rung::Trim).collect(),
        available,
        observed_tokens: overflow.observed_tokens,
        allowed_tokens: overflow.allowed_tokens,
    };
    let stack = Arc::clone(&gateway.stack);
    let decision = tokio::task::spawn_blocking(move || stack.recover(input))
        .await
        .expect("a policy decision does not panic on the host's side");
    budget::note_failures(gateway, gathered, &decision.records);
    decision.rung
}
