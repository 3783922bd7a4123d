//! Which policies decide: `--policy` and `--set`, the environment and gateway.json, turned into layers
//! over the embedded standard policy.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;
use pmk_policy::{
    Layer, LoadError, Overrides, Policy, Runtime, RuntimeConfig, SetOverride, Settings, Stack, Warning,
    settings::ENV_SETTINGS,
};

use super::{loading, variable};
use crate::{config::PolicyConfig, error::Failure, home};

/// The policy under all others.
const STANDARD: &[u8] = include_bytes!("../../../../plugins/standard.wasm");

#[derive(Debug, Args)]
pub(super) struct LayerArguments {
    /// A policy component; several are layers, the last on top [default: the standard policy alone]
    #[arg(long, value_name = "FILE")]
    policy: Vec<PathBuf>,

    /// A setting of a policy
    #[arg(long, value_name = "POLICY.NAME=VALUE")]
    set: Vec<SetOverride>,
}

impl LayerArguments {
    /// Loads the layers. Components named here replace the configured ones.
    pub(super) fn load(&self, home: &Path, config: &PolicyConfig) -> Result<Stack, Failure> {
        let runtime = open_runtime(home)?;
        let files = if self.policy.is_empty() { &config.files } else { &self.policy };
        let overrides = self.overrides(config);
        let base = Policy::from_bytes(&runtime, "standard (embedded)", STANDARD)?;
        let layers = files.iter().rev().map(|file| loading::load(&runtime, file)).collect::<Result<Vec<_>, _>>()?;
        let loaded: Vec<&str> = layers.iter().chain([&base]).map(Policy::name).collect();
        overrides.check_policies(loaded.iter().copied())?;
        for policy in config.settings.keys().filter(|policy| !loaded.contains(&policy.as_str())) {
            tracing::warn!("gateway.json: `policy.settings.{policy}` has no effect, policy `{policy}` is not loaded");
        }
        if let Some(stats) = runtime.cache_stats() {
            tracing::debug!(cached = stats.hits, compiled = stats.misses, "policies loaded");
        }
        let mut warnings = Vec::new();
        let mut layer = |policy: Policy| -> Result<Layer, Failure> {
            let (settings, odd) = Settings::resolve(policy.description(), &overrides)?;
            warnings.extend(odd);
            Ok(Layer { policy: Arc::new(policy), settings })
        };
        let layers = layers.into_iter().map(&mut layer).collect::<Result<Vec<_>, _>>()?;
        let stack = Stack::new(layers, layer(base)?);
        for warning in Warning::merge(warnings) {
            tracing::warn!("{warning}");
        }
        Ok(stack)
    }

    fn overrides(&self, config: &PolicyConfig) -> Overrides {
        let env: BTreeMap<String, String> = ENV_SETTINGS
            .iter()
            .filter_map(|(name, _)| variable(name).map(|value| ((*name).to_owned(), value)))
            .collect();
        Overrides { set: self.set.clone(), env, config: config.settings.clone() }
    }
}

/// The engine, with compiled components kept in the home.
pub(super) fn open_runtime(home: &Path) -> Result<Runtime, Failure> {
    let config = RuntimeConfig { cache_dir: Some(home::compile_cache_dir(home)), ..RuntimeConfig::default() };
    Ok(Runtime::new(config)?)
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        let failure = Failure::new(&error);
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

impl From<pmk_policy::SettingError> for Failure {
    fn from(error: pmk_policy::SettingError) -> Self {
        let failure = Failure::new(&error);
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}
