//! Ends a turn without the model: its messages are stored as any answer is.

use std::iter;

use super::{TurnError, placeholder, record};
use crate::{
    ledger::{TaggedEvent, report::TurnReport},
    services::Services,
    store::{Answered, EscalationUpdate, OpenTurn, Outgoing, Recorded},
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

impl Conclusion {
    /// Returns the conclusion of a turn of this kind that only says something.
    pub fn of(command: &'static str, parts: Vec<Outgoing>) -> Conclusion {
        Conclusion { command, parts, escalation: None, placeholder: None, events: vec![] }
    }
}

/// Stores the conclusion as the turn's answer. What an earlier attempt, which took the message for a question, has shown
/// of another answer is removed unless the first part replaces it.
pub(super) async fn conclude(
    services: &Services,
    turn: OpenTurn,
    Conclusion { command, mut parts, escalation, placeholder, events }: Conclusion,
) -> Result<Answered, TurnError> {
    if placeholder.is_none() || placeholder != turn.placeholder {
        parts.extend(placeholder::withdrawals(iter::once(&turn), None));
    }
    let report = TurnReport::of_command(turn.inbound.event_id.clone(), turn.inbound.key.clone(), command);
    let placed = placeholder.clone();
    let recorded = Recorded { escalation, events, placeholder, ..Recorded::of(report, parts, turn.live.revision) };
    record::store_answer(services, &turn, recorded, placed).await
}
