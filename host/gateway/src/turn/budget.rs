//! Step 3: the policy decides what of the conversation the model gets, and the live window is edited
//! accordingly, before the model is called and whatever comes of the call.

use std::sync::Arc;

use pmk_core::{Applied, floor};
use pmk_policy::PruneInput;

use super::{
    TurnError,
    decided::note_records,
    recover::{compact, trial::Trial},
    work::Work,
};
use crate::calibration::TokenBudget;
use crate::{experiment::shadow::Acted, services::Services};

pub(super) async fn budget(services: &Services, work: &mut Work<'_>) -> Result<(), TurnError> {
    if let Some(wanted) = decide(services, work).await? {
        // Tried once a turn; where it fails, the plan holds that came with it. What is only tried stores nothing.
        let may_compact = work.trial.is_none() && !std::mem::replace(&mut work.tally.compacted, true);
        if may_compact && compact::ahead(services, work, wanted.range).await? {
            decide(services, work).await?;
            return Ok(());
        }
        carry_out(services, work, &wanted.otherwise).await?;
    }
    Ok(())
}

/// A summary that a policy wants before the call, and what holds without it.
struct Wanted {
    range: std::ops::Range<usize>,
    otherwise: Applied,
}

/// Asks the policy and carries its plan out, unless it wants something summed up first.
async fn decide(services: &Services, work: &mut Work<'_>) -> Result<Option<Wanted>, TurnError> {
    let transcript = work.window.transcript();
    work.room = room(services, work, transcript.total_tokens());
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
        carry_out(services, work, &floor::decide(&transcript, alone(work))).await?;
        return Ok(None);
    }
    let input = PruneInput {
        limit: work.room.limit,
        window: work.room.window,
        phase: work.tally.phase,
        seed_may_go: services.config.policy.seed_may_go,
    };
    let asked = Arc::clone(&transcript);
    let decision = work.policies.consult(move |stack| stack.prune(&asked, input)).await;
    note_records(services, &work.journal, &work.turn.inbound.user, &decision.records);
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
        services.experiment.shadow(|| Acted {
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
    work.tally.decided_by = Some(decision.decided_by);
    match decision.applied.compaction.clone() {
        Some(range) if !work.tally.compacted => Ok(Some(Wanted { range, otherwise: decision.applied })),
        _ => {
            carry_out(services, work, &decision.applied).await?;
            Ok(None)
        }
    }
}

/// The room as of now: after what the last call has told of how the model counts and of what it takes. A request
/// that a bound holds back may be the one that tries whether it still holds.
fn room(services: &Services, work: &Work<'_>, wanted: u64) -> TokenBudget {
    let session = work.turn.session;
    let mut room = services.token_budget(session, &work.preamble);
    if wanted > room.limit
        && work.below.is_none()
        && services.calibrator.known().may_try_more(session, services.now_ms())
    {
        room = services.token_budget(session, &work.preamble);
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

/// Carries a decision over to the turn's window and to the stored live window, to that one later where it is only
/// tried. Costs nothing when it changes nothing.
pub(super) async fn carry_out(services: &Services, work: &mut Work<'_>, applied: &Applied) -> Result<(), TurnError> {
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
    if let Some(trial) = &mut work.trial {
        trial.edits.extend(applied.edits_window().then_some(edit));
    } else if applied.edits_window() {
        services.store.edit_live(work.turn.session, edit).await?;
    }
    Ok(())
}
