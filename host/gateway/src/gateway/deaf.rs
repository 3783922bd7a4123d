//! A host of a shared database that receives nothing from the front can answer nobody, yet it keeps the turns it has
//! begun. If another host is connected, this one ends, so that the other takes over its turns. If none is, they all
//! wait. One that the front lets say nothing waits for other credentials, and leaves to another what one host does for
//! all.

use std::time::Duration;

use tokio::time::Instant;

use crate::{front::Front, store::Store};

const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How long reconnecting may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// Tells the other hosts whether this one is connected and may speak, and waits until it has been disconnected for too
/// long while another host is connected; forever if there is no other.
pub(super) async fn until_others_hear_alone(store: &Store, front: &dyn Front) {
    // No host is connected at its start.
    let (mut deaf_since, mut said) = (None, true);
    loop {
        let is_cut_off = front.connection().is_some_and(|connection| connection.open == 0);
        deaf_since = is_cut_off.then(|| deaf_since.unwrap_or_else(Instant::now));
        let is_deaf = is_cut_off || front.refusal().is_some_and(|refusal| refusal.mutes);
        if is_deaf != said {
            match store.says_deaf(is_deaf).await {
                Ok(()) => said = is_deaf,
                Err(error) => tracing::debug!(%error, "other hosts will learn later whether this one is connected"),
            }
        }
        if deaf_since.is_some_and(|since: Instant| since.elapsed() > PATIENCE)
            && store.others_hear(0).await.unwrap_or(false)
        {
            return;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
