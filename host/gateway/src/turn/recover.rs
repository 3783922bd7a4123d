//! Step 5: the prompt was too long. The policy names the next rung, the host carries it out; each rung
//! starts from the window as it was before recovery began and must shrink the request by a tenth.
//!
//! | rung | what it does |
//! |---|---|
//! | trim | seed pair and most recent turn stay (seed 000 §2.2) |
//! | [`compact`] | the model summarises what lies between seed and most recent turn (seed 001, stage 1) |
//! | [`rotate`] | seed pair and a summary made without the model (seed 001, stage 2) |
//! | give up | an honest message, and a window that does not make the next turn fail |

use pmk_policy::{OverflowInput, Rung};

use super::{TurnError, budget, decided::note_records, work::Work};
use crate::{clock, gateway::Gateway, ledger::Event};

pub(crate) mod compact;
pub(crate) mod rotate;
pub(crate) mod rules;

use rules::{Base, MAX_RETRIES};

/// What the provider said about the size.
#[derive(Clone, Copy)]
pub(super) struct Overflow {
    pub observed_tokens: Option<u64>,
    pub allowed_tokens: Option<u64>,
}

/// The recovery of one model call.
#[derive(Default)]
pub(super) struct Recovery {
    /// The window that was refused first.
    base: Option<Base>,
    /// Rungs that were tried, whatever came of them.
    tried: Vec<Rung>,
    retries: usize,
}

/// Makes the window smaller by the next rung. False when there is nothing left to try: then the floor's
/// window is kept, so that the next turn does not fail the same way.
pub(super) async fn recover(
    gateway: &Gateway,
    work: &mut Work<'_>,
    recovery: &mut Recovery,
    overflow: Overflow,
) -> Result<bool, TurnError> {
    work.tally.overflowed = true;
    note_overflow(work, overflow);
    let base = recovery
        .base
        .get_or_insert_with(|| Base { window: work.window.clone(), tokens: work.tally.tokens_after })
        .clone();
    loop {
        let rung = if recovery.retries < MAX_RETRIES {
            choose(gateway, work, &base, &recovery.tried, overflow).await
        } else {
            Rung::GiveUp
        };
        recovery.tried.push(rung);
        let taken = match rung {
            Rung::Trim => trim(gateway, work, &base).await?,
            Rung::Compact => compact::rung(gateway, work, &base).await?,
            Rung::Rotate => rotate::rung(gateway, work, &base).await?,
            Rung::GiveUp => {
                give_up(gateway, work, &base).await?;
                return Ok(false);
            }
        };
        if taken {
            recovery.retries += 1;
            work.tally.rungs.push(rung.name());
            // The smaller window is budgeted like any other.
            budget::budget(gateway, work).await?;
            return Ok(true);
        }
    }
}

fn note_overflow(work: &Work<'_>, overflow: Overflow) {
    let Overflow { observed_tokens, allowed_tokens } = overflow;
    tracing::warn!(
        session = %work.turn.inbound.key,
        estimate = work.tally.tokens_after,
        observed_tokens,
        allowed_tokens,
        "queue.context_overflow.detected"
    );
    work.journal.note(Event::ContextExceeded {
        actor: work.turn.inbound.user.clone(),
        session_tokens_before: work.tally.tokens_after,
        retrieval_atoms: u32::try_from(work.atoms.len()).unwrap_or(u32::MAX),
        phase: if work.tally.rounds == 0 { "first-call" } else { "synthesise" },
        observed_tokens,
        allowed_tokens,
    });
}

/// Asks the policy which of the rungs that can still help comes next.
async fn choose(gateway: &Gateway, work: &Work<'_>, base: &Base, tried: &[Rung], overflow: Overflow) -> Rung {
    let input = OverflowInput {
        phase: work.tally.phase,
        tried: tried.to_vec(),
        available: base.available(tried, work.room.limit),
        observed_tokens: overflow.observed_tokens,
        allowed_tokens: overflow.allowed_tokens,
    };
    let decision = work.policies.consult(move |stack| stack.recover(input)).await;
    note_records(gateway, &work.journal, &work.turn.inbound.user, &decision.records);
    decision.rung
}

async fn trim(gateway: &Gateway, work: &mut Work<'_>, base: &Base) -> Result<bool, TurnError> {
    let Some(applied) = base.trimmed(work.room.limit) else { return Ok(false) };
    work.journal.note(Event::ContextForcePruned {
        actor: work.turn.inbound.user.clone(),
        dropped_pairs: applied.turns_dropped,
        tokens_after: applied.tokens_after,
    });
    work.tally.cut = gateway.say.trimmed(applied.turns_dropped);
    work.window = base.window.clone();
    budget::carry_out(gateway, work, &applied).await?;
    Ok(true)
}

/// All rungs failed. What is kept is what the floor leaves.
async fn give_up(gateway: &Gateway, work: &mut Work<'_>, base: &Base) -> Result<(), TurnError> {
    tracing::error!(session = %work.turn.inbound.key, rungs = ?work.tally.rungs, "queue.context_overflow.recovery_failed");
    work.tally.rungs.push(Rung::GiveUp.name());
    work.tally.gave_up = true;
    work.journal.note(Event::ContextRecoveryFailed {
        actor: work.turn.inbound.user.clone(),
        session: work.turn.inbound.key.to_string(),
        rungs: work.tally.rungs.iter().map(|&rung| rung.to_owned()).collect(),
    });
    gateway.tell_admins(gateway.say.recovery_failed(&work.turn.inbound.key.to_string()));
    match base.given_up(&work.window, work.room.limit) {
        Some(floor) => budget::carry_out(gateway, work, &floor).await,
        None => Ok(()),
    }
}

/// Puts a summary in the place of a part of the base window, in the stored live window, too.
async fn fold(gateway: &Gateway, work: &mut Work<'_>, base: &Base, fold: super::window::Fold) -> Result<(), TurnError> {
    let mut window = base.window.clone();
    let stored = gateway.store.fold(work.turn.session, window.fold_edit(&fold), clock::now_ms()).await?;
    window.fold(fold, stored);
    work.window = window;
    Ok(())
}
