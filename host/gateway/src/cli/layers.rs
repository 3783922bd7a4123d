//! Which policies decide, as the command line says it.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;
use pmk_policy::{SetOverride, Stack};
use pmk_system::error::Failure;

use super::context::block_on;
use crate::{
    config::{Config, ExperimentConfig, PolicyConfig},
    policies::{
        Loader, Named,
        experiment::{
            arms::{Arms, Load, Sent},
            shared_arms::Shared,
        },
    },
    store::{Place, Store},
};

#[derive(Debug, Default, Args)]
pub(super) struct LayerArguments {
    /// Policy: name of a bundled one or path of a component file; repeat to add layers, the last on top [default: from
    /// gateway.json, otherwise standard alone]
    #[arg(long, value_name = "POLICY")]
    policy: Vec<PathBuf>,

    /// Set a policy setting
    #[arg(long, value_name = "POLICY.NAME=VALUE")]
    set: Vec<SetOverride>,

    /// Refuse components that import anything beyond the contract
    #[arg(long)]
    no_wasi: bool,
}

impl LayerArguments {
    /// Loads the layers. Components named here replace the configured ones.
    pub(super) fn load(&self, home: &Path, config: &PolicyConfig) -> Result<Stack, Failure> {
        self.loader(home)?.start(config)
    }

    /// What loads them, and others later.
    pub(super) fn loader(&self, home: &Path) -> Result<Loader, Failure> {
        Loader::open(home, Named { files: self.policy.clone(), set: self.set.clone(), no_wasi: self.no_wasi })
    }
}

/// Whether the arms of the configured experiment load, as a running gateway would load them that other hosts have sent these.
///
/// # Errors
/// What is wrong with an arm, which it names.
pub(super) fn try_arms(loader: &Loader, config: &Config, sent: &Sent) -> Result<(), Failure> {
    let loader = loader.clone();
    let load: Load = Arc::new(move |policy, origin| loader.arm(policy, origin));
    let experiment = config.experiment.as_ref();
    experiment.map_or(Ok(()), |experiment| Arms::load(experiment, &config.policy, &load, sent).map(drop))
}

/// The arms that a host of the database has sent, where there is one: all go by those, whatever the files here are. What is wrong
/// with the database is found elsewhere.
pub(super) fn sent_arms(experiment: Option<&ExperimentConfig>, place: Place) -> Sent {
    let (Some(experiment), true) = (experiment, place.database.is_some()) else { return Sent::default() };
    let home = place.home.clone();
    let asked = block_on(async {
        let store = Store::open_existing(place)?;
        Ok(Shared { store: &store, home: &home, config: experiment }.to_load().await?)
    });
    asked.unwrap_or_default()
}
