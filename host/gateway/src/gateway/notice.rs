//! What a front notices about the way to people: for the ledger, and where somebody has to act, for the admins.

use crate::{front::Notice, gateway::Gateway, ledger::Event};

/// Remembers a notice, and tells the admins what is theirs to mend.
pub(super) fn take(gateway: &Gateway, notice: Notice) {
    match notice {
        Notice::Refused { what, hint } => {
            gateway.tell_admins(gateway.say.front_refused(&what, &hint));
            gateway.ledger.note(Event::FrontRefused { reason: what });
        }
        Notice::Accepted => {
            gateway.tell_admins(gateway.say.front_accepted());
            gateway.ledger.note(Event::FrontAccepted);
        }
        Notice::ConnectedAgain { deaf, late } => {
            let deaf_ms = u64::try_from(deaf.as_millis()).unwrap_or(u64::MAX);
            gateway.ledger.note(Event::FrontConnectedAgain { deaf_ms, late });
        }
        Notice::Malformed { field } => gateway.ledger.note(Event::FrontMalformed { field }),
    }
}
