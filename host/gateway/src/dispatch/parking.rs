//! Parking: a message that cannot go on is set aside. The person and the admins are told, it is listed by `sessions
//! parked`, and taken up again by `sessions retry`.

use std::sync::Arc;

use super::Dispatcher;
use pmk_system::error::Failure;

use crate::ids::InboxId;

impl Dispatcher {
    /// Sets a message aside; who is to know of it is told beside whatever comes next. A store that cannot even do that
    /// ends the gateway.
    pub(super) async fn park(self: &Arc<Self>, inbox: InboxId, why: &str) {
        match self.store.park(inbox, why, self.clock.now_ms()).await {
            Ok(Some(parked)) => {
                tracing::error!(session = parked.key, why, "a message cannot be answered and is parked");
                let dispatcher = Arc::clone(self);
                self.tasks.spawn(async move { dispatcher.tell(inbox).await });
            }
            Ok(None) => {}
            Err(error) => {
                tracing::error!(%inbox, why, "a message cannot be answered");
                self.end(Failure::from(error));
            }
        }
    }

    /// Tells of a message that is parked still and of which nobody was told; where that does not work, the next sweep
    /// does it.
    pub(super) async fn tell(&self, inbox: InboxId) {
        // Not beside anybody who takes it up: what is said must not take the place of its answer.
        let _telling = self.telling.lock().await;
        let told = match self.store.parked_question(inbox).await {
            Ok(Some(parked)) if !parked.told => self.turns.tell_parked(&parked).await,
            Ok(_) => return,
            Err(error) => {
                tracing::warn!(%error, "cannot read a parked message");
                return;
            }
        };
        if told && let Err(error) = self.store.parked_told(inbox).await {
            tracing::warn!(%error, "cannot store that somebody was told of a parked message");
        }
    }
}
