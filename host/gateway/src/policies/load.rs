//! How components become layers: named by the command line, by gateway.json or by an operator of a running gateway,
//! with the settings that hold for them, over the embedded standard policy.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use pmk_core::{Language, text::hex};
use pmk_policy::{
    Compiler, Layer, Limits, Overrides, Policy, Runtime, RuntimeConfig, SetOverride, Settings, Stack, Trust, Warning,
    compile::CancelFlag, settings::ENV_SETTINGS,
};
use pmk_system::{error::Failure, home};
use sha2::{Digest, Sha256};

use super::loading;
use crate::{
    config::{Config, PolicyConfig},
    embedded,
    stderr::Spinner,
};

/// What the command line says of policies.
#[derive(Clone, Debug, Default)]
pub struct Named {
    /// Components, files or [embedded](crate::embedded) ones, the last on top; they replace the configured ones.
    pub files: Vec<PathBuf>,
    /// Settings, which go before all others.
    pub set: Vec<SetOverride>,
    /// Whether imports beyond the contract are refused, whatever gateway.json says.
    pub no_wasi: bool,
}

/// Where the components of an arm are.
#[derive(Clone, Copy, Debug)]
pub enum Origin<'a> {
    /// Where gateway.json says.
    Files,
    /// Another host has sent them, each with what it is called, the last on top.
    Host(&'a [(String, Vec<u8>)]),
}

/// Loads policies.
#[derive(Clone, Debug)]
pub struct Loader {
    runtime: Runtime,
    named: Named,
    /// What policies write in that say something themselves; their own default where nobody listens to them.
    language: Option<Language>,
}

impl Loader {
    /// Sets up the engine, with compiled components kept in the home.
    ///
    /// # Errors
    /// The system does not let it run.
    pub fn open(home: &Path, named: Named) -> Result<Loader, Failure> {
        Ok(Loader::of(open_runtime(home)?, named))
    }

    /// With this engine.
    pub(super) fn of(runtime: Runtime, named: Named) -> Loader {
        Loader { runtime, named, language: None }
    }

    /// The same for policies of a gateway that speaks this language.
    #[must_use]
    pub fn speaking(self, language: Language) -> Loader {
        Loader { language: Some(language), ..self }
    }

    /// The same for somebody who may stop waiting.
    pub(super) fn until(&self, abandon: &CancelFlag) -> Loader {
        Loader { runtime: self.runtime.until(abandon), ..self.clone() }
    }

    /// What the command line says.
    pub fn named(&self) -> &Named {
        &self.named
    }

    /// The components of a start.
    pub fn files<'a>(&'a self, config: &'a PolicyConfig) -> &'a [PathBuf] {
        if self.named.files.is_empty() { &config.files } else { &self.named.files }
    }

    /// The layers of a start.
    ///
    /// # Errors
    /// As [`load`](Loader::load), and `--set` for a policy that is not among them.
    pub fn start(&self, config: &PolicyConfig) -> Result<Stack, Failure> {
        let stack = self.load(config, self.files(config))?;
        self.check_settings(config, std::slice::from_ref(&stack))?;
        Ok(stack)
    }

    /// Whether every `--set` is meant for a policy of these stacks.
    ///
    /// # Errors
    /// One is not.
    pub fn check_settings(&self, config: &PolicyConfig, stacks: &[Stack]) -> Result<(), Failure> {
        let mut names: Vec<&str> = Vec::new();
        for layer in stacks.iter().flat_map(|stack| stack.layers()) {
            // Every stack has the embedded policy.
            if !names.contains(&layer.policy.name()) {
                names.push(layer.policy.name());
            }
        }
        Ok(self.overrides(config).check_policies(names)?)
    }

    /// Layers of these components, the last on top. Blocks while it compiles.
    ///
    /// # Errors
    /// One cannot be loaded, may not be, or does not take the settings that are meant for it.
    pub fn load(&self, config: &PolicyConfig, files: &[PathBuf]) -> Result<Stack, Failure> {
        self.assemble(config, files, &self.overrides(config))
    }

    /// Layers of components that another host has sent, each with what it is called, the last on top.
    ///
    /// # Errors
    /// As [`load`](Loader::load).
    pub fn take(&self, config: &PolicyConfig, components: &[(String, Vec<u8>)]) -> Result<Stack, Failure> {
        let (stack, odd) = self.sent_layers(config, components, &self.overrides(config))?;
        tell_odd(&odd);
        Ok(stack)
    }

    /// The layers of an arm of an experiment: it is what it says itself, whatever the command line and the environment
    /// say of the policies that serve.
    ///
    /// # Errors
    /// As [`load`](Loader::load); settings of a policy that it has not got.
    pub fn arm(&self, config: &PolicyConfig, from: Origin<'_>) -> Result<Stack, Failure> {
        let overrides = Overrides { language: self.language, config: config.settings.clone(), ..Overrides::default() };
        let (stack, odd) = match from {
            Origin::Files => self.layers(config, &config.files, &overrides),
            Origin::Host(components) => self.sent_layers(config, components, &overrides),
        }?;
        // What serves may have settings of what somebody will load; an arm with such would be compared with itself.
        let is_loaded = |name: &str| stack.layers().iter().any(|layer| layer.policy.name() == name);
        if let Some(idle) = config.settings.keys().find(|name| !is_loaded(name)) {
            let failure = Failure::new(format!("`settings.{idle}` has no effect, policy `{idle}` is not loaded"));
            return Err(failure.hint("add that policy to the arm's `files`, or remove its settings"));
        }
        tell_odd(&odd);
        Ok(stack)
    }

    /// The layers of a start, and what is odd about them: settings of a policy that is not among them, variables that
    /// make no sense.
    ///
    /// # Errors
    /// As [`start`](Loader::start).
    pub fn look(&self, config: &PolicyConfig) -> Result<(Stack, Vec<String>), Failure> {
        let (stack, odd) = self.layers(config, self.files(config), &self.overrides(config))?;
        self.check_settings(config, std::slice::from_ref(&stack))?;
        Ok((stack, odd))
    }

    fn sent_layers(
        &self,
        config: &PolicyConfig,
        components: &[(String, Vec<u8>)],
        overrides: &Overrides,
    ) -> Result<(Stack, Vec<String>), Failure> {
        let load = |theirs: &Runtime| {
            let each = components.iter().rev().map(|(label, bytes)| Policy::from_bytes(theirs, label, bytes));
            Ok(each.collect::<Result<_, _>>()?)
        };
        self.over_the_base(config, load, overrides)
    }

    fn assemble(&self, config: &PolicyConfig, files: &[PathBuf], overrides: &Overrides) -> Result<Stack, Failure> {
        let (stack, odd) = self.layers(config, files, overrides)?;
        if let Some(stats) = self.runtime.cache_stats() {
            tracing::debug!(cached = stats.hits, compiled = stats.misses, "policies loaded");
        }
        tell_odd(&odd);
        Ok(stack)
    }

    fn layers(
        &self,
        config: &PolicyConfig,
        files: &[PathBuf],
        overrides: &Overrides,
    ) -> Result<(Stack, Vec<String>), Failure> {
        let load = |theirs: &Runtime| embedded::layers(files).rev().map(|file| loading::load(theirs, file)).collect();
        self.over_the_base(config, load, overrides)
    }

    /// What is loaded, the top one first, over the embedded policy.
    fn over_the_base(
        &self,
        config: &PolicyConfig,
        load: impl FnOnce(&Runtime) -> Result<Vec<Policy>, Failure>,
        overrides: &Overrides,
    ) -> Result<(Stack, Vec<String>), Failure> {
        let ours = self.runtime.under(config.limits.limits(), Trust::default());
        let waiting = Spinner::when_long("compiling `standard`");
        let base = Policy::from_bytes(&ours, "standard (embedded)", embedded::STANDARD)?;
        drop(waiting);
        let theirs = self.runtime.under(config.limits.limits(), self.trust(config));
        let layers = load(&theirs)?;
        let loaded: Vec<&str> = layers.iter().chain([&base]).map(Policy::name).collect();
        let idle = config.settings.keys().filter(|policy| !loaded.contains(&policy.as_str()));
        let mut odd = Vec::new();
        idle.for_each(|absent| {
            odd.push(format!(
                "gateway.json: `policy.settings.{absent}` has no effect, policy `{absent}` is not loaded"
            ));
        });
        let mut warnings = Vec::new();
        let mut layer = |policy: Policy| -> Result<Layer, Failure> {
            let (settings, warned) = Settings::resolve(policy.description(), overrides)?;
            warnings.extend(warned);
            Ok(Layer { policy: Arc::new(policy), settings })
        };
        let layers = layers.into_iter().map(&mut layer).collect::<Result<Vec<_>, _>>()?;
        let stack = Stack::new(layers, layer(base)?);
        odd.extend(Warning::merge(warnings).iter().map(ToString::to_string));
        Ok((stack, odd))
    }

    /// Whether layers that were loaded before may still decide: the operator may have thought better of it.
    ///
    /// # Errors
    /// One of them would not be loaded now.
    pub fn admit(&self, config: &PolicyConfig, stack: &Stack) -> Result<(), Failure> {
        let trust = self.trust(config);
        let above_the_base = &stack.layers()[..stack.layers().len().saturating_sub(1)];
        Ok(above_the_base.iter().try_for_each(|layer| layer.policy.admitted_by(&trust))?)
    }

    fn trust(&self, config: &PolicyConfig) -> Trust {
        Trust { allow: allowed(config), wasi: !(self.named.no_wasi || config.no_wasi) }
    }

    fn overrides(&self, config: &PolicyConfig) -> Overrides {
        let set_in_environment = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
        let env: BTreeMap<String, String> = ENV_SETTINGS
            .iter()
            .filter_map(|(name, _)| set_in_environment(name).map(|value| ((*name).to_owned(), value)))
            .collect();
        Overrides { set: self.named.set.clone(), env, language: self.language, config: config.settings.clone() }
    }
}

fn tell_odd(odd: &[String]) {
    for odd in odd {
        tracing::warn!("{odd}");
    }
}

/// The digests that `policy.allow` names; `None` where any will do.
fn allowed(config: &PolicyConfig) -> Option<BTreeSet<String>> {
    // What is under all others is allowed from a file, too.
    let standard = hex(&Sha256::digest(embedded::STANDARD));
    let allow = config.allow.as_ref()?;
    Some(allow.iter().map(|it| it.to_ascii_lowercase()).chain([standard]).collect())
}

/// The engine of an author's desk: `policy.allow` of the home holds there as in a gateway, and what compiling may use,
/// for a component that is only looked at is compiled and run as well. What a decision may use is the default.
///
/// # Errors
/// gateway.json cannot be read, or the system does not let the engine run.
pub fn open_for_authoring(home: &Path) -> Result<Runtime, Failure> {
    let (config, _) = Config::load(home)?;
    let runtime = open_runtime(home)?;
    let limits = Limits { compile: config.policy.limits.limits().compile, ..Limits::default() };
    Ok(runtime.under(limits, Trust { allow: allowed(&config.policy), ..Trust::default() }))
}

/// The engine, with compiled components kept in the home where there is one: who only looks at a policy makes none.
///
/// # Errors
/// The system does not let it run.
fn open_runtime(home: &Path) -> Result<Runtime, Failure> {
    let cache_dir = home.is_dir().then(|| home::compile_cache_dir(home));
    Ok(Runtime::new(RuntimeConfig { cache_dir, ..RuntimeConfig::new(Compiler::Child) })?)
}
