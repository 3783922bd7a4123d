//! Loads components into layers: those named on the command line, in gateway.json or by an operator of a running
//! gateway, with the settings that apply to them, over the embedded standard policy.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use pmk_core::{Language, text::hex};
use pmk_policy::{
    Compiler, ConfiguredSettings, Identity, Layer, Overrides, Policy, Runtime, RuntimeConfig, SetOverride, Settings,
    Stack, Trust, Warning, compile::CancelFlag, settings::ENV_SETTINGS,
};
use pmk_system::{error::Failure, home};
use sha2::{Digest, Sha256};

use super::{
    loading,
    overridden::{Overridden, overridden},
};
use crate::{
    config::{Config, PolicyConfig},
    embedded,
    stderr::Spinner,
};

/// The policy options of the command line.
#[derive(Clone, Debug, Default)]
pub struct Named {
    /// Components, files or [embedded](crate::embedded) ones, the top one last; they replace the configured ones.
    pub files: Vec<PathBuf>,
    /// Settings, which take precedence over all others.
    pub set: Vec<SetOverride>,
    /// Whether imports beyond the contract are refused, whatever gateway.json says.
    pub no_wasi: bool,
}

/// Where the components of an arm come from.
#[derive(Clone, Copy, Debug)]
pub enum Origin<'a> {
    /// The files that gateway.json names.
    Files,
    /// Components that are at hand, each with its label, the top one last: another host has sent them, or they served
    /// before.
    Host(&'a [(String, Vec<u8>)]),
}

/// Loads policies.
#[derive(Clone, Debug)]
pub struct Loader {
    runtime: Runtime,
    named: Named,
    /// The language of the text that policies write themselves; `None` leaves each policy its own default.
    language: Option<Language>,
}

impl Loader {
    /// Sets up the engine, with compiled components cached in the home.
    ///
    /// # Errors
    /// The system does not let the engine run.
    pub fn open(home: &Path, named: Named) -> Result<Loader, Failure> {
        Ok(Loader::of(open_runtime(home)?, named))
    }

    /// Creates a loader with this engine.
    pub(super) fn of(runtime: Runtime, named: Named) -> Loader {
        Loader { runtime, named, language: None }
    }

    /// Sets the language that the gateway speaks.
    #[must_use]
    pub fn speaking(self, language: Language) -> Loader {
        Loader { language: Some(language), ..self }
    }

    /// Returns a loader whose loading stops when this flag is set.
    pub(super) fn until(&self, abandon: &CancelFlag) -> Loader {
        Loader { runtime: self.runtime.until(abandon), ..self.clone() }
    }

    /// Returns the options of the command line.
    pub fn named(&self) -> &Named {
        &self.named
    }

    /// Returns the components that a start loads.
    pub fn files<'a>(&'a self, config: &'a PolicyConfig) -> &'a [PathBuf] {
        if self.named.files.is_empty() { &config.files } else { &self.named.files }
    }

    /// Loads the layers of a start.
    ///
    /// # Errors
    /// As [`load`](Loader::load), and a `--set` for a policy that is not among them.
    pub fn start(&self, config: &PolicyConfig) -> Result<Stack, Failure> {
        let stack = self.load(config, self.files(config))?;
        self.check_settings(config, std::slice::from_ref(&stack))?;
        Ok(stack)
    }

    /// Returns the loader of a gateway that is started without options.
    pub(super) fn without_options(&self) -> Loader {
        Loader { named: Named::default(), ..self.clone() }
    }

    /// Checks that every `--set` is meant for a policy of these stacks.
    ///
    /// # Errors
    /// One is not.
    pub fn check_settings(&self, config: &PolicyConfig, stacks: &[Stack]) -> Result<(), Failure> {
        let mut names: Vec<&str> = Vec::new();
        for layer in stacks.iter().flat_map(|stack| stack.layers()) {
            // Every stack contains the embedded policy.
            if !names.contains(&layer.policy.name()) {
                names.push(layer.policy.name());
            }
        }
        Ok(self.overrides(config).check_policies(names)?)
    }

    /// Returns the policy that a `--set` of the command line is for, if it is none of these layers: a start that loads
    /// these is refused.
    pub fn missed_by_set(&self, layers: &[Identity]) -> Option<String> {
        let is_loaded = |policy: &str| layers.iter().any(|layer| layer.name == policy);
        self.named.set.iter().map(|set| &set.policy).find(|policy| !is_loaded(policy)).cloned()
    }

    /// Loads layers of these components, the top one last. Blocks while it compiles.
    ///
    /// # Errors
    /// One cannot or may not be loaded, or does not accept the settings meant for it.
    pub fn load(&self, config: &PolicyConfig, files: &[PathBuf]) -> Result<Stack, Failure> {
        self.assemble(config, files, &self.overrides(config))
    }

    /// Loads layers of components that another host has sent or that served before, each with its label, the top one
    /// last. If they are a promoted arm, they have its settings.
    ///
    /// # Errors
    /// As [`load`](Loader::load) or [`arm`](Loader::arm).
    pub fn take(
        &self,
        config: &PolicyConfig,
        of_arm: Option<ConfiguredSettings>,
        components: &[(String, Vec<u8>)],
    ) -> Result<Stack, Failure> {
        if let Some(settings) = of_arm {
            return self.arm(&PolicyConfig { settings, ..config.clone() }, Origin::Host(components));
        }
        let (stack, odd) = self.sent_layers(config, components, &self.overrides(config))?;
        tell_odd(&odd);
        Ok(stack)
    }

    /// Loads the layers of an arm of an experiment. The arm is defined by its own section alone; policy options of the
    /// command line and the environment do not apply.
    ///
    /// # Errors
    /// As [`load`](Loader::load), and settings of a policy that the arm does not load.
    pub fn arm(&self, config: &PolicyConfig, from: Origin<'_>) -> Result<Stack, Failure> {
        let overrides = self.overrides_of_arm(config);
        let (stack, odd) = match from {
            Origin::Files => self.layers(config, &config.files, &overrides),
            Origin::Host(components) => self.sent_layers(config, components, &overrides),
        }?;
        if let Some(failure) = idle(config, &stack).into_iter().next() {
            return Err(failure);
        }
        tell_odd(&odd);
        Ok(stack)
    }

    /// Loads the layers of a start, and returns them with warnings: settings of a policy that is not among them,
    /// environment variables with invalid values.
    ///
    /// # Errors
    /// As [`start`](Loader::start).
    pub fn look(&self, config: &PolicyConfig) -> Result<(Stack, Vec<String>), Failure> {
        let (stack, odd) = self.layers(config, self.files(config), &self.overrides(config))?;
        self.check_settings(config, std::slice::from_ref(&stack))?;
        Ok((stack, odd))
    }

    /// As [`look`](Loader::look).
    ///
    /// # Errors
    /// Everything that keeps the layers of a start from loading, not only the first.
    pub fn look_at_all(&self, config: &PolicyConfig) -> Result<(Stack, Vec<String>), Vec<Failure>> {
        self.look(config).map_err(|first| self.all_refusals(config, first))
    }

    /// Returns everything that keeps the layers of a start from loading, at least this failure of it.
    pub fn all_refusals(&self, config: &PolicyConfig, first: Failure) -> Vec<Failure> {
        self.refusals(config, self.files(config), &self.overrides(config), first)
    }

    /// Returns what keeps an arm whose layers load from its files from taking part: settings for other policies.
    ///
    /// # Errors
    /// Everything that keeps the layers from loading. Which settings are for other policies is not known then.
    pub fn look_at_arm(&self, config: &PolicyConfig) -> Result<Vec<Failure>, Vec<Failure>> {
        let overrides = self.overrides_of_arm(config);
        self.layers(config, &config.files, &overrides)
            .map(|(stack, _)| idle(config, &stack))
            .map_err(|first| self.refusals(config, &config.files, &overrides, first))
    }

    /// Returns what is wrong with each component and each setting, in the order of gateway.json. If each is right by
    /// itself, the first failure of loading them together remains.
    fn refusals(
        &self,
        config: &PolicyConfig,
        files: &[PathBuf],
        overrides: &Overrides,
        first: Failure,
    ) -> Vec<Failure> {
        let theirs = self.runtime.under(config.limits.limits(), self.trust(config));
        let mut refusals = Vec::new();
        for policy in embedded::layers(files).map(|file| loading::load(&theirs, file)).chain([self.base(config)]) {
            match policy {
                Ok(policy) => {
                    let of_settings = Settings::refusals(policy.description(), overrides);
                    refusals.extend(of_settings.into_iter().map(Failure::from));
                }
                Err(failure) => refusals.push(failure),
            }
        }
        if refusals.is_empty() { vec![first] } else { refusals }
    }

    /// Returns the settings of layers of a start that have other values than they would have by gateway.json alone.
    ///
    /// # Errors
    /// gateway.json has settings that they do not accept.
    pub fn overridden(&self, config: &PolicyConfig, stack: &Stack) -> Result<Vec<Overridden>, Failure> {
        Ok(overridden(stack, &self.overrides(config))?)
    }

    /// Whether a start with this configuration would give these layers the settings that they have.
    pub fn keeps_settings(&self, config: &PolicyConfig, stack: &Stack) -> bool {
        let overrides = self.overrides(config);
        let resolved = |layer: &Layer| Settings::resolve(layer.policy.description(), &overrides);
        stack.layers().all(|layer| resolved(layer).is_ok_and(|(settings, _)| settings == layer.settings))
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

    /// Puts what `load` returns, top layer first, over the embedded policy.
    fn over_the_base(
        &self,
        config: &PolicyConfig,
        load: impl FnOnce(&Runtime) -> Result<Vec<Policy>, Failure>,
        overrides: &Overrides,
    ) -> Result<(Stack, Vec<String>), Failure> {
        let base = self.base(config)?;
        let theirs = self.runtime.under(config.limits.limits(), self.trust(config));
        let layers = load(&theirs)?;
        refuse_namesakes(&layers)?;
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
        let stack = Stack::new(layers, layer(base)?).with_seed_may_go(config.seed_may_go);
        odd.extend(Warning::merge(warnings).iter().map(ToString::to_string));
        for setting in overridden(&stack, overrides)? {
            if overrides.config.get(&setting.policy).is_some_and(|given| given.contains_key(&setting.setting)) {
                odd.push(format!("gateway.json: {setting}"));
            }
        }
        Ok((stack, odd))
    }

    /// Loads the embedded policy under all others.
    fn base(&self, config: &PolicyConfig) -> Result<Policy, Failure> {
        let ours = self.runtime.under(config.limits.limits(), Trust::default());
        let waiting = Spinner::when_long("compiling `standard`");
        let base = Policy::from_bytes(&ours, "standard (embedded)", embedded::STANDARD);
        drop(waiting);
        Ok(base?)
    }

    fn trust(&self, config: &PolicyConfig) -> Trust {
        Trust { allow: allowed(config), wasi: !(self.named.no_wasi || config.no_wasi) }
    }

    /// What gateway.json sets for an arm.
    fn overrides_of_arm(&self, config: &PolicyConfig) -> Overrides {
        Overrides { language: self.language, config: config.settings.clone(), ..Overrides::default() }
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

/// Returns the failures for settings of an arm that are for policies which it does not load. The serving policies may
/// have settings for a policy that is loaded later; an arm with such idle settings would be compared with itself.
fn idle(config: &PolicyConfig, stack: &Stack) -> Vec<Failure> {
    let is_loaded = |name: &str| stack.layers().any(|layer| layer.policy.name() == name);
    let idle = config.settings.keys().filter(|name| !is_loaded(name));
    idle.map(|idle| {
        Failure::new(format!("`settings.{idle}` has no effect, policy `{idle}` is not loaded"))
            .hint("add that policy to the arm's `files`, or remove its settings")
    })
    .collect()
}

/// Refuses two layers of one name: settings are for all layers of their name, and the ledger would not tell them apart.
/// Only the policy under all others may have a namesake, another build of it.
fn refuse_namesakes(layers: &[Policy]) -> Result<(), Failure> {
    let mut digests = BTreeMap::new();
    for Identity { name, sha256, .. } in layers.iter().map(Policy::identity) {
        if let Some(other) = digests.insert(name, sha256) {
            let what = format!("two of the policies are called `{name}`: sha256 {other} and {sha256}");
            return Err(Failure::new(what).hint(
                "load each policy once; build a component that takes another one's name under a name of its own",
            ));
        }
    }
    Ok(())
}

fn tell_odd(odd: &[String]) {
    for odd in odd {
        tracing::warn!("{odd}");
    }
}

/// The digests that `policy.allow` names; `None` where any component is allowed.
fn allowed(config: &PolicyConfig) -> Option<BTreeSet<String>> {
    // The standard policy is also allowed when it is loaded from a file.
    let standard = hex(&Sha256::digest(embedded::STANDARD));
    let allow = config.allow.as_ref()?;
    Some(allow.iter().map(|it| it.to_ascii_lowercase()).chain([standard]).collect())
}

/// Opens the engine for the authoring commands. `policy.allow` and the limits of the home apply as in a gateway: a
/// component that is only looked at is compiled and run as well, and what it achieves here it should achieve there.
///
/// # Errors
/// gateway.json cannot be read or is lost, or the system does not let the engine run.
pub fn open_for_authoring(home: &Path) -> Result<Runtime, Failure> {
    let (config, _) = Config::load_for_command(home)?;
    let runtime = open_runtime(home)?;
    Ok(runtime.under(config.policy.limits.limits(), Trust { allow: allowed(&config.policy), ..Trust::default() }))
}

/// Opens the engine, with compiled components cached in the home if it exists: a command that only looks at a policy
/// does not create one.
///
/// # Errors
/// The system does not let it run.
fn open_runtime(home: &Path) -> Result<Runtime, Failure> {
    let cache_dir = home.is_dir().then(|| home::compile_cache_dir(home));
    Ok(Runtime::new(RuntimeConfig { cache_dir, ..RuntimeConfig::new(Compiler::Child) })?)
}
