//! Which policies decide, as the command line says it.

use std::path::{Path, PathBuf};

use clap::Args;
use pmk_policy::{SetOverride, Stack};
use pmk_system::error::Failure;

use crate::{
    config::PolicyConfig,
    policies::{Loader, Named},
};

#[derive(Debug, Default, Args)]
pub(super) struct LayerArguments {
    /// A policy that comes with the program, by name, or a component file; several are layers, the last on top
    /// [default: the standard policy alone]
    #[arg(long, value_name = "POLICY")]
    policy: Vec<PathBuf>,

    /// A setting of a policy
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
