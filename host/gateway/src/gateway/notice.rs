//! What a front reports about its connection: for the ledger and, if somebody has to act, for the admins.

use std::time::Duration;

use crate::{
    chat::{Notice, Refusal},
    ledger::Event,
    presence,
    services::Services,
};

/// Notes a notice in the ledger, and tells the admins if they must act.
pub(super) fn take(services: &Services, notice: Notice) {
    match notice {
        Notice::Refused(Refusal { what, hint, mutes }) => {
            // Otherwise they are told once anything arrives again.
            if !mutes {
                services.admins.tell(services.messages.front_refused(&what, &hint));
            }
            services.ledger.note(Event::FrontRefused { reason: what });
        }
        Notice::Accepted { muted } => {
            services.admins.tell(services.messages.front_accepted(muted));
            services.ledger.note(Event::FrontAccepted);
        }
        Notice::ConnectedAgain { deaf, late } => {
            let deaf_ms = u64::try_from(deaf.as_millis()).unwrap_or(u64::MAX);
            services.ledger.note(Event::FrontConnectedAgain { deaf_ms, late });
        }
        Notice::MayHaveMissed { since } => owe_reading(services, since),
        Notice::Malformed { field } => services.ledger.note(Event::FrontMalformed { field }),
    }
}

/// Has the messages that may be missing read back at the next heartbeat, or by the next run. While the store cannot
/// note that, this is tried again.
fn owe_reading(services: &Services, since: Duration) {
    if !services.config.presence.read_missed || !services.front.reaches_absent() {
        return;
    }
    let outage = presence::owed_after_silence(since, services.now_ms());
    let (store, stop) = (services.store.clone(), services.stop.clone());
    services.tasks.spawn(async move {
        while let Err(error) = store.came_back(outage.clone()).await {
            tracing::warn!(%error, "cannot note yet that messages may have been missed; retrying");
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = tokio::time::sleep(presence::BEAT_EVERY) => {}
            }
        }
    });
}
