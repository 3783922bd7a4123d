//! What an answer changes of an escalation.

use pmk_core::FrontName;

use crate::{
    escalation::{EscalationRemark, Marker},
    store::Proposal,
};

/// What happens to an escalation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EscalationUpdate {
    /// It is sent: from now on a thread waits for the answer.
    Asked(FrontName, Marker),
    /// It is first shown to its asker for confirmation.
    Proposed(Proposal),
    /// It was confirmed, by the message with this event id, but cannot be sent now: it waits for confirmation
    /// again.
    Reopened(String),
    /// Somebody has commented on it, and it still waits.
    Said(FrontName, Marker, EscalationRemark),
    /// A contact is asked whether they have answered it.
    Unsure(Proposal),
    /// Its answer is handed on to the conversation of the asker, where it is accepted as a message.
    HandedOn,
    /// It is no longer waited for.
    Withdrawn(FrontName, Marker),
}
