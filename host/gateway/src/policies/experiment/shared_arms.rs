//! Arms that all hosts of a database share. The host that begins the experiment first stores its components in the
//! database; the other hosts load those, each under its own gateway.json, instead of their own files. So an arm is the
//! same on whatever host a conversation is answered.

use std::path::Path;

use pmk_system::{error::Failure, threads::offload};

use super::arms::{Arms, Load, Sent};
use crate::{
    config::{ArmConfig, ExperimentConfig, PolicyConfig},
    policies::labelled,
    store::{ExperimentId, SentArm, Store, StoreError},
};

/// Attempts to agree: two hosts that send different arms at once agree at the second.
const TRIES: usize = 5;

/// Why arms were not loaded.
pub(super) enum NotLoaded {
    /// The store could not be used; loading is retried.
    Store(StoreError),
    /// The files here cannot be loaded, and no other host has sent arms.
    Ours(Failure),
    /// What another host has sent cannot or may not be loaded here.
    Theirs(Failure),
}

impl From<StoreError> for NotLoaded {
    fn from(error: StoreError) -> NotLoaded {
        NotLoaded::Store(error)
    }
}

/// The arms of an experiment as the hosts of a database exchange them.
pub struct Shared<'a> {
    pub store: &'a Store,
    /// The home, which the files are relative to.
    pub home: &'a Path,
    pub config: &'a ExperimentConfig,
}

impl Shared<'_> {
    /// Loads the arms that were sent. If none were, loads this host's own and sends them; they then hold for all hosts.
    pub(super) async fn load(&self, load: &Load, base: &PolicyConfig) -> Result<Arms, NotLoaded> {
        let mut theirs = self.sent().await?;
        for _ in 0..TRIES {
            let Some(sent) = self.fetched(&theirs).await? else {
                theirs = self.sent().await?;
                continue;
            };
            let is_whole = self.is_whole(&theirs);
            let (load, config, base) = (load.clone(), self.config.clone(), base.clone());
            let arms = offload(move || Arms::load(&config, &base, &load, &sent)).await;
            let arms = arms.map_err(if is_whole { NotLoaded::Theirs } else { NotLoaded::Ours })?;
            if is_whole {
                return Ok(arms);
            }
            let ours = self.config.arms.iter().filter_map(|arm| {
                let layers = arms.get(&arm.name)?.to_send()?;
                Some((arm.name.clone(), self.files(arm), layers))
            });
            theirs = self.store.send_arms(&self.id(), ours.collect()).await?;
            if theirs.iter().all(|sent| arms.get(&sent.name).is_some_and(|arm| arm.is(&sent.layers))) {
                return Ok(arms);
            }
        }
        Err(NotLoaded::Store(StoreError::Busy { path: self.home.to_owned() }))
    }

    /// Whether hosts have sent all arms that have their own policies.
    pub(super) async fn is_sent(&self) -> bool {
        self.sent().await.is_ok_and(|theirs| self.is_whole(&theirs))
    }

    /// Returns the arms that hosts have sent, with their components, ready to load.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn to_load(&self) -> Result<Sent, StoreError> {
        Ok(self.fetched(&self.sent().await?).await?.unwrap_or_default())
    }

    /// Returns the arms of this experiment that hosts have sent.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn sent(&self) -> Result<Vec<SentArm>, StoreError> {
        let mut theirs = self.store.sent_arms(&self.id()).await?;
        theirs.retain(|sent| self.config.arms.iter().any(|arm| self.is_of(sent, arm)));
        Ok(theirs)
    }

    fn is_whole(&self, theirs: &[SentArm]) -> bool {
        let mut own = self.config.arms.iter().filter(|arm| arm.policy.is_some());
        own.all(|arm| theirs.iter().any(|sent| sent.name == arm.name))
    }

    /// Fetches their components; `None` if one no longer exists.
    async fn fetched(&self, theirs: &[SentArm]) -> Result<Option<Sent>, StoreError> {
        let mut sent = Sent::default();
        for SentArm { name, host, layers, .. } in theirs {
            let Some(components) = self.store.components(layers.clone()).await? else { return Ok(None) };
            sent.insert(name.clone(), labelled(layers, host, components));
        }
        Ok(Some(sent))
    }

    fn is_of(&self, sent: &SentArm, arm: &ArmConfig) -> bool {
        sent.name == arm.name && arm.policy.is_some() && sent.files == self.files(arm)
    }

    /// The files of an arm relative to the home, so that all homes name them alike.
    fn files(&self, arm: &ArmConfig) -> Vec<String> {
        let files = arm.policy.iter().flat_map(|policy| &policy.files);
        files.map(|file| file.strip_prefix(self.home).unwrap_or(file).display().to_string()).collect()
    }

    fn id(&self) -> ExperimentId {
        let start = self.config.start.map(|start| start.to_string()).unwrap_or_default();
        ExperimentId { name: self.config.name.clone(), start }
    }
}
