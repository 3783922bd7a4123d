//! The values of a policy's settings, and where they come from.
//!
//! Sources, in order of precedence: `--set POLICY.NAME=VALUE`; the environment (three names from pmk's shell scripts,
//! [`ENV_SETTINGS`]); `policy.settings` of gateway.json; for a setting `language`, the gateway's own language; the
//! default that the policy declares. A wrong name or value is an error that says what is accepted; only a wrong value
//! in the environment is just a warning (specification 000 §4).

mod bounds;
mod changed;
mod error;

use std::{collections::BTreeMap, fmt, str::FromStr, sync::Arc};

use pmk_core::{Language, text};
use serde::{Deserialize, Serialize};

pub use self::{
    bounds::Bounds,
    changed::ChangedSettings,
    error::{SettingError, Warning},
};

use crate::description::{Description, MAX_TEXT_CHARS, SettingKind, SettingSpec};

/// The soft target of a prune, in tokens.
pub const MAX_SESSION_TOKENS: &str = "max-session-tokens";
/// How much of a seed is kept, in characters.
pub const SEED_CAP: &str = "seed-cap";
/// The language in which a policy writes for the model: a text setting, a language tag.
pub const LANGUAGE: &str = "language";
/// How much of a code-search result is kept, in characters.
pub const MRA_RESULT_CAP: &str = "mra-result-cap";

/// The environment variables, each with the setting that it sets in every policy that declares it.
pub const ENV_SETTINGS: [(&str, &str); 3] = [
    ("PMK_MAX_SESSION_TOKENS", MAX_SESSION_TOKENS),
    ("PMK_SEED_CAP", SEED_CAP),
    ("PMK_MRA_RESULT_CAP", MRA_RESULT_CAP),
];

/// The value of a setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// Of an integer setting.
    Integer(i64),
    /// Of a boolean setting.
    Boolean(bool),
    /// Of a text setting.
    Text(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Integer(value) => value.fmt(f),
            Value::Boolean(value) => value.fmt(f),
            Value::Text(value) => value.fmt(f),
        }
    }
}

/// The effective values of one policy's settings. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Settings {
    values: Arc<BTreeMap<String, Value>>,
    /// The values if the operator had set none.
    #[serde(skip)]
    unset: Arc<BTreeMap<String, Value>>,
}

/// Settings as `policy.settings` of gateway.json has them: policy name → setting name → value.
pub type ConfiguredSettings = BTreeMap<String, serde_json::Map<String, serde_json::Value>>;

/// One `--set POLICY.NAME=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetOverride {
    /// The policy it is for.
    pub policy: String,
    /// The setting.
    pub name: String,
    /// The value as it was typed.
    pub value: String,
}

impl FromStr for SetOverride {
    type Err = SettingError;

    fn from_str(given: &str) -> Result<Self, SettingError> {
        let malformed = || SettingError::Malformed { given: given.to_owned() };
        let (path, value) = given.split_once('=').ok_or_else(malformed)?;
        let (policy, name) = path.split_once('.').ok_or_else(malformed)?;
        if policy.is_empty() || name.is_empty() {
            return Err(malformed());
        }
        Ok(SetOverride { policy: policy.to_owned(), name: name.to_owned(), value: value.to_owned() })
    }
}

/// The operator's values for settings, for all policies.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overrides {
    /// `--set`, in the order given; the last of the same setting wins.
    pub set: Vec<SetOverride>,
    /// The variables of [`ENV_SETTINGS`] that are set, by name. The caller reads the environment.
    pub env: BTreeMap<String, String>,
    /// The gateway's own language, for the text setting [`LANGUAGE`] of every policy that declares it and for which no
    /// other source has a value.
    pub language: Option<Language>,
    /// `policy.settings` of gateway.json.
    pub config: ConfiguredSettings,
}

impl Overrides {
    /// Checks that every `--set` is for one of the loaded policies. Settings in gateway.json may be for policies that
    /// are not loaded.
    ///
    /// # Errors
    /// [`SettingError::UnknownPolicy`].
    pub fn check_policies<'a>(&self, loaded: impl IntoIterator<Item = &'a str>) -> Result<(), SettingError> {
        let loaded: Vec<&str> = loaded.into_iter().collect();
        match self.set.iter().find(|set| !loaded.contains(&set.policy.as_str())) {
            Some(set) => Err(SettingError::UnknownPolicy {
                policy: set.policy.clone(),
                loaded: loaded.into_iter().map(str::to_owned).collect(),
            }),
            None => Ok(()),
        }
    }
}

impl Settings {
    /// Determines the value of every setting that a policy declares.
    ///
    /// # Errors
    /// If `--set` or gateway.json has a setting that the policy does not declare, or a value that it does not accept.
    pub fn resolve(description: &Description, overrides: &Overrides) -> Result<(Settings, Vec<Warning>), SettingError> {
        let (settings, warnings, errors) = Settings::determine(description, overrides);
        errors.into_iter().next().map_or(Ok((settings, warnings)), Err)
    }

    /// Everything for which [`resolve`](Settings::resolve) would refuse.
    pub fn refusals(description: &Description, overrides: &Overrides) -> Vec<SettingError> {
        Settings::determine(description, overrides).2
    }

    /// The values, and what is wrong with those that are left out of them.
    fn determine(description: &Description, overrides: &Overrides) -> (Settings, Vec<Warning>, Vec<SettingError>) {
        let mut unset = defaults(description);
        let of_language = description.setting(LANGUAGE).filter(|spec| matches!(spec.kind, SettingKind::Text { .. }));
        if let (Some(spec), Some(language)) = (of_language, overrides.language) {
            unset.insert(spec.name.clone(), Value::Text(language.tag().to_owned()));
        }
        let mut values = unset.clone();
        let mut errors = Vec::new();
        for (name, given) in overrides.config.get(&description.name).into_iter().flatten() {
            let value = declared(description, name, "policy.settings").and_then(|spec| {
                from_json(&spec.kind, given)
                    .ok_or_else(|| invalid(description, spec, "policy.settings", &given.to_string()))
            });
            errors.extend(value.map(|value| values.insert(name.clone(), value)).err());
        }
        let warnings = apply_env(description, &overrides.env, &mut values);
        for set in overrides.set.iter().filter(|set| set.policy == description.name) {
            let value = declared(description, &set.name, "--set").and_then(|spec| {
                from_text(&spec.kind, &set.value).ok_or_else(|| invalid(description, spec, "--set", &set.value))
            });
            errors.extend(value.map(|value| values.insert(set.name.clone(), value)).err());
        }
        (Settings { values: Arc::new(values), unset: Arc::new(unset) }, warnings, errors)
    }

    /// The values when the operator sets none.
    pub fn defaults(description: &Description) -> Settings {
        let values = Arc::new(defaults(description));
        Settings { values: Arc::clone(&values), unset: values }
    }

    /// The values that are the operator's: those that differ from what the policy does when nothing is set.
    fn changed(&self) -> BTreeMap<String, Value> {
        let changed = self.values.iter().filter(|(name, value)| self.unset.get(*name) != Some(value));
        changed.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// The value of a declared setting.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }

    /// These values within the bounds left by failed layers above. A value of 0 or less, which for these three settings
    /// means no bound, becomes the bound; a bound below the minimum that the policy declares becomes that minimum.
    pub(crate) fn within(&self, bounds: &Bounds, description: &Description) -> Settings {
        let lowered: Vec<(&str, i64)> = bounds
            .each()
            .filter_map(|(name, bound)| {
                let Some(Value::Integer(value)) = self.get(name) else { return None };
                let Some(SettingKind::Integer { min, .. }) = description.setting(name).map(|spec| &spec.kind) else {
                    return None;
                };
                let lowered = if *value > 0 { bound.min(*value) } else { bound }.max(*min);
                (lowered != *value).then_some((name, lowered))
            })
            .collect();
        if lowered.is_empty() {
            return self.clone();
        }
        let mut values = (*self.values).clone();
        for (name, value) in lowered {
            values.insert(name.to_owned(), Value::Integer(value));
        }
        Settings { values: Arc::new(values), unset: Arc::clone(&self.unset) }
    }
}

fn defaults(description: &Description) -> BTreeMap<String, Value> {
    description.settings.iter().map(|spec| (spec.name.clone(), default(&spec.kind))).collect()
}

fn default(kind: &SettingKind) -> Value {
    match kind {
        SettingKind::Integer { default, .. } => Value::Integer(*default),
        SettingKind::Boolean { default } => Value::Boolean(*default),
        SettingKind::Text { default } => Value::Text(default.clone()),
    }
}

fn declared<'a>(
    description: &'a Description,
    name: &str,
    origin: &'static str,
) -> Result<&'a SettingSpec, SettingError> {
    description.setting(name).ok_or_else(|| SettingError::Unknown {
        policy: description.name.clone(),
        setting: name.to_owned(),
        origin,
        settings: description.settings.iter().map(|spec| spec.name.clone()).collect(),
    })
}

fn from_json(kind: &SettingKind, given: &serde_json::Value) -> Option<Value> {
    let value = match (kind, given) {
        (SettingKind::Integer { .. }, serde_json::Value::Number(number)) => Value::Integer(number.as_i64()?),
        (SettingKind::Boolean { .. }, serde_json::Value::Bool(value)) => Value::Boolean(*value),
        (SettingKind::Text { .. }, serde_json::Value::String(value)) => Value::Text(value.clone()),
        _ => return None,
    };
    in_range(kind, value)
}

fn from_text(kind: &SettingKind, given: &str) -> Option<Value> {
    let value = match kind {
        SettingKind::Integer { .. } => Value::Integer(given.trim().parse().ok()?),
        SettingKind::Boolean { .. } => Value::Boolean(given.trim().parse().ok()?),
        SettingKind::Text { .. } => Value::Text(given.to_owned()),
    };
    in_range(kind, value)
}

fn in_range(kind: &SettingKind, value: Value) -> Option<Value> {
    let fits = match (kind, &value) {
        (SettingKind::Integer { min, max, .. }, Value::Integer(value)) => (min..=max).contains(&value),
        (SettingKind::Text { .. }, Value::Text(value)) => text::slice(value, 0, MAX_TEXT_CHARS).len() == value.len(),
        _ => true,
    };
    fits.then_some(value)
}

fn apply_env(
    description: &Description,
    env: &BTreeMap<String, String>,
    values: &mut BTreeMap<String, Value>,
) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for (variable, setting) in ENV_SETTINGS {
        let (Some(given), Some(spec)) = (env.get(variable), description.setting(setting)) else { continue };
        let SettingKind::Integer { min, max, .. } = spec.kind else { continue };
        // A policy may accept 0 as "no bound" for these three, but an environment variable of 0 hardly means that.
        let min = min.max(1);
        match given.trim().parse::<i64>() {
            Ok(value) if (min..=max).contains(&value) => {
                values.insert(setting.to_owned(), Value::Integer(value));
            }
            _ => warnings.push(Warning {
                variable: variable.to_owned(),
                given: shown(given),
                accepts: format!("an integer from {min} to {max}"),
                policies: vec![description.name.clone()],
            }),
        }
    }
    warnings
}

fn invalid(description: &Description, spec: &SettingSpec, origin: &'static str, given: &str) -> SettingError {
    SettingError::Invalid {
        policy: description.name.clone(),
        setting: spec.name.clone(),
        origin,
        given: shown(given),
        accepts: match spec.kind {
            SettingKind::Integer { min, max, .. } => format!("an integer from {min} to {max}"),
            SettingKind::Boolean { .. } => "`true` or `false`".to_owned(),
            SettingKind::Text { .. } => format!("text of at most {MAX_TEXT_CHARS} characters"),
        },
        default: Box::new(default(&spec.kind)),
    }
}

/// The start of a value, on one line.
fn shown(given: &str) -> String {
    text::head(given.trim(), 60).replace(char::is_control, " ")
}
