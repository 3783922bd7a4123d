//! Parking: a message that cannot be answered is set aside. The person and the admins are told; `sessions parked`
//! lists it, and `sessions retry` takes it up again.

use std::sync::Arc;

use super::Dispatcher;
use pmk_system::error::Failure;

use crate::{ids::InboxId, ledger::TaggedEvent};

impl Dispatcher {
    /// Parks a message. `costs` are the events of what was spent on it in vain. People are told in a separate task.
    /// Returns false if the store cannot do it now and may be able to later: the message stays open. If it never can, the
    /// gateway ends.
    pub(super) async fn park(self: &Arc<Self>, inbox: InboxId, why: &str, costs: Vec<TaggedEvent>) -> bool {
        match self.store.park(inbox, why, costs, self.clock.now_ms()).await {
            Ok(Some(parked)) => {
                tracing::error!(session = parked.key, why, "a message cannot be answered and is parked");
                let dispatcher = Arc::clone(self);
                self.tasks.spawn(async move { dispatcher.tell(inbox).await });
            }
            Ok(None) => {}
            Err(error) if error.is_passing() => {
                if self.is_news(&error.to_string()) {
                    tracing::warn!(%inbox, why, %error, "a message that cannot be answered cannot be parked yet");
                }
                return false;
            }
            Err(error) => {
                tracing::error!(%inbox, why, "a message cannot be answered");
                self.end(Failure::from(error));
            }
        }
        true
    }

    /// Tells people of a message that is still parked, if they were not told yet. If that fails, the next sweep tries
    /// again.
    pub(super) async fn tell(&self, inbox: InboxId) {
        // Not while the message is taken up again: the notice must not replace its answer.
        let _telling = self.telling.lock().await;
        let parked = match self.store.parked_question(inbox).await {
            Ok(Some(parked)) if !parked.told => parked,
            Ok(_) => return,
            Err(error) => {
                tracing::warn!(%error, "cannot read a parked message");
                return;
            }
        };
        if !parked.maybe_told
            && let Err(error) = self.store.parked_may_be_told(inbox).await
        {
            tracing::warn!(%error, "cannot store that somebody may be told of a parked message");
            return;
        }
        let told = self.turns.tell_parked(&parked).await;
        if told && let Err(error) = self.store.parked_told(inbox).await {
            tracing::warn!(%error, "cannot store that somebody was told of a parked message");
        }
    }
}
