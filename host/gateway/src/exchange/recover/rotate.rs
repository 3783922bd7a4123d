//! Rotation: the conversation continues in a fresh window with the seed pair and a summary. The
//! summary is made without the model, because the model may be what fails (specification 001 §3).

use std::ops::Range;

use pmk_core::{Transcript, tokens};

use super::super::{
    AdminAlert, Cut, Exchange, Ports,
    base::{Base, fold},
    summary::{self, Frame},
    window::Fold,
};
use crate::{ledger::Event, store::StoreError};

/// The rung: keeps the seed pair, a summary, and the new message.
pub(super) async fn rung(ports: &dyn Ports, exchange: &mut Exchange, base: &Base) -> Result<bool, StoreError> {
    let Some(range) = base.window.before_this_turn() else { return Ok(false) };
    let transcript = base.window.transcript();
    let summary = ports.summarize(&transcript, summary::most_tokens(exchange.budget.limit)).await;
    let text = summary.trim();
    let left_behind = range.len();
    let turns = u32::try_from(transcript.turns_in(range.start, range.end)).unwrap_or(u32::MAX);
    let (fresh, after) = fresh_session(base, &transcript, range, text);
    if !base.shrinks_to(after) {
        tracing::warn!(session = exchange.key, after, before = base.tokens, "a new session would not help");
        return Ok(false);
    }
    let has_summary = fresh.summary.is_some();
    let summary_length = text.chars().count();
    let session = exchange.key.clone();
    tracing::warn!(session, has_summary, summary_length, left_behind, "queue.context_overflow.new_session");
    let actor = exchange.asker.clone();
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
    fold(ports, exchange, base, fresh, told).await?;
    tracing::info!(session, "daemon.context_overflow.recovery");
    ports.alarm(AdminAlert::Rotated { left_behind });
    exchange.tally.draft.cut = Some(Cut::Rotated(turns));
    Ok(true)
}

/// Returns the fold that replaces what is left behind by a summary, if there is one, and the size of the
/// request after it.
fn fresh_session(base: &Base, transcript: &Transcript, range: Range<usize>, text: &str) -> (Fold, u64) {
    let summary = (!text.is_empty()).then(|| summary::framed(Frame::Rotated, text, transcript.language()));
    let cost = summary.as_ref().map_or(0, |summary| u64::from(tokens::message(summary)));
    let after = base.tokens.saturating_sub(transcript.tokens_in(range.start, range.end)) + cost;
    (Fold { range, summary, forget_dropped: true }, after)
}
