//! Of several hosts all go by the same arms: the components of whoever has begun the experiment first go along in the database, and
//! the others load those, each by its own gateway.json, whatever lies where it names files. So an arm is one thing wherever a
//! conversation is answered.

use pmk_system::{error::Failure, threads::offload};

use super::{
    arms::{Arms, Load, Sent},
    live::Ports,
};
use crate::{
    config::{ExperimentConfig, PolicyConfig},
    policies::labelled,
    store::{SentArms, Store, StoreError},
};

/// Why arms are not loaded.
pub(super) enum NotLoaded {
    Store(StoreError),
    /// The files here are no good.
    Ours(Failure),
    /// What another host has sent may not be loaded here, or cannot.
    Theirs(Failure),
}

impl From<StoreError> for NotLoaded {
    fn from(error: StoreError) -> NotLoaded {
        NotLoaded::Store(error)
    }
}

/// The arms that were sent; or this host's own, which from now on are those of all.
pub(super) async fn load(ports: &Ports, config: &ExperimentConfig, base: &PolicyConfig) -> Result<Arms, NotLoaded> {
    let Ports { store, load, .. } = ports;
    let theirs = match store.sent_arms(&config.name).await? {
        Some(theirs) => theirs,
        None => {
            let ours = loaded(load, config, base, Sent::default()).await.map_err(NotLoaded::Ours)?;
            match store.send_arms(&config.name, ours.to_send()).await? {
                None => return Ok(ours),
                Some(theirs) => theirs,
            }
        }
    };
    let theirs = fetched(store, theirs).await?;
    loaded(load, config, base, theirs).await.map_err(NotLoaded::Theirs)
}

async fn fetched(store: &Store, SentArms { host, arms, .. }: SentArms) -> Result<Sent, StoreError> {
    let mut sent = Sent::default();
    for arm in arms {
        // What is gone again is looked for in the files.
        if let Some(components) = store.components(arm.layers.clone()).await? {
            sent.insert(arm.name, labelled(&arm.layers, &host, components));
        }
    }
    Ok(sent)
}

async fn loaded(load: &Load, config: &ExperimentConfig, base: &PolicyConfig, sent: Sent) -> Result<Arms, Failure> {
    let (load, config, base) = (load.clone(), config.clone(), base.clone());
    offload(move || Arms::load_sent(&config, &base, &load, &sent)).await
}
