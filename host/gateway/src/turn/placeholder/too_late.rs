//! A placeholder that another host cannot know of: this one was stopped while it posted it, and what it was at is done elsewhere
//! by now. Whoever does it has looked for the message in vain, and nothing will ever take its place.

use std::{sync::Arc, time::Duration};

use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::{
    front::FrontError,
    services::Services,
    store::{OpenTurn, StoreError},
};

const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Nobody else will. What ends waits for it for a while, so the waits are short, whatever Slack says.
const ATTEMPTS: u32 = 15;
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Takes the message away once the store says that another one, or none, is the turn's. Only where it could not be stored.
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
                // Whoever has it now may have looked before the message was there.
                _ = store.lost(), if !is_gone => is_gone = true,
                // It is resumed with the turn.
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
                // The try before has done it, though nobody heard of that.
                Err(FrontError::Refused { .. }) if attempt > 1 => return,
                Err(error) => {
                    tracing::warn!(%error, "cannot remove a placeholder");
                    return;
                }
            }
        }
    }
}
