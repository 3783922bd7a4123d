//! A host of a database that hears nothing from where people talk can answer nobody, and keeps what it has begun. Where another
//! host hears, it goes: what it was at is done there. Where none does, they all wait.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use crate::services::Services;

const LOOK_EVERY: Duration = Duration::from_secs(1);

/// So long it may take to be connected again.
const PATIENCE: Duration = Duration::from_secs(20);

/// Tells the others whether it hears, and waits until it has heard nothing for too long while another hears; for ever where there is
/// no other.
pub(super) async fn until_others_hear_alone(services: Arc<Services>) {
    let (store, front) = (&services.store, &services.front);
    // Nobody hears before being connected.
    let (mut deaf_since, mut said) = (None, true);
    loop {
        let is_deaf = front.connection().is_some_and(|connection| connection.open == 0);
        deaf_since = is_deaf.then(|| deaf_since.unwrap_or_else(Instant::now));
        if is_deaf != said {
            match store.says_deaf(is_deaf).await {
                Ok(()) => said = is_deaf,
                Err(error) => tracing::debug!(%error, "other hosts will learn later whether this one is connected"),
            }
        }
        if deaf_since.is_some_and(|since: Instant| since.elapsed() > PATIENCE)
            && store.others_hear().await.unwrap_or(false)
        {
            return;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
