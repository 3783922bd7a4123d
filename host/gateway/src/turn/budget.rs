//! Step 3: the policy decides what of the conversation the model gets, and the live window is edited
//! accordingly, before the model is called and whatever comes of the call.

use std::sync::Arc;

use pmk_core::{Applied, floor};
use pmk_policy::{DecidedBy, PruneInput};

use super::{
    TurnError,
    decided::note_records,
    recover::{compact, trial::Trial},
    work::{Room, Work},
};
use crate::{clock, experiment::shadow::Acted, gateway::Gateway, ledger::Event};

pub(super) async fn budget(gateway: &Gateway, work: &mut Work<'_>) -> Result<(), TurnError> {
    if let Some(wanted) = decide(gateway, work).await? {
        // Tried once a turn; where it fails, the plan holds that came with it. What is only tried stores nothing.
        let may_compact = work.trial.is_none() && !std::mem::replace(&mut work.tally.compacted, true);
        if may_compact && compact::ahead(gateway, work, wanted.range).await? {
            decide(gateway, work).await?;
            return Ok(());
        }
        carry_out(gateway, work, &wanted.otherwise, wanted.told).await?;
    }
    Ok(())
}

/// A summary that a policy wants before the call, and what holds without it.
struct Wanted {
    range: std::ops::Range<usize>,
    otherwise: Applied,
    told: Vec<Event>,
}

/// Asks the policy and carries its plan out, unless it wants something summed up first.
async fn decide(gateway: &Gateway, work: &mut Work<'_>) -> Result<Option<Wanted>, TurnError> {
    let transcript = work.window.transcript();
    work.room = room(gateway, work, transcript.total_tokens());
    let is_alone = alone(work) > work.room.limit;
    if !fits_at_all(work) || is_alone && work.below.is_some() {
        // There is nothing to decide, and the conversation must not lose anything over it. What recovery sends
        // alone is its own last step.
        let tokens = transcript.total_tokens();
        (work.tally.tokens_before, work.tally.tokens_after) = (tokens, tokens);
        return Ok(None);
    }
    if is_alone {
        // No history can go along. What was left out for it is stored once it is answered.
        if work.tally.calls == 0 {
            work.tally.tokens_before = transcript.total_tokens();
        }
        Trial::begin(work);
        let applied = floor::decide(&transcript, alone(work));
        let told = pruned(work, &DecidedBy::Floor, &applied);
        carry_out(gateway, work, &applied, told).await?;
        return Ok(None);
    }
    let input = PruneInput {
        limit: work.room.limit,
        window: work.room.window,
        phase: work.tally.phase,
        seed_may_go: gateway.config.policy.seed_may_go,
    };
    let asked = Arc::clone(&transcript);
    let decision = work.policies.consult(move |stack| stack.prune(&asked, input)).await;
    note_records(gateway, &work.journal, &work.turn.inbound.user, &decision.records);
    let applied = &decision.applied;
    if applied.turns_dropped > 0 {
        tracing::info!(
            session = %work.turn.inbound.key,
            "pruned session: dropped {} turn-pair(s); now {} approx tokens",
            applied.turns_dropped,
            applied.tokens_after
        );
    }
    if work.tally.decided_by.is_none() {
        gateway.experiment.shadow(gateway, || Acted {
            session: work.turn.inbound.key.to_string(),
            tags: work.journal.tags().clone(),
            transcript,
            input,
            applied: applied.clone(),
        });
    }
    if work.tally.calls == 0 {
        work.tally.tokens_before = applied.tokens_before;
    }
    match decision.applied.compaction.clone() {
        Some(range) if !work.tally.compacted => {
            let told = pruned(work, &decision.decided_by, &decision.applied);
            work.tally.decided_by = Some(decision.decided_by);
            Ok(Some(Wanted { range, otherwise: decision.applied, told }))
        }
        _ => {
            let told = pruned(work, &decision.decided_by, &decision.applied);
            work.tally.decided_by = Some(decision.decided_by);
            carry_out(gateway, work, &decision.applied, told).await?;
            Ok(None)
        }
    }
}

/// The room as of now: after what the last call has told of how the model counts and of what it takes. A request
/// that a bound holds back may be the one that tries whether it still holds.
fn room(gateway: &Gateway, work: &Work<'_>, wanted: u64) -> Room {
    let session = work.turn.session;
    let mut room = gateway.room(session, &work.preamble);
    if wanted > room.limit && work.below.is_none() && gateway.calibration().may_try_more(session, clock::now_ms()) {
        room = gateway.room(session, &work.preamble);
    }
    work.capped(room, work.preamble.tokens)
}

/// Whether the new message alone may fit: the halfway limit is for what goes along with it.
pub(super) fn fits_at_all(work: &Work<'_>) -> bool {
    alone(work) <= work.room.limit.max(work.room.alone)
}

fn alone(work: &Work<'_>) -> u64 {
    u64::from(work.window.new_message().tokens)
}

/// The event of a plan; none where it leaves the window as it is.
fn pruned(work: &Work<'_>, decided_by: &DecidedBy, applied: &Applied) -> Vec<Event> {
    let sha256 = match decided_by {
        DecidedBy::Policy(identity) => Some(identity.sha256.clone()),
        DecidedBy::Floor => None,
    };
    let event = || Event::ContextPruned {
        actor: work.turn.inbound.user.clone(),
        session: work.turn.inbound.key.to_string(),
        turns_dropped: applied.turns_dropped,
        messages_replaced: applied.replaced.len(),
        tokens_before: applied.tokens_before,
        tokens_after: applied.tokens_after,
        decided_by: decided_by.name().to_owned(),
        decided_by_sha256: sha256,
    };
    if applied.edits_window() { vec![event()] } else { vec![] }
}

/// Carries a decision over to the turn's window and to the stored live window, to that one later where it is only
/// tried. What there is to tell of it is stored with it. Costs nothing when it changes nothing.
pub(super) async fn carry_out(
    gateway: &Gateway,
    work: &mut Work<'_>,
    applied: &Applied,
    told: Vec<Event>,
) -> Result<(), TurnError> {
    work.tally.tokens_after = applied.tokens_after;
    if !applied.changes_anything() {
        return Ok(());
    }
    work.tally.turns_dropped += applied.turns_dropped;
    if let Some(recall) = &applied.recall {
        work.tally.recalled.clone_from(&recall.ids);
    }
    work.tally.messages_replaced += applied.replaced.len();
    let edit = work.window.apply(applied);
    if !applied.edits_window() {
        return Ok(());
    }
    let told = told.into_iter().map(|event| work.journal.of_turn(event)).collect();
    match &mut work.trial {
        Some(trial) => trial.edits.push((edit, told)),
        None => gateway.store.edit_live(work.turn.session, edit, told, clock::now_ms()).await?,
    }
    Ok(())
}
