//! Settings that are not as gateway.json has them, because `--set` or the environment takes precedence over it.

use std::{collections::BTreeMap, fmt};

use pmk_policy::{Overrides, SettingError, Settings, Stack, Value, settings::ENV_SETTINGS};
use serde::{Deserialize, Serialize};

/// A setting that has another value than it would have by gateway.json alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overridden {
    pub policy: String,
    pub setting: String,
    pub value: Value,
    pub instead_of: Value,
    /// `--set`, or the name of an environment variable.
    pub by: String,
}

impl fmt::Display for Overridden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Overridden { policy, setting, value, instead_of, by } = self;
        write!(f, "`{by}` makes `{policy}.{setting}` {value} instead of {instead_of}")
    }
}

/// Returns the settings of these layers that have other values than they would have by gateway.json alone.
///
/// # Errors
/// gateway.json has settings that they do not accept.
pub(super) fn overridden(stack: &Stack, overrides: &Overrides) -> Result<Vec<Overridden>, SettingError> {
    let of_config = Overrides { set: vec![], env: BTreeMap::new(), ..overrides.clone() };
    let mut all = Vec::new();
    for layer in stack.layers() {
        let (policy, description) = (layer.policy.name(), layer.policy.description());
        let (plain, _) = Settings::resolve(description, &of_config)?;
        all.extend(description.settings.iter().filter_map(|spec| {
            let (value, instead_of) = (layer.settings.get(&spec.name)?, plain.get(&spec.name)?);
            let is_set = overrides.set.iter().any(|set| set.policy == policy && set.name == spec.name);
            let variable =
                ENV_SETTINGS.iter().find(|(_, setting)| *setting == spec.name).map(|(variable, _)| *variable);
            (value != instead_of).then(|| Overridden {
                policy: policy.to_owned(),
                setting: spec.name.clone(),
                value: value.clone(),
                instead_of: instead_of.clone(),
                by: if is_set { "--set" } else { variable.unwrap_or_default() }.to_owned(),
            })
        }));
    }
    Ok(all)
}
