//! The policy options of the command line.

use std::path::{Path, PathBuf};

use clap::Args;
use pmk_policy::{SetOverride, Stack};
use pmk_system::error::Failure;

use super::context::block_on;
use crate::{
    config::{Config, ExperimentConfig, PolicyConfig},
    embedded,
    policies::{
        Loader, Named, Origin,
        experiment::{arms::Sent, shared_arms::Shared},
    },
    store::{Place, Store},
};

#[derive(Debug, Default, Args)]
pub(super) struct LayerArguments {
    /// Policy: name of a built-in one or path of a component file; repeat to add layers, the last on top [default: from
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

/// Returns everything that keeps arms of the configured experiment from taking part in a gateway to which other hosts
/// have sent these arms; each failure names its arm. Also returns whether everything was checked: which settings are for
/// other policies can only be told of an arm that loads.
pub(super) fn look_at_arms(loader: &Loader, config: &Config, sent: &Sent) -> (Vec<Failure>, bool) {
    let (mut failures, mut is_complete) = (vec![], true);
    for arm in config.experiment.iter().flat_map(|experiment| &experiment.arms) {
        let Some(policy) = &arm.policy else { continue };
        let policy = policy.over(&config.policy);
        let looked = match sent.get(&arm.name) {
            Some(components) => match loader.arm(&policy, Origin::Host(components)) {
                Ok(_) => Ok(vec![]),
                Err(failure) => Err(vec![failure]),
            },
            None => loader.look_at_arm(&policy),
        };
        is_complete &= looked.is_ok();
        let (Ok(found) | Err(found)) = looked;
        failures.extend(found.into_iter().map(|failure| {
            let (what, hint) = failure.into_parts();
            let of_arm = Failure::new(format!("arm `{}`: {what}", arm.name));
            match hint {
                Some(hint) => of_arm.hint(hint),
                None => of_arm,
            }
        }));
    }
    (failures, is_complete)
}

/// Returns the arms that a host of the database has sent, if there is a database: they take precedence over the files
/// here.
///
/// # Errors
/// The database cannot be asked.
pub(super) fn sent_arms(experiment: Option<&ExperimentConfig>, place: Place) -> Result<Sent, Failure> {
    let (Some(experiment), true) = (experiment, place.database.is_some()) else { return Ok(Sent::default()) };
    let home = place.home.clone();
    let Some(store) = Store::open_if_any(place)? else { return Ok(Sent::default()) };
    block_on(async { Ok(Shared { store: &store, home: &home, config: experiment }.to_load().await?) })
}
