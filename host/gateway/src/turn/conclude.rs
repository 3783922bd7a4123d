//! Ends a turn without the model: its messages are stored as any answer is.

use pmk_models::Usage;

use std::slice;

use super::{TurnError, placeholder};
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

/// Stores the conclusion as the turn's answer. What an earlier attempt, which took the message for a question, has shown
/// of another answer is removed unless the first part replaces it.
pub(super) async fn conclude(
    services: &Services,
    turn: OpenTurn,
    Conclusion { command, mut parts, escalation, placeholder, events }: Conclusion,
) -> Result<Answered, TurnError> {
    placeholder::recall(services, &turn).await?;
    if placeholder.is_none() || placeholder != turn.placeholder {
        parts.extend(placeholder::withdrawals(slice::from_ref(&turn), None));
    }
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
