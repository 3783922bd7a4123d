//! Compaction: the model writes a summary of a part of the conversation, which replaces that part.
//!
//! The model reads the part as [material](super::material).

use std::ops::Range;

use pmk_core::{Transcript, tokens};
use pmk_models::ModelError;

use super::{
    Cut, Exchange, Ports, SummaryInput,
    base::{Base, fold},
    material::{Material, system},
    summary::{Frame, framed},
    window::Fold,
};
use crate::{ledger::Event, preambles::Preamble, store::StoreError};

/// The rung: summarizes everything between the seed and the most recent turn.
pub(super) async fn rung(ports: &dyn Ports, exchange: &mut Exchange, base: &Base) -> Result<bool, StoreError> {
    let Some(middle) = base.window.middle() else { return Ok(false) };
    let Some(turns) = compact(ports, exchange, base, middle, true).await? else { return Ok(false) };
    exchange.tally.draft.cut = Some(Cut::Compacted(turns));
    Ok(true)
}

/// Compacts before the call, at a policy's request. Nothing the person would notice is removed, so they
/// are not told.
pub(super) async fn ahead(ports: &dyn Ports, exchange: &mut Exchange, range: Range<usize>) -> Result<bool, StoreError> {
    let base = Base::of(exchange, exchange.window.transcript().total_tokens());
    Ok(compact(ports, exchange, &base, range, false).await?.is_some())
}

/// Replaces a range by the model's summary and returns how many turns it stands for. `None` if the model
/// failed, or if the request did not get smaller (during recovery, by a tenth).
async fn compact(
    ports: &dyn Ports,
    exchange: &mut Exchange,
    base: &Base,
    range: Range<usize>,
    recovering: bool,
) -> Result<Option<u32>, StoreError> {
    let transcript = base.window.transcript();
    let session = exchange.key.clone();
    let summary = match summarise(ports, exchange, &transcript, range.clone()).await {
        Ok(summary) => summary,
        Err(error) => {
            tracing::warn!(session, %error, "compaction failed");
            return Ok(None);
        }
    };
    let turns = u32::try_from(transcript.turns_in(range.start, range.end)).unwrap_or(u32::MAX);
    let (folded, after) = summed_up(base, &transcript, range, &summary);
    if !helps(base, after, recovering) {
        tracing::warn!(session, after, before = base.tokens, "compaction did not help");
        return Ok(None);
    }
    let actor = exchange.asker.clone();
    let mut told = vec![];
    if recovering {
        tracing::info!(session, turns, after, "queue.context_overflow.compacted");
        told.push(Event::OverflowCompacted { actor: actor.clone(), session: session.clone(), turns });
    } else {
        // Nothing has overflowed: a policy requested it.
        tracing::info!(session, turns, after, "compacted ahead of the call");
    }
    let tokens_before = base.tokens;
    told.push(Event::ContextCompacted { actor, session, turns, tokens_before, tokens_after: after, recovering });
    fold(ports, exchange, base, folded, told).await?;
    Ok(Some(turns))
}

/// Returns the fold that replaces a range by the summary, and the size of the request after it.
fn summed_up(base: &Base, transcript: &Transcript, range: Range<usize>, summary: &str) -> (Fold, u64) {
    let message = framed(Frame::Compacted, summary, transcript.language());
    let replaced = transcript.tokens_in(range.start, range.end);
    let after = base.tokens.saturating_sub(replaced) + u64::from(tokens::message(&message));
    (Fold { range, summary: Some(message), forget_dropped: false }, after)
}

/// Returns whether a request of that size is worth the summary: any smaller one; during recovery, one
/// that is smaller by a tenth.
fn helps(base: &Base, after: u64, recovering: bool) -> bool {
    after < base.tokens && (!recovering || base.shrinks_to(after))
}

/// Has the model summarize a range of messages.
async fn summarise(
    ports: &dyn Ports,
    exchange: &mut Exchange,
    transcript: &Transcript,
    range: Range<usize>,
) -> Result<String, ModelError> {
    let language = transcript.language();
    let preamble = Preamble::new(system(language), []);
    let budget =
        exchange.capped(ports.token_budget(exchange.session, preamble.tokens), preamble.tokens, ports.now_ms());
    let part = &transcript.entries()[range];
    let material = Material::of(part, budget.limit, language);
    let input = SummaryInput { session: exchange.session, part, material: &material, limit: budget.limit, language };
    let written = ports.write_summary(input, &mut exchange.tally.usage).await;
    Ok(material.with(written?))
}
