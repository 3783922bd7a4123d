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

use super::variable;
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
        let loaded = Loaded::open(&runtime, files.iter().rev())?;
        loaded.stack(&overrides(&self.set, config), config)
    }
}

/// Policies over the embedded one, the deciding one first, without their settings.
pub(super) struct Loaded {
    layers: Vec<Policy>,
    base: Policy,
}

impl Loaded {
    /// Loads these files over the embedded policy.
    pub(super) fn open<'a>(runtime: &Runtime, files: impl Iterator<Item = &'a PathBuf>) -> Result<Loaded, Failure> {
        let base = Policy::from_bytes(runtime, "standard (embedded)", STANDARD)?;
        let layers = files.map(|file| Policy::load(runtime, file)).collect::<Result<Vec<_>, _>>()?;
        if let Some(stats) = runtime.cache_stats() {
            tracing::debug!(cached = stats.hits, compiled = stats.misses, "policies loaded");
        }
        Ok(Loaded { layers, base })
    }

    /// What the policies call themselves.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.layers.iter().chain([&self.base]).map(Policy::name)
    }

    /// The policies with their settings.
    pub(super) fn stack(self, overrides: &Overrides, config: &PolicyConfig) -> Result<Stack, Failure> {
        overrides.check_policies(self.names())?;
        self.stack_of_some(overrides, config)
    }

    /// The same where settings may be meant for policies of another stack.
    pub(super) fn stack_of_some(self, overrides: &Overrides, config: &PolicyConfig) -> Result<Stack, Failure> {
        let Loaded { layers, base } = self;
        let loaded: Vec<&str> = layers.iter().chain([&base]).map(Policy::name).collect();
        for policy in config.settings.keys().filter(|policy| !loaded.contains(&policy.as_str())) {
            tracing::warn!("gateway.json: `policy.settings.{policy}` has no effect, policy `{policy}` is not loaded");
        }
        let mut warnings = Vec::new();
        let mut layer = |policy: Policy| -> Result<Layer, Failure> {
            let (settings, odd) = Settings::resolve(policy.description(), overrides)?;
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
}

/// What operators set, by command line, environment and gateway.json.
pub(super) fn overrides(set: &[SetOverride], config: &PolicyConfig) -> Overrides {
    let env: BTreeMap<String, String> =
        ENV_SETTINGS.iter().filter_map(|(name, _)| variable(name).map(|value| ((*name).to_owned(), value))).collect();
    Overrides { set: set.to_vec(), env, config: config.settings.clone() }
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
