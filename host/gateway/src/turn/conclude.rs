//! The end of a turn that the model has no part in: what goes out is stored, as any answer is.

use serde_json::json;

use super::TurnError;
use crate::{
    clock,
    gateway::Gateway,
    ledger::{Noted, Tags},
    model::Usage,
    store::{Answered, Escalating, OpenTurn, Outgoing, Outturn, Part, Receipts, Recorded},
};

/// How such a turn ends.
pub(super) struct Conclusion {
    /// What the turn was, for fronts that tell.
    pub command: &'static str,
    pub parts: Vec<Outgoing>,
    pub escalation: Option<Escalating>,
    /// The message that the first part takes the place of.
    pub placeholder: Option<String>,
    /// What the ledger is to tell of it.
    pub events: Vec<Noted>,
}

/// Stores it.
pub(super) async fn conclude(
    gateway: &Gateway,
    turn: OpenTurn,
    Conclusion { command, parts, escalation, placeholder, events }: Conclusion,
) -> Result<Answered, TurnError> {
    if let Some(placeholder) = &placeholder {
        gateway.store.placed(turn.turn, placeholder).await?;
    }
    let report = json!({
        "type": "turn",
        "event_id": turn.inbound.event_id,
        "session": turn.inbound.key,
        "command": command,
    });
    let recorded = Recorded {
        messages: vec![],
        usage: Usage::default(),
        also: vec![],
        atoms: vec![],
        parts: parts.clone(),
        calibration: None,
        escalation,
        case: None,
        report: report.clone(),
        outturn: Outturn::default(),
        keep_live: false,
        events,
        receipts: Receipts::default(),
    };
    gateway.store.record(turn.turn, recorded, clock::now_ms()).await?;
    let OpenTurn { turn, session, inbound, received_at_ms, .. } = turn;
    let parts = (0..).zip(parts).map(|(number, outgoing)| Part { number, outgoing }).collect();
    let tags = Tags::default();
    Ok(Answered { turn, session, inbound, received_at_ms, tags, placeholder, parts, resumed: false, report })
}
