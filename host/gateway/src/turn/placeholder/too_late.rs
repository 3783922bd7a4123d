//! Removes a placeholder that another host cannot know of. This host was suspended while it posted the message, and
//! another host has taken over the turn meanwhile. That host has searched for the message in vain, so nothing would
//! ever replace it.

use std::{sync::Arc, time::Duration};

use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::{
    front::FrontError,
    services::Services,
    store::{OpenTurn, StoreError},
};

const LOOK_EVERY: Duration = Duration::from_millis(500);

/// No other host retries this. Shutdown waits only a while for it, so the pauses are short, whatever
/// Slack says.
const ATTEMPTS: u32 = 15;
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Removes the message once the store says that the turn has another placeholder, or none. Does nothing if the
/// placeholder was stored.
pub(super) fn take_back<Placed>(
    services: &Services,
    turn: &OpenTurn,
    (id, unknown): (&str, TaskTrackerToken),
    placed: Placed,
) -> impl Future<Output = ()> + Send + use<Placed>
where
    Placed: Future<Output = Result<(), StoreError>> + Send,
{
    let (store, front, stop) = (services.store.clone(), Arc::clone(&services.front), services.stop.clone());
    let (turn, reply_to, id) = (turn.turn, turn.inbound.reply_to.clone(), id.to_owned());
    async move {
        let _unknown = unknown;
        let mut is_gone = match placed.await {
            Ok(()) => return,
            Err(error) => error.is_lost(),
        };
        loop {
            match store.goes_without(turn, &id).await {
                Ok(Some(true)) => break,
                Ok(Some(false)) => return,
                Ok(None) | Err(_) => {}
            }
            tokio::select! {
                biased;
                // The host that has the turn now may have searched before the message was there.
                _ = store.lost(), if !is_gone => is_gone = true,
                // The placeholder is resumed with the turn.
                () = stop.cancelled(), if !is_gone => return,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
        for attempt in 1.. {
            match front.take_back(&reply_to, &id).await {
                Ok(()) => {
                    tracing::info!("removing a placeholder that came too late: another host answers");
                    return;
                }
                Err(FrontError::Transient { retry_after, .. }) if attempt < ATTEMPTS => {
                    tokio::time::sleep(retry_after.unwrap_or(LOOK_EVERY).min(LONGEST_WAIT)).await;
                }
                // The previous attempt has removed it, though its response was lost.
                Err(FrontError::Refused { .. }) if attempt > 1 => return,
                Err(error) => {
                    tracing::warn!(%error, "cannot remove a placeholder");
                    return;
                }
            }
        }
    }
}
