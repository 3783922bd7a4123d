//! Ends a turn without the model: its messages are stored as any answer is.

use pmk_models::Usage;

use super::TurnError;
use crate::{
    ledger::{TaggedEvent, Tags, report::TurnReport},
    services::Services,
    store::{Answered, EscalationUpdate, OpenTurn, Outgoing, Receipts, Recorded, TurnOutcome},
};

/// How such a turn ends.
pub(super) struct Conclusion {
    /// The kind of turn, for fronts that report it.
    pub command: &'static str,
    pub parts: Vec<Outgoing>,
    pub escalation: Option<EscalationUpdate>,
    /// The message that the first part replaces.
    pub placeholder: Option<String>,
    /// Events for the ledger.
    pub events: Vec<TaggedEvent>,
}

/// Stores the conclusion as the turn's answer.
pub(super) async fn conclude(
    services: &Services,
    turn: OpenTurn,
    Conclusion { command, parts, escalation, placeholder, events }: Conclusion,
) -> Result<Answered, TurnError> {
    let report = TurnReport::of_command(turn.inbound.event_id.clone(), turn.inbound.key.clone(), command);
    let recorded = Recorded {
        messages: vec![],
        usage: Usage::default(),
        also: vec![],
        atoms: vec![],
        parts: parts.clone(),
        calibration: None,
        sizes: None,
        escalation,
        case: None,
        report: report.clone(),
        outturn: TurnOutcome::default(),
        keep_live: false,
        events,
        receipts: Receipts::default(),
        pieces: vec![],
        revision: turn.live.revision,
        placeholder: placeholder.clone(),
    };
    let now_ms = services.now_ms();
    services.store.record(turn.turn, recorded, now_ms).await?;
    Ok(Answered::recorded(&turn, Tags::default(), placeholder, parts, report, now_ms))
}
