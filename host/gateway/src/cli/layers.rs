//! The policy options of the command line.

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
    embedded,
    policies::{
        Loader, Named,
        experiment::{
            arms::{Arms, Load, Sent},
            shared_arms::Shared,
        },
    },
    store::{Place, Store, StoreError},
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
    /// Returns these options as words of a command that may be run in another folder.
    pub(super) fn words(&self) -> Vec<String> {
        let files = self.policy.iter().map(|file| {
            let file = embedded::absolute(file).unwrap_or_else(|_| file.clone());
            ["--policy".to_owned(), file.display().to_string()]
        });
        let set = self
            .set
            .iter()
            .map(|SetOverride { policy, name, value }| ["--set".to_owned(), format!("{policy}.{name}={value}")]);
        files.chain(set).flatten().chain(self.no_wasi.then(|| "--no-wasi".to_owned())).collect()
    }

    /// Loads the layers. Components named here replace the configured ones.
    pub(super) fn load(&self, home: &Path, config: &PolicyConfig) -> Result<Stack, Failure> {
        self.loader(home)?.start(config)
    }

    /// Returns the loader, which can also load others later.
    pub(super) fn loader(&self, home: &Path) -> Result<Loader, Failure> {
        Loader::open(home, Named { files: self.policy.clone(), set: self.set.clone(), no_wasi: self.no_wasi })
    }
}

/// Checks that the arms of the configured experiment load, as they would in a running gateway to which other hosts have
/// sent these arms.
///
/// # Errors
/// What is wrong with an arm; the error names the arm.
pub(super) fn try_arms(loader: &Loader, config: &Config, sent: &Sent) -> Result<(), Failure> {
    let loader = loader.clone();
    let load: Load = Arc::new(move |policy, origin| loader.arm(policy, origin));
    let experiment = config.experiment.as_ref();
    experiment.map_or(Ok(()), |experiment| Arms::load(experiment, &config.policy, &load, sent).map(drop))
}

/// Returns the arms that a host of the database has sent, if there is a database: they take precedence over the files
/// here.
///
/// # Errors
/// The database cannot be asked.
pub(super) fn sent_arms(experiment: Option<&ExperimentConfig>, place: Place) -> Result<Sent, Failure> {
    let (Some(experiment), true) = (experiment, place.database.is_some()) else { return Ok(Sent::default()) };
    let home = place.home.clone();
    block_on(async {
        match Store::open_existing(place) {
            Ok(store) => Ok(Shared { store: &store, home: &home, config: experiment }.to_load().await?),
            Err(StoreError::Missing { .. }) => Ok(Sent::default()),
            Err(error) => Err(error.into()),
        }
    })
}
