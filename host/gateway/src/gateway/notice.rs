//! What a front reports about its connection: for the ledger and, if somebody has to act, for the admins.

use std::time::Duration;

use crate::{chat::Notice, ledger::Event, presence, services::Services};

/// Notes a notice in the ledger, and tells the admins if they must act.
pub(super) fn take(services: &Services, notice: Notice) {
    match notice {
        Notice::Refused { what, hint } => {
            services.admins.tell(services.messages.front_refused(&what, &hint));
            services.ledger.note(Event::FrontRefused { reason: what });
        }
        Notice::Accepted => {
            services.admins.tell(services.messages.front_accepted());
            services.ledger.note(Event::FrontAccepted);
        }
        Notice::ConnectedAgain { deaf, late } => {
            let deaf_ms = u64::try_from(deaf.as_millis()).unwrap_or(u64::MAX);
            services.ledger.note(Event::FrontConnectedAgain { deaf_ms, late });
            after_silence(services, deaf);
        }
        Notice::Malformed { field } => services.ledger.note(Event::FrontMalformed { field }),
    }
}

/// Has the messages missed in a long silence read back at the next heartbeat.
fn after_silence(services: &Services, deaf: Duration) {
    if !services.config.presence.read_missed || !services.front.reaches_absent() {
        return;
    }
    let Some(outage) = presence::owed_after_silence(deaf, services.now_ms()) else { return };
    let store = services.store.clone();
    services.tasks.spawn(async move {
        if let Err(error) = store.came_back(outage).await {
            tracing::error!(%error, "messages missed during the silence will not be read back");
        }
    });
}
