//! Step 5: the prompt was too long. The policy names the next rung, the host carries it out; each rung
//! starts from the window as it was before recovery began and must shrink the request by a tenth.
//!
//! | rung | what it does |
//! |---|---|
//! | trim | seed pair and most recent turn stay (seed 000 §2.2) |
//! | [`compact`] | the model summarises what lies between seed and most recent turn (seed 001, stage 1) |
//! | [`rotate`] | seed pair and a summary made without the model (seed 001, stage 2) |
//! | [`replan`] | no rung is left: planned again under what was learnt, in smaller and smaller forms |
//! | give up | an honest message, and a window that does not make the next turn fail |
//!
//! Every request is smaller than all that were refused in this turn. Where the size is only suspected to be the reason,
//! no rung is taken that costs a model call or a session, and what is tried is a [`trial`].

use pmk_core::floor;
use pmk_policy::{OverflowInput, Rung};

use super::{TurnError, budget, decided::note_records, work::Work};
use crate::{
    calibration::{Refusal, Source},
    clock,
    gateway::Gateway,
    ledger::Event,
};

pub(crate) mod compact;
mod replan;
pub(crate) mod rotate;
pub(crate) mod rules;
mod summary;
pub(super) mod trial;

use replan::Replanning;
use rules::{Base, MAX_RETRIES};
use trial::Trial;

/// Why a smaller request is wanted.
#[derive(Clone, Copy)]
pub(super) enum Cause {
    /// The provider said that it was too large.
    Overflow { observed_tokens: Option<u64>, allowed_tokens: Option<u64>, window: Option<u64> },
    /// There was no answer and no reason that is known; it may be the size.
    Suspected(Source),
}

/// The recovery of one model call.
#[derive(Default)]
pub(super) struct Recovery {
    /// The window that was refused first.
    base: Option<Base>,
    /// Rungs that were tried, whatever came of them.
    tried: Vec<Rung>,
    retries: usize,
    replanning: Replanning,
}

/// Makes the window smaller than all that was refused. False when there is nothing left to try: then the window is
/// one that will be answered, or, where the size was only suspected, what it was.
pub(super) async fn recover(
    gateway: &Gateway,
    work: &mut Work<'_>,
    recovery: &mut Recovery,
    cause: Cause,
) -> Result<bool, TurnError> {
    note_cause(gateway, work, cause);
    let base = recovery
        .base
        .get_or_insert_with(|| Base { window: work.window.clone(), tokens: work.tally.tokens_after })
        .clone();
    if climb(gateway, work, recovery, &base, cause).await? || recovery.replanning.next(gateway, work).await? {
        if let Some(trial) = &mut work.trial {
            trial.sent();
        }
        return Ok(true);
    }
    trial::in_vain(gateway, work);
    if matches!(cause, Cause::Overflow { .. }) {
        give_up(gateway, work).await?;
    }
    Ok(false)
}

/// Takes the next rung that makes the request smaller than all that were refused. False: none is left.
async fn climb(
    gateway: &Gateway,
    work: &mut Work<'_>,
    recovery: &mut Recovery,
    base: &Base,
    cause: Cause,
) -> Result<bool, TurnError> {
    while recovery.retries < MAX_RETRIES && !recovery.tried.contains(&Rung::GiveUp) {
        let rung = choose(gateway, work, base, &recovery.tried, cause).await;
        recovery.tried.push(rung);
        let taken = match rung {
            Rung::Trim => trim(gateway, work, base).await?,
            Rung::Compact => compact::rung(gateway, work, base).await?,
            Rung::Rotate => rotate::rung(gateway, work, base).await?,
            Rung::GiveUp => false,
        };
        if !taken {
            continue;
        }
        recovery.retries += 1;
        work.tally.rungs.push(rung.name());
        // The smaller window is budgeted like any other.
        budget::budget(gateway, work).await?;
        if replan::is_smaller(work) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What the model and this turn have learnt from it.
fn note_cause(gateway: &Gateway, work: &mut Work<'_>, cause: Cause) {
    let size = work.estimate();
    work.below = Some(work.below.map_or(size, |below| below.min(size)));
    match cause {
        Cause::Overflow { observed_tokens, allowed_tokens, window } => {
            work.tally.overflowed = true;
            let refusal = Refusal { observed: observed_tokens, window, source: Source::Refused };
            gateway.calibration().refused(work.turn.session, size, refusal, clock::now_ms());
            note_overflow(work, observed_tokens, allowed_tokens);
        }
        Cause::Suspected(source) => {
            tracing::warn!(session = %work.turn.inbound.key, size, because = source.name(), "a smaller prompt is tried");
            Trial::begin(work);
            if let Some(trial) = &mut work.trial {
                trial.suspect(source, size);
            }
        }
    }
}

fn note_overflow(work: &Work<'_>, observed_tokens: Option<u64>, allowed_tokens: Option<u64>) {
    tracing::warn!(
        session = %work.turn.inbound.key,
        estimate = work.tally.tokens_after,
        observed_tokens,
        allowed_tokens,
        "queue.context_overflow.detected"
    );
    let (actor, session) = (work.turn.inbound.user.clone(), work.turn.inbound.key.to_string());
    work.journal.note(Event::OverflowDetected { actor, session });
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
async fn choose(gateway: &Gateway, work: &Work<'_>, base: &Base, tried: &[Rung], cause: Cause) -> Rung {
    let mut available = base.available(tried, work.room.limit);
    let (observed_tokens, allowed_tokens) = match cause {
        Cause::Overflow { observed_tokens, allowed_tokens, .. } => (observed_tokens, allowed_tokens),
        Cause::Suspected(_) => (None, None),
    };
    if work.trial.is_some() {
        // The others cannot be taken back.
        available.retain(|rung| matches!(rung, Rung::Trim | Rung::GiveUp));
    }
    let tried = tried.to_vec();
    let input = OverflowInput { phase: work.tally.phase, tried, available, observed_tokens, allowed_tokens };
    let decision = work.policies.consult(move |stack| stack.recover(input)).await;
    note_records(gateway, &work.journal, &work.turn.inbound.user, &decision.records);
    decision.rung
}

async fn trim(gateway: &Gateway, work: &mut Work<'_>, base: &Base) -> Result<bool, TurnError> {
    let Some(applied) = base.trimmed(work.room.limit) else { return Ok(false) };
    let pruned = Event::ContextForcePruned {
        actor: work.turn.inbound.user.clone(),
        dropped_pairs: applied.turns_dropped,
        tokens_after: applied.tokens_after,
    };
    work.tally.cut = gateway.say.trimmed(applied.turns_dropped);
    work.window = base.window.clone();
    budget::carry_out(gateway, work, &applied, vec![pruned]).await?;
    Ok(true)
}

/// A message could not be answered because of its size, after these rungs; none where it was not even sent.
pub(super) fn note_failed(work: &Work<'_>) {
    work.journal.note(Event::ContextRecoveryFailed {
        actor: work.turn.inbound.user.clone(),
        session: work.turn.inbound.key.to_string(),
        rungs: work.tally.rungs.iter().map(|&rung| rung.to_owned()).collect(),
    });
}

/// Nothing helped, not even the new message alone. What is kept leaves as much room again for the next one.
async fn give_up(gateway: &Gateway, work: &mut Work<'_>) -> Result<(), TurnError> {
    tracing::error!(session = %work.turn.inbound.key, rungs = ?work.tally.rungs, "queue.context_overflow.recovery_failed");
    let (actor, session) = (work.turn.inbound.user.clone(), work.turn.inbound.key.to_string());
    work.journal.note(Event::OverflowRecoveryFailed { actor, session });
    work.tally.rungs.push(Rung::GiveUp.name());
    work.tally.gave_up = true;
    note_failed(work);
    gateway.tell_admins(gateway.say.recovery_failed(&work.turn.inbound.key.to_string()));
    work.room = gateway.room(work.turn.session, &work.preamble);
    let transcript = work.window.transcript();
    let of_this_turn = transcript.tokens_in(transcript.current(), transcript.len());
    let most = of_this_turn + work.room.limit / 2;
    if transcript.total_tokens() > most {
        budget::carry_out(gateway, work, &floor::decide(&transcript, most), vec![]).await?;
    }
    Ok(())
}

/// Puts a summary in the place of a part of the base window, in the stored live window, too, with what there is to tell
/// of it.
async fn fold(
    gateway: &Gateway,
    work: &mut Work<'_>,
    base: &Base,
    fold: super::window::Fold,
    told: Vec<Event>,
) -> Result<(), TurnError> {
    let mut window = base.window.clone();
    let told = told.into_iter().map(|event| work.journal.of_turn(event)).collect();
    let stored = gateway.store.fold(work.turn.session, window.fold_edit(&fold), told, clock::now_ms()).await?;
    window.fold(fold, stored);
    work.window = window;
    Ok(())
}
