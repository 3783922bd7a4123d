//! Step 6: what came of the turn is stored, in one transaction, before anybody sees it.

use pmk_core::Message;
use pmk_policy::DecidedBy;
use serde_json::json;

use super::{
    TurnError,
    ask::{Asked, Outcome},
    deliver::Placed,
    gather::Gathered,
};
use crate::{
    clock,
    gateway::Gateway,
    ledger::Event,
    store::{Answered, OpenTurn, Part, Recorded},
};

pub(super) async fn record(
    gateway: &Gateway,
    gathered: Gathered,
    asked: Asked,
    placeholder: Placed,
) -> Result<Answered, TurnError> {
    let inbound = &gathered.turn.inbound;
    let question = Message::user(inbound.text.clone());
    let (reply, messages, keep_live) = match &asked.outcome {
        Outcome::Answered { text, prefix } => {
            (format!("{prefix}{text}"), vec![question, Message::assistant(text.clone())], true)
        }
        Outcome::Failed { message } => (message.clone(), vec![question], false),
    };
    let parts = gateway.front.split(&reply);
    let report = report(&gathered, &asked);
    let recorded = Recorded { messages, usage: asked.usage, parts: parts.clone(), report: report.clone(), keep_live };
    gateway.store.record(gathered.turn.turn, recorded, clock::now_ms()).await?;
    if asked.usage.prompt_tokens() > 0 {
        gateway.ledger.note(Event::TokenUsage {
            actor: inbound.user.clone(),
            provider: gateway.model.provider().to_owned(),
            model: gateway.model.name().to_owned(),
            input_tokens: asked.usage.input_tokens,
            output_tokens: asked.usage.output_tokens,
            cache_read_tokens: asked.usage.cache_read_tokens,
            cache_creation_tokens: asked.usage.cache_creation_tokens,
        });
    }
    let OpenTurn { turn, session, inbound, .. } = gathered.turn;
    let parts = (0..).zip(parts).map(|(number, body)| Part { number, body }).collect();
    Ok(Answered { turn, session, inbound, placeholder: placeholder.0, parts, report })
}

/// Who decided what the model got to see.
fn policy(decided_by: &DecidedBy) -> serde_json::Value {
    match decided_by {
        DecidedBy::Policy(identity) => json!(identity),
        DecidedBy::Floor => json!({"name": decided_by.name(), "version": null, "sha256": null}),
    }
}

/// The `turn` line of the console.
fn report(gathered: &Gathered, asked: &Asked) -> serde_json::Value {
    let applied = &asked.budgeted.applied;
    json!({
        "type": "turn",
        "event_id": gathered.turn.inbound.event_id,
        "session": gathered.turn.inbound.key,
        "policy": policy(&asked.budgeted.decided_by),
        "tokens": {
            "before": applied.tokens_before,
            "after": applied.tokens_after,
            "limit": gathered.room.limit,
        },
        "turns_dropped": applied.turns_dropped,
        "messages_replaced": applied.replaced.len(),
        "rungs": asked.rungs,
        "calls": asked.calls,
    })
}
