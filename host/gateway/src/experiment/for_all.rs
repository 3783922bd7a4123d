//! Of several hosts all go by the same arms: the components of whoever has begun the experiment first go along in the database, and
//! the others load those, each by its own gateway.json, whatever lies where it names files. So an arm is one thing wherever a
//! conversation is answered.

use std::path::Path;

use pmk_system::{error::Failure, threads::offload};

use super::{
    arms::{Arms, Load, Sent},
    live::Ports,
};
use crate::{
    config::{ArmConfig, ExperimentConfig, PolicyConfig},
    policies::labelled,
    store::{ExperimentId, SentArm, Store, StoreError},
};

/// Two hosts that send different arms at once agree at the second try.
const TRIES: usize = 5;

/// Why arms are not loaded.
pub(super) enum NotLoaded {
    /// It is tried again.
    Store(StoreError),
    /// Files here are no good, and nobody has sent others.
    Ours(Failure),
    /// What another host has sent may not be loaded here, or cannot.
    Theirs(Failure),
}

impl From<StoreError> for NotLoaded {
    fn from(error: StoreError) -> NotLoaded {
        NotLoaded::Store(error)
    }
}

/// The arms that were sent; where nobody has, this host's own, which from now on are those of all.
pub(super) async fn load(ports: &Ports, config: &ExperimentConfig, base: &PolicyConfig) -> Result<Arms, NotLoaded> {
    let Ports { store, load, watched, .. } = ports;
    let (home, of) = (watched.home(), id(config));
    let mut theirs = store.sent_arms(&of).await?;
    for _ in 0..TRIES {
        let Some(sent) = fetched(store, config, home, &theirs).await? else {
            theirs = store.sent_arms(&of).await?;
            continue;
        };
        let is_sent = is_all(config, &sent);
        let arms = loaded(load, config, base, sent).await;
        let arms = arms.map_err(if is_sent { NotLoaded::Theirs } else { NotLoaded::Ours })?;
        if is_sent {
            return Ok(arms);
        }
        let ours = config.arms.iter().filter_map(|arm| {
            let layers = arms.get(&arm.name)?.to_send()?;
            Some((arm.name.clone(), files(arm, home), layers))
        });
        match store.send_arms(&of, ours.collect()).await? {
            None => return Ok(arms),
            Some(others) => theirs = others,
        }
    }
    Err(NotLoaded::Store(StoreError::Busy { path: home.to_owned() }))
}

/// Whether hosts have sent all that has policies of its own.
pub(super) async fn is_sent(ports: &Ports, config: &ExperimentConfig) -> bool {
    let theirs = ports.store.sent_arms(&id(config)).await.unwrap_or_default();
    let is_there = |arm: &ArmConfig| theirs.iter().any(|sent| is_of(sent, arm, ports.watched.home()));
    config.arms.iter().filter(|arm| arm.policy.is_some()).all(is_there)
}

/// The arms of an experiment that hosts have sent.
///
/// # Errors
/// The store cannot be read.
pub async fn sent(store: &Store, config: &ExperimentConfig, home: &Path) -> Result<Sent, StoreError> {
    let theirs = store.sent_arms(&id(config)).await?;
    Ok(fetched(store, config, home, &theirs).await?.unwrap_or_default())
}

/// An arm of an experiment as a host has sent it.
///
/// # Errors
/// The store cannot be read.
pub async fn sent_arm(
    store: &Store,
    config: &ExperimentConfig,
    name: &str,
    home: &Path,
) -> Result<Option<SentArm>, StoreError> {
    let Some(arm) = config.arm(name) else { return Ok(None) };
    let theirs = store.sent_arms(&id(config)).await?;
    Ok(theirs.into_iter().find(|sent| is_of(sent, arm, home)))
}

/// The components of those that the experiment has; nothing where one is gone again.
async fn fetched(
    store: &Store,
    config: &ExperimentConfig,
    home: &Path,
    theirs: &[SentArm],
) -> Result<Option<Sent>, StoreError> {
    let mut sent = Sent::default();
    for theirs in theirs.iter().filter(|sent| config.arms.iter().any(|arm| is_of(sent, arm, home))) {
        let SentArm { name, host, layers, .. } = theirs;
        let Some(components) = store.components(layers.clone()).await? else { return Ok(None) };
        sent.insert(name.clone(), labelled(layers, host, components));
    }
    Ok(Some(sent))
}

async fn loaded(load: &Load, config: &ExperimentConfig, base: &PolicyConfig, sent: Sent) -> Result<Arms, Failure> {
    let (load, config, base) = (load.clone(), config.clone(), base.clone());
    offload(move || Arms::load_sent(&config, &base, &load, &sent)).await
}

fn id(config: &ExperimentConfig) -> ExperimentId {
    let start = config.start.map(|start| start.to_string()).unwrap_or_default();
    ExperimentId { name: config.name.clone(), start }
}

fn is_all(config: &ExperimentConfig, sent: &Sent) -> bool {
    config.arms.iter().filter(|arm| arm.policy.is_some()).all(|arm| sent.contains_key(&arm.name))
}

fn is_of(sent: &SentArm, arm: &ArmConfig, home: &Path) -> bool {
    sent.name == arm.name && arm.policy.is_some() && sent.files == files(arm, home)
}

/// The files of an arm as all homes name them.
fn files(arm: &ArmConfig, home: &Path) -> Vec<String> {
    let files = arm.policy.iter().flat_map(|policy| &policy.files);
    files.map(|file| file.strip_prefix(home).unwrap_or(file).display().to_string()).collect()
}
