//! The configuration of `mra`, from the environment and gateway.json.

use std::{path::PathBuf, time::Duration};

use pmk_knowledge::find_workspace;
use pmk_system::child;

use super::arguments::variable;
use crate::{
    config::{Config, MraConfig},
    mra,
};

/// Returns the folder of the repositories: from the environment, or else the file, or else the working directory.
pub(super) fn workspace(config: &Config) -> Option<PathBuf> {
    let configured = variable("PMK_MRA_WORKSPACE").map(PathBuf::from).or_else(|| config.mra_workspace.clone());
    find_workspace(configured, &std::env::current_dir().unwrap_or_default())
}

/// Returns how `mra` is called in the workspace of this configuration.
pub(super) fn config(config: &Config) -> mra::Config {
    let MraConfig { command, environment, time_limit_seconds } = &config.mra;
    let mut words = command.iter().map(Into::into);
    let named = environment.iter().map(String::as_str);
    mra::Config {
        program: words.next().unwrap_or_default(),
        arguments: words.collect(),
        workspace: config.mra_workspace.clone(),
        environment: child::inherit(mra::INHERITED.into_iter().chain(named)),
        time_limit: Duration::from_secs_f64(*time_limit_seconds),
    }
}
