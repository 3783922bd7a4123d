//! What a front notices about the way to people: for the ledger, and where somebody has to act, for the admins.

use std::time::Duration;

use pmk_system::clock;

use crate::{gateway::Gateway, ledger::Event, presence, talk::Notice};

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
            after_silence(gateway, deaf);
        }
        Notice::Malformed { field } => gateway.ledger.note(Event::FrontMalformed { field }),
    }
}

/// What was missed in a long silence is read back at the next beat of the heart.
fn after_silence(gateway: &Gateway, deaf: Duration) {
    if !gateway.config.presence.read_missed || !gateway.front.reaches_absent() {
        return;
    }
    let Some(outage) = presence::owed_after_silence(deaf, clock::now_ms()) else { return };
    let store = gateway.store.clone();
    gateway.tasks.spawn(async move {
        if let Err(error) = store.came_back(outage).await {
            tracing::error!(%error, "what was missed in a silence will not be read back");
        }
    });
}
