//! Adopts what other hosts on the same database learn about the model: each stores it with its turns and continues from
//! what is stored.

use std::{sync::Arc, time::Duration};

use crate::{services::Services, store::StoreError};

const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Adopts it periodically, for as long as it is polled.
pub(super) async fn keep_adopting(services: Arc<Services>) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        if services.store.has_other_hosts()
            && let Err(error) = adopt(&services).await
        {
            tracing::debug!(%error, "cannot read now what other hosts have learned of the model");
        }
    }
}

pub(super) async fn adopt(Services { store, model, calibrator, preambles, .. }: &Services) -> Result<(), StoreError> {
    let learnt = store.calibration(model.provider(), model.name()).await?;
    calibrator.known().adopt(learnt.fit, &learnt.bounds);
    preambles.adopt(store.takes_tools(model.provider(), model.name()).await?);
    Ok(())
}
