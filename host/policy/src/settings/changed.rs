//! What the operator has set for layers.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

use super::{Settings, Value};

/// The settings of layers that differ from what their policies do when nothing is set: policy name → setting name →
/// value, as `policy.settings` in gateway.json has them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ChangedSettings(BTreeMap<String, BTreeMap<String, Value>>);

impl ChangedSettings {
    /// Those of these policies, each with its name. Policies without any are left out.
    pub fn of<'a>(layers: impl IntoIterator<Item = (&'a str, &'a Settings)>) -> ChangedSettings {
        let changed = layers.into_iter().map(|(policy, settings)| (policy.to_owned(), settings.changed()));
        ChangedSettings(changed.filter(|(_, changed)| !changed.is_empty()).collect())
    }

    /// Whether the policies are as when nothing is set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// As `--set` takes them, `POLICY.NAME=VALUE`.
impl fmt::Display for ChangedSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each = self.0.iter().flat_map(|(policy, settings)| settings.iter().map(move |set| (policy, set)));
        for (number, (policy, (name, value))) in each.enumerate() {
            let between = if number == 0 { "" } else { ", " };
            write!(f, "{between}{policy}.{name}={value}")?;
        }
        Ok(())
    }
}
