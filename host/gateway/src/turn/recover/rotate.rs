//! Rotation: the conversation goes on in a fresh window, with the seed pair and a summary that is made
//! without the model, because the model may be what fails (seed 001, stage 2).

use std::{ops::Range, sync::Arc};

use pmk_core::{Transcript, tokens};

use super::{
    super::{TurnError, decided::note_records, window::Fold, work::Work},
    fold,
    rules::Base,
    summary,
};
use crate::{gateway::Gateway, ledger::Event};

/// The most tokens of the summary, and its share of the hard limit.
const MAX_SUMMARY_TOKENS: u64 = 6_000;

/// The rung: seed pair, summary, and the message once more.
pub(super) async fn rung(gateway: &Gateway, work: &mut Work<'_>, base: &Base) -> Result<bool, TurnError> {
    let Some(range) = base.window.before_this_turn() else { return Ok(false) };
    let transcript = base.window.transcript();
    let most = most_tokens(work.room.limit);
    let asked = Arc::clone(&transcript);
    let decision = work.policies.consult(move |stack| stack.summarize(&asked, most)).await;
    note_records(gateway, &work.journal, &work.turn.inbound.user, &decision.records);
    let text = decision.text.trim();
    let left_behind = range.len();
    let turns = u32::try_from(transcript.turns_in(range.start, range.end)).unwrap_or(u32::MAX);
    let (fresh, after) = fresh_session(base, &transcript, range, text);
    if !base.shrinks_to(after) {
        tracing::warn!(session = %work.turn.inbound.key, after, before = base.tokens, "a fresh session would not help");
        return Ok(false);
    }
    let has_summary = fresh.summary.is_some();
    let summary_length = text.chars().count();
    let session = work.turn.inbound.key.to_string();
    tracing::warn!(session, has_summary, summary_length, left_behind, "queue.context_overflow.new_session");
    let actor = work.turn.inbound.user.clone();
    let told = vec![
        Event::OverflowNewSession { actor: actor.clone(), session: session.clone(), has_summary, summary_length },
        Event::ContextRotated {
            actor: actor.clone(),
            session: session.clone(),
            has_summary,
            summary_length,
            entries_left_behind: left_behind,
        },
        Event::OverflowRecovery { actor, session: session.clone(), entries_left_behind: left_behind },
    ];
    fold(gateway, work, base, fresh, told).await?;
    tracing::info!(session, "daemon.context_overflow.recovery");
    gateway.tell_admins(gateway.say.rotated_for_admins(&session, left_behind));
    work.tally.cut = gateway.say.rotated(turns);
    Ok(true)
}

/// The most tokens of the summary.
pub(crate) fn most_tokens(limit: u64) -> u32 {
    u32::try_from(MAX_SUMMARY_TOKENS.min(limit / 4)).unwrap_or(u32::MAX)
}

/// The window with a summary in the place of what is left behind, where there is one, and what the request
/// costs then.
pub(crate) fn fresh_session(base: &Base, transcript: &Transcript, range: Range<usize>, text: &str) -> (Fold, u64) {
    let summary = (!text.is_empty()).then(|| summary::framed(summary::ROTATED, text));
    let cost = summary.as_ref().map_or(0, |summary| u64::from(tokens::message(summary)));
    let after = base.tokens.saturating_sub(transcript.tokens_in(range.start, range.end)) + cost;
    (Fold { range, summary, forget_dropped: true }, after)
}
