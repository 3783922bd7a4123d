//! Step 5: the prompt was too long. The policy names the next rung, the host carries it out. Each rung starts from the
//! window before recovery began and must shrink the request by a tenth.
//!
//! | rung | what it does |
//! |---|---|
//! | trim | keeps seed pair and most recent turn (specification 000 §2.2) |
//! | [`compact`](super::compact) | the model summarizes what is between seed and most recent turn (specification 001 §2) |
//! | [`rotate`] | keeps the seed pair and a summary made without the model (specification 001 §3) |
//! | [`replan`] | no rung is left: plans again under the limit just learnt, in smaller and smaller forms |
//! | give up | tells the person, and leaves a window that does not make the next turn fail |
//!
//! Every request is smaller than all that were refused in this turn. If the size is only suspected to be the reason, no
//! rung is taken that costs a model call or a session, and every attempt is a [`trial`].

use pmk_core::floor;
use pmk_policy::{OverflowInput, Phase, Rung};

use super::{
    AdminAlert, Cut, Exchange, Ports,
    base::{Base, MAX_RETRIES},
    budget::{self, DecidedPlan},
    compact,
    trial::{self, Trial},
};
use crate::{
    calibration::{Refusal, Source},
    ledger::Event,
    store::StoreError,
};

pub(crate) mod replan;
mod rotate;

use replan::Replanning;

/// Why a smaller request is needed.
#[derive(Clone, Copy)]
pub(super) enum Cause {
    /// The provider said that the request was too large.
    Overflow { refusal: Refusal, observed_tokens: Option<u64>, allowed_tokens: Option<u64> },
    /// There was no answer, for an unknown reason; it may be the size.
    Suspected(Source),
}

/// The recovery of one model call.
#[derive(Default)]
pub(super) struct Recovery {
    /// The window that was refused first.
    base: Option<Base>,
    /// Rungs that were tried, with or without success.
    tried: Vec<Rung>,
    retries: usize,
    replanning: Replanning,
}

/// Makes the window smaller than all that were refused. Returns false if nothing is left to try. The window is
/// then one that will be answered or, if the size was only suspected, the original one.
pub(super) async fn recover(
    ports: &dyn Ports,
    exchange: &mut Exchange,
    recovery: &mut Recovery,
    cause: Cause,
) -> Result<bool, StoreError> {
    note_cause(ports, exchange, cause);
    let is_overflow = matches!(cause, Cause::Overflow { .. });
    if is_overflow && exchange.is_collected {
        // Its messages are asked one by one, and each may fit beside the whole conversation.
        return Ok(false);
    }
    let base = recovery.base.get_or_insert_with(|| Base::of(exchange, exchange.tally.draft.tokens_after)).clone();
    if climb(ports, exchange, recovery, &base, cause).await? || recovery.replanning.next(ports, exchange).await? {
        if let Some(trial) = &mut exchange.trial {
            trial.sent();
        }
        return Ok(true);
    }
    trial::in_vain(ports, exchange);
    if is_overflow {
        give_up(ports, exchange).await?;
    }
    Ok(false)
}

/// Takes the next rung that makes the request smaller than all that were refused. Returns false if
/// none is left.
async fn climb(
    ports: &dyn Ports,
    exchange: &mut Exchange,
    recovery: &mut Recovery,
    base: &Base,
    cause: Cause,
) -> Result<bool, StoreError> {
    while recovery.retries < MAX_RETRIES && !recovery.tried.contains(&Rung::GiveUp) {
        let rung = choose(ports, exchange, base, &recovery.tried, cause).await;
        recovery.tried.push(rung);
        let taken = match rung {
            Rung::Trim => trim(ports, exchange, base).await?,
            Rung::Compact => compact::rung(ports, exchange, base).await?,
            Rung::Rotate => rotate::rung(ports, exchange, base).await?,
            Rung::GiveUp => false,
        };
        if !taken {
            continue;
        }
        recovery.retries += 1;
        exchange.tally.rungs.push(rung.name());
        // The smaller window is budgeted like any other.
        let dropped = exchange.tally.draft.turns_dropped;
        budget::budget(ports, exchange).await?;
        exchange.tally.draft.cut_since(dropped);
        if replan::is_smaller(exchange) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Notes what the failure says about the model and about this turn.
fn note_cause(ports: &dyn Ports, exchange: &mut Exchange, cause: Cause) {
    let size = exchange.estimate();
    exchange.below = Some(exchange.below.map_or(size, |below| below.min(size)));
    match cause {
        Cause::Overflow { refusal, observed_tokens, allowed_tokens } => {
            exchange.tally.overflowed = true;
            ports.calibration().refused(exchange.session, size, refusal, ports.now_ms());
            note_overflow(ports, exchange, observed_tokens, allowed_tokens);
        }
        Cause::Suspected(source) => {
            tracing::warn!(session = exchange.key, size, because = source.name(), "trying a smaller prompt");
            Trial::begin(exchange);
            if let Some(trial) = &mut exchange.trial {
                trial.suspect(source, size);
            }
        }
    }
}

fn note_overflow(ports: &dyn Ports, exchange: &Exchange, observed_tokens: Option<u64>, allowed_tokens: Option<u64>) {
    tracing::warn!(
        session = exchange.key,
        estimate = exchange.tally.draft.tokens_after,
        observed_tokens,
        allowed_tokens,
        "queue.context_overflow.detected"
    );
    let (actor, session) = (exchange.asker.clone(), exchange.key.clone());
    ports.note(Event::OverflowDetected { actor, session });
    ports.note(Event::ContextExceeded {
        actor: exchange.asker.clone(),
        session_tokens_before: exchange.tally.draft.tokens_after,
        retrieval_atoms: u32::try_from(exchange.atoms).unwrap_or(u32::MAX),
        phase: if exchange.tally.phase == Phase::First { "first-call" } else { "synthesise" },
        observed_tokens,
        allowed_tokens,
    });
}

/// Asks the policy which of the rungs that can still help comes next.
async fn choose(ports: &dyn Ports, exchange: &Exchange, base: &Base, tried: &[Rung], cause: Cause) -> Rung {
    let mut available = base.available(tried, exchange.budget.limit);
    let (observed_tokens, allowed_tokens) = match cause {
        Cause::Overflow { observed_tokens, allowed_tokens, .. } => (observed_tokens, allowed_tokens),
        Cause::Suspected(_) => (None, None),
    };
    if exchange.trial.is_some() {
        // The other rungs cannot be undone.
        available.retain(|rung| matches!(rung, Rung::Trim | Rung::GiveUp));
    }
    let tried = tried.to_vec();
    let input = OverflowInput { phase: exchange.tally.phase, tried, available, observed_tokens, allowed_tokens };
    ports.choose_rung(input).await
}

async fn trim(ports: &dyn Ports, exchange: &mut Exchange, base: &Base) -> Result<bool, StoreError> {
    let Some(applied) = base.trimmed(exchange.budget.limit) else { return Ok(false) };
    let pruned = Event::ContextForcePruned {
        actor: exchange.asker.clone(),
        dropped_pairs: applied.turns_dropped,
        tokens_after: applied.tokens_after,
    };
    base.restore(exchange);
    let plan = DecidedPlan::of_floor(applied);
    budget::carry_out(ports, exchange, &plan, vec![pruned]).await?;
    exchange.tally.draft.cut = Some(Cut::Trimmed(plan.applied.turns_dropped));
    Ok(true)
}

/// Notes that a message could not be answered because of its size, after these rungs; the list is empty if
/// it was not even sent.
pub(super) fn note_failed(ports: &dyn Ports, exchange: &Exchange) {
    ports.note(Event::ContextRecoveryFailed {
        actor: exchange.asker.clone(),
        session: exchange.key.clone(),
        rungs: exchange.tally.rungs.iter().map(|&rung| rung.to_owned()).collect(),
    });
}

/// Gives up: nothing helped, not even the new message alone. The history that is kept leaves half of the
/// hard limit free for the next message.
async fn give_up(ports: &dyn Ports, exchange: &mut Exchange) -> Result<(), StoreError> {
    tracing::error!(session = exchange.key, rungs = ?exchange.tally.rungs, "queue.context_overflow.recovery_failed");
    let (actor, session) = (exchange.asker.clone(), exchange.key.clone());
    ports.note(Event::OverflowRecoveryFailed { actor, session });
    exchange.tally.rungs.push(Rung::GiveUp.name());
    exchange.tally.gave_up = true;
    note_failed(ports, exchange);
    ports.alarm(AdminAlert::GaveUp);
    exchange.budget = ports.token_budget(exchange.session, exchange.preamble.tokens);
    let transcript = exchange.window.transcript();
    let of_this_turn = transcript.tokens_in(transcript.current(), transcript.len());
    let most = of_this_turn + exchange.budget.limit / 2;
    if transcript.total_tokens() > most {
        let floor = DecidedPlan::of_floor(floor::decide(&transcript, most));
        budget::carry_out(ports, exchange, &floor, vec![]).await?;
    }
    Ok(())
}
