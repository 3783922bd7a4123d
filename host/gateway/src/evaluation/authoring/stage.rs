//! One policy alone: no layer under it, so that what is seen is its own.

use std::{collections::BTreeMap, sync::Arc};

use pmk_policy::{Layer, Overrides, Policy, SetOverride, SettingError, Settings, Stack};
use serde_json::{Map, Value};
use tracing::subscriber::NoSubscriber;

/// The policy that is asked.
#[derive(Clone, Debug)]
pub struct Stage(Arc<Policy>);

impl Stage {
    /// Puts a policy on it.
    pub fn new(policy: impl Into<Arc<Policy>>) -> Stage {
        Stage(policy.into())
    }

    /// The policy.
    pub fn policy(&self) -> &Policy {
        &self.0
    }

    /// The policy with its defaults.
    pub fn with_defaults(&self) -> Stack {
        self.stack(Settings::defaults(self.0.description()))
    }

    /// The policy with these settings, as `--set` gives them.
    ///
    /// # Errors
    /// A setting that the policy does not declare, or a value that it does not take.
    pub fn with_set(&self, set: Vec<SetOverride>) -> Result<Stack, SettingError> {
        self.with(&Overrides { set, ..Overrides::default() })
    }

    /// The policy with these settings, as gateway.json gives them.
    ///
    /// # Errors
    /// A setting that the policy does not declare, or a value that it does not take.
    pub fn with_values(&self, values: Map<String, Value>) -> Result<Stack, SettingError> {
        let config = BTreeMap::from([(self.0.name().to_owned(), values)]);
        self.with(&Overrides { config, ..Overrides::default() })
    }

    fn with(&self, overrides: &Overrides) -> Result<Stack, SettingError> {
        let (settings, _) = Settings::resolve(self.0.description(), overrides)?;
        Ok(self.stack(settings))
    }

    fn stack(&self, settings: Settings) -> Stack {
        Stack::new([], Layer { policy: Arc::clone(&self.0), settings })
    }
}

/// Runs what asks a policy on purpose for more than it may be able to do: the host's log of that would only stand
/// in the way of the report.
pub(super) fn quietly<T>(ask: impl FnOnce() -> T) -> T {
    tracing::subscriber::with_default(NoSubscriber::default(), ask)
}
