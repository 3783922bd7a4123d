//! Asks one policy alone, without a layer under it, so that only its own behavior is seen.

use std::{collections::BTreeMap, sync::Arc};

use pmk_policy::{Layer, Overrides, Policy, SetOverride, SettingError, Settings, Stack};
use serde_json::{Map, Value};
use tracing::subscriber::NoSubscriber;

/// The policy that is asked.
#[derive(Clone, Debug)]
pub struct Stage {
    policy: Arc<Policy>,
    set: Vec<SetOverride>,
    /// The defaults, but for what is `set`.
    settings: Settings,
}

impl Stage {
    /// Creates a stage for a policy with its default settings.
    pub fn new(policy: impl Into<Arc<Policy>>) -> Stage {
        let policy = policy.into();
        let settings = Settings::defaults(policy.description());
        Stage { policy, set: Vec::new(), settings }
    }

    /// Returns the stage with these settings in place of the defaults, in the form of `--set`.
    ///
    /// # Errors
    /// A setting of another policy, one that the policy does not declare, or a value that it does not accept.
    pub fn set(self, set: Vec<SetOverride>) -> Result<Stage, SettingError> {
        let overrides = Overrides { set: set.clone(), ..Overrides::default() };
        overrides.check_policies([self.policy.name()])?;
        let (settings, _) = Settings::resolve(self.policy.description(), &overrides)?;
        Ok(Stage { set, settings, ..self })
    }

    /// Returns the policy.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Returns the settings of the policy: its defaults, unless they are set.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns the policy with its settings.
    pub fn as_set(&self) -> Stack {
        self.stack(self.settings.clone())
    }

    /// Returns the policy with these settings beside its own, in the form of `--set`.
    ///
    /// # Errors
    /// A setting that the policy does not declare, or a value that it does not accept.
    pub fn with_set(&self, set: Vec<SetOverride>) -> Result<Stack, SettingError> {
        let set = self.set.iter().cloned().chain(set).collect();
        self.with(&Overrides { set, ..Overrides::default() })
    }

    /// Returns the policy with these settings alone, in the form of gateway.json.
    ///
    /// # Errors
    /// A setting that the policy does not declare, or a value that it does not accept.
    pub fn with_values(&self, values: Map<String, Value>) -> Result<Stack, SettingError> {
        let config = BTreeMap::from([(self.policy.name().to_owned(), values)]);
        self.with(&Overrides { config, ..Overrides::default() })
    }

    fn with(&self, overrides: &Overrides) -> Result<Stack, SettingError> {
        let (settings, _) = Settings::resolve(self.policy.description(), overrides)?;
        Ok(self.stack(settings))
    }

    fn stack(&self, settings: Settings) -> Stack {
        Stack::new([], Layer { policy: Arc::clone(&self.policy), settings })
    }
}

/// Runs code without logging. It deliberately asks a policy for more than it may be able to do, or replays what no
/// operator has to act on, and the log would clutter the report.
pub(in crate::evaluation) fn quietly<T>(ask: impl FnOnce() -> T) -> T {
    tracing::subscriber::with_default(NoSubscriber::default(), ask)
}
