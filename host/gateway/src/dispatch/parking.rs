//! Parking: a message that cannot go on is set aside. The person and the admins are told, it is listed by `sessions
//! parked`, and taken up again by `sessions retry`.

use super::Dispatcher;
use crate::{
    clock,
    error::Failure,
    ledger::Event,
    store::{InboxId, Parked},
};

impl Dispatcher {
    /// Sets a message aside and tells of it. A store that cannot even do that ends the gateway.
    pub(super) async fn park(&self, inbox: InboxId, why: &str) {
        match self.store.park(inbox, why, clock::now_ms()).await {
            Ok(Some(parked)) => {
                tracing::error!(session = parked.key, why, "a message cannot be answered and is parked");
                self.turns.note(Event::TurnParked { session: parked.key.clone(), why: why.to_owned() });
                self.tell(&parked).await;
            }
            Ok(None) => {}
            Err(error) => {
                tracing::error!(%inbox, why, "a message cannot be answered");
                self.end(Failure::from(error));
            }
        }
    }

    /// Tells of a parked message, now or with the next sweep.
    pub(super) async fn tell(&self, parked: &Parked) {
        if !self.turns.tell_parked(parked).await {
            return;
        }
        if let Err(error) = self.store.parked_told(parked.inbox).await {
            tracing::warn!(%error, "that somebody was told of a parked message is not remembered");
        }
    }
}
