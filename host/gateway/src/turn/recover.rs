//! Step 5: the prompt was too long. The policy names the next rung, the host carries it out; each rung
//! starts from the window as it was before recovery began and must shrink the request by a tenth.
//!
//! This version has the trim rung; a policy that asks for another is told what is available.

use std::sync::Arc;

use pmk_core::{Applied, Guard, floor};
use pmk_policy::{OverflowInput, Rung};

use super::{TurnError, budget, work::Work};
use crate::{gateway::Gateway, ledger::Event};

/// The last rung's name, in events and on the console.
const GIVE_UP: &str = "give-up";

/// The trim rung's name.
const TRIM: &str = "trim";

/// What the provider said about the size.
#[derive(Clone, Copy)]
pub(super) struct Overflow {
    pub observed_tokens: Option<u64>,
    pub allowed_tokens: Option<u64>,
}

/// Makes the window smaller by the next rung, after those that were `tried` for this call. False when there
/// is nothing left to try: then the floor's window is kept, so that the next turn does not fail the same
/// way.
pub(super) async fn recover(
    gateway: &Gateway,
    work: &mut Work<'_>,
    tried: &mut Vec<Rung>,
    overflow: Overflow,
) -> Result<bool, TurnError> {
    let actor = work.turn.inbound.user.clone();
    gateway.ledger.note(Event::ContextExceeded {
        actor: actor.clone(),
        session_tokens_before: work.tally.tokens_after,
        retrieval_atoms: u32::try_from(work.atoms.len()).unwrap_or(u32::MAX),
        phase: if work.tally.rounds == 0 { "first-call" } else { "synthesise" },
        observed_tokens: overflow.observed_tokens,
        allowed_tokens: overflow.allowed_tokens,
    });
    let trimmed = if tried.is_empty() { trim(work) } else { None };
    let available: Vec<Rung> = trimmed.iter().map(|_| Rung::Trim).chain([Rung::GiveUp]).collect();
    let input = OverflowInput {
        phase: work.tally.phase,
        tried: tried.clone(),
        available,
        observed_tokens: overflow.observed_tokens,
        allowed_tokens: overflow.allowed_tokens,
    };
    match (choose(gateway, &actor, input).await, trimmed) {
        (Rung::Trim, Some(applied)) => {
            gateway.ledger.note(Event::ContextForcePruned {
                actor,
                dropped_pairs: applied.turns_dropped,
                tokens_after: applied.tokens_after,
            });
            tried.push(Rung::Trim);
            work.tally.rungs.push(TRIM);
            work.tally.prefix.push_str(&gateway.say.trimmed(applied.turns_dropped));
            budget::carry_out(gateway, work, &applied).await?;
            Ok(true)
        }
        _ => {
            work.tally.rungs.push(GIVE_UP);
            let floor = floor::decide(&work.window.transcript(), work.room.limit);
            budget::carry_out(gateway, work, &floor).await?;
            Ok(false)
        }
    }
}

/// The trim rung, if it helps.
fn trim(work: &Work<'_>) -> Option<Applied> {
    let transcript = work.window.transcript();
    let guard = Guard { limit: work.room.limit, seed_may_go: false, must_shrink: true };
    guard.apply(&transcript, &floor::trim(&transcript)).ok()
}

async fn choose(gateway: &Gateway, actor: &str, input: OverflowInput) -> Rung {
    let stack = Arc::clone(&gateway.stack);
    let decision = tokio::task::spawn_blocking(move || stack.recover(input))
        .await
        .expect("a policy decision does not panic on the host's side");
    budget::note_failures(gateway, actor, &decision.records);
    decision.rung
}
