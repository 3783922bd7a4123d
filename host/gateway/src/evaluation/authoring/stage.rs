//! Asks one policy alone, without a layer under it, so that only its own behavior is seen.

use std::{collections::BTreeMap, sync::Arc};

use pmk_policy::{Layer, Overrides, Policy, SetOverride, SettingError, Settings, Stack};
use serde_json::{Map, Value};
use tracing::subscriber::NoSubscriber;

/// The policy that is asked.
#[derive(Clone, Debug)]
pub struct Stage(Arc<Policy>);

impl Stage {
    /// Creates a stage for a policy.
    pub fn new(policy: impl Into<Arc<Policy>>) -> Stage {
        Stage(policy.into())
    }

    /// Returns the policy.
    pub fn policy(&self) -> &Policy {
        &self.0
    }

    /// Returns the policy with its default settings.
    pub fn with_defaults(&self) -> Stack {
        self.stack(Settings::defaults(self.0.description()))
    }

    /// Returns the policy with these settings, in the form of `--set`.
    ///
    /// # Errors
    /// A setting that the policy does not declare, or a value that it does not accept.
    pub fn with_set(&self, set: Vec<SetOverride>) -> Result<Stack, SettingError> {
        self.with(&Overrides { set, ..Overrides::default() })
    }

    /// Returns the policy with these settings, in the form of gateway.json.
    ///
    /// # Errors
    /// A setting that the policy does not declare, or a value that it does not accept.
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

/// Runs code without logging. It deliberately asks a policy for more than it may be able to do, and the log would
/// clutter the report.
pub(super) fn quietly<T>(ask: impl FnOnce() -> T) -> T {
    tracing::subscriber::with_default(NoSubscriber::default(), ask)
}
