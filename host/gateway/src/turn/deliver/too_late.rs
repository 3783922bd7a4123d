//! A placeholder that another host cannot know of: this one was stopped while it posted it, and what it was at is done elsewhere
//! by now. Whoever does it has looked for the message in vain, and nothing will ever take its place.

use std::{sync::Arc, time::Duration};

use crate::{
    dispatch::DRAIN_TIME,
    services::Services,
    store::{OpenTurn, StoreError},
};

/// A little sooner than the gateway ends, for that is what it does when another host is at its work.
const WAIT_MOST: Duration = Duration::from_secs(DRAIN_TIME.as_secs() - 5);
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Takes the message away once the store says that another one, or none, is the turn's. Only where it could not be stored.
pub(super) fn take_back<Placed>(
    services: &Services,
    turn: &OpenTurn,
    id: &str,
    placed: Placed,
) -> impl Future<Output = ()> + Send + use<Placed>
where
    Placed: Future<Output = Result<(), StoreError>> + Send,
{
    let (store, front) = (services.store.clone(), Arc::clone(&services.front));
    let (turn, reply_to, id) = (turn.turn, turn.inbound.reply_to.clone(), id.to_owned());
    let nobody_knows_it = {
        let id = id.clone();
        async move {
            loop {
                if let Ok(Some(does)) = store.goes_without(turn, &id).await {
                    return does;
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
        }
    };
    async move {
        if placed.await.is_ok() || tokio::time::timeout(WAIT_MOST, nobody_knows_it).await != Ok(true) {
            return;
        }
        match front.withdraw(&reply_to, &id).await {
            Ok(()) => tracing::info!("a placeholder came too late and is taken away: another host answers"),
            Err(error) => tracing::warn!(%error, "a placeholder cannot be taken away"),
        }
    }
}
