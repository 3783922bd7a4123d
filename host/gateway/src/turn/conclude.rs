//! The end of a turn that the model has no part in: what goes out is stored, as any answer is.

use pmk_models::Usage;

use super::TurnError;
use crate::{
    ledger::{TaggedEvent, Tags, report::TurnReport},
    services::Services,
    store::{Answered, EscalationUpdate, OpenTurn, Outgoing, Receipts, Recorded, TurnOutcome},
};

/// How such a turn ends.
pub(super) struct Conclusion {
    /// What the turn was, for fronts that tell.
    pub command: &'static str,
    pub parts: Vec<Outgoing>,
    pub escalation: Option<EscalationUpdate>,
    /// The message that the first part takes the place of.
    pub placeholder: Option<String>,
    /// What the ledger is to tell of it.
    pub events: Vec<TaggedEvent>,
}

/// Stores it.
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
