//! Step 7: the reply reaches the person. The first part takes the placeholder's place, the others are
//! posted after it; each is marked as it goes, so that a crash repeats at most the one under way.

use std::time::Duration;

use super::TurnError;
use crate::{
    clock,
    front::{Delivery, FrontError, Inbound},
    gateway::Gateway,
    ledger::Event,
    store::{Answered, OpenTurn, Part},
};

/// Attempts at a placeholder; without one the reply is posted as a message of its own.
const PLACEHOLDER_ATTEMPTS: u32 = 2;

/// The longest pause that is worth waiting for a placeholder: an answer may be there by then.
const LONGEST_WAIT: Duration = Duration::from_secs(3);

/// A placeholder that may have been posted.
pub(super) struct Placed(pub Option<String>);

/// Shows the person that an answer is being made.
pub(super) async fn placeholder(gateway: &Gateway, turn: &OpenTurn) -> Result<Placed, TurnError> {
    if turn.placeholder.is_some() {
        return Ok(Placed(turn.placeholder.clone()));
    }
    for _ in 0..PLACEHOLDER_ATTEMPTS {
        match gateway.front.placeholder(&turn.inbound.reply_to).await {
            Ok(None) => return Ok(Placed(None)),
            Ok(Some(id)) => {
                gateway.store.placed(turn.turn, &id).await?;
                return Ok(Placed(Some(id)));
            }
            Err(FrontError::Transient { what, retry_after }) => {
                tracing::debug!(what, "no placeholder yet");
                tokio::time::sleep(retry_after.unwrap_or_default().min(LONGEST_WAIT)).await;
            }
            Err(FrontError::Closed) => return Err(FrontError::Closed.into()),
            Err(error) => {
                tracing::warn!(%error, "no placeholder; the reply will be a message of its own");
                return Ok(Placed(None));
            }
        }
    }
    Ok(Placed(None))
}

/// Delivers what has not been delivered of an answer.
pub(super) async fn deliver(gateway: &Gateway, answered: Answered) -> Result<(), TurnError> {
    let inbound = &answered.inbound;
    let mut reply_ts = answered.placeholder.clone();
    let mut last_sent = None;
    for Part { number, body } in &answered.parts {
        if let Some(sent) = last_sent.take() {
            gateway.store.part_sent(answered.turn, sent, clock::now_ms()).await?;
        }
        let placeholder = answered.placeholder.as_deref().filter(|_| *number == 0);
        let part = Delivery { event_id: &inbound.event_id, reply_to: &inbound.reply_to, placeholder, text: body };
        let id = match send(gateway, part).await {
            Err(FrontError::Refused { what }) => {
                note_undelivered(gateway, inbound, what);
                None
            }
            sent => sent?,
        };
        reply_ts = reply_ts.or_else(|| id.clone());
        last_sent = Some((*number, id));
    }
    gateway.front.report(&inbound.event_id, &answered.report).await?;
    // The last part is marked together with the turn.
    gateway.store.finish(answered.turn, last_sent.into_iter().collect(), clock::now_ms()).await?;
    gateway.ledger.note(Event::TurnProcessed {
        actor: inbound.user.clone(),
        session: inbound.key.to_string(),
        channel_id: inbound.reply_to.channel.clone(),
        thread_ts: inbound.reply_to.thread_ts.clone(),
        reply_ts,
        had_mra_ask: false,
        atoms_injected: 0,
    });
    Ok(())
}

/// A reply that the front will never take is the operator's business.
fn note_undelivered(gateway: &Gateway, inbound: &Inbound, what: String) {
    tracing::error!(session = %inbound.key, what, "a reply was refused and is lost to the person");
    gateway.ledger.note(Event::ReplyUndelivered {
        actor: inbound.user.clone(),
        session: inbound.key.to_string(),
        reason: what,
    });
}

/// One part; where the placeholder is gone, as a message of its own.
async fn send(gateway: &Gateway, part: Delivery<'_>) -> Result<Option<String>, FrontError> {
    match gateway.front.deliver(part.clone()).await {
        Err(FrontError::Refused { what }) if part.placeholder.is_some() => {
            tracing::warn!(what, "the placeholder cannot be replaced; the reply is posted after it");
            gateway.front.deliver(Delivery { placeholder: None, ..part }).await
        }
        other => other,
    }
}
