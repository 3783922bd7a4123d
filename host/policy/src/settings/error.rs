//! Errors and warnings about settings.

use pmk_system::error::Failure;
use thiserror::Error;

use super::Value;

/// A value that was ignored.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("`{variable}` is `{given}`, not {accepts}; ignored for {}", list(.policies))]
pub struct Warning {
    /// The environment variable.
    pub variable: String,
    /// Its value, cut to one line.
    pub given: String,
    /// The values it accepts.
    pub accepts: String,
    /// The policies that would have used it.
    pub policies: Vec<String>,
}

impl Warning {
    /// Merges equal warnings: layers that ignore the same value for the same reason share one.
    pub fn merge(warnings: impl IntoIterator<Item = Warning>) -> Vec<Warning> {
        let mut merged: Vec<Warning> = Vec::new();
        for warning in warnings {
            let same = |other: &&mut Warning| other.variable == warning.variable && other.accepts == warning.accepts;
            match merged.iter_mut().find(same) {
                Some(other) => other.policies.extend(warning.policies),
                None => merged.push(warning),
            }
        }
        merged
    }
}

/// A setting that is not valid.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SettingError {
    /// `--set` without a policy, a name or a value.
    #[error("`--set {given}` is not `POLICY.NAME=VALUE`")]
    Malformed {
        /// What was typed.
        given: String,
    },
    /// `--set` for a policy that is not loaded.
    #[error("`--set` names policy `{policy}`, which is not loaded; these are loaded: {}", list(.loaded))]
    UnknownPolicy {
        /// The name that was typed.
        policy: String,
        /// The loaded policies.
        loaded: Vec<String>,
    },
    /// The policy does not declare the setting.
    #[error("policy `{policy}` has no setting `{setting}` ({origin})")]
    Unknown {
        /// The policy.
        policy: String,
        /// The setting as it was named.
        setting: String,
        /// Where it was named: `--set` or `policy.settings`.
        origin: &'static str,
        /// The settings that it declares.
        settings: Vec<String>,
    },
    /// The value has another type, or is out of range.
    #[error("setting `{setting}` of policy `{policy}` is {accepts}, not `{given}` ({origin})")]
    Invalid {
        /// The policy.
        policy: String,
        /// The setting.
        setting: String,
        /// Where it was given: `--set` or `policy.settings`.
        origin: &'static str,
        /// What was given, cut to one line.
        given: String,
        /// What it accepts.
        accepts: String,
        /// The default.
        default: Box<Value>,
    },
}

impl SettingError {
    /// What the user can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            SettingError::Malformed { .. } => Some("for example `--set strict.seed-cap=8000`".to_owned()),
            SettingError::UnknownPolicy { policy, loaded } => Some(match nearest(policy, loaded) {
                Some(name) => format!("did you mean `{name}`?"),
                None => "use one of these; commands that accept `--policy FILE` can load others".to_owned(),
            }),
            SettingError::Unknown { setting, settings, policy, .. } => Some(match nearest(setting, settings) {
                Some(name) => format!("did you mean `{name}`?"),
                None if settings.is_empty() => format!("`{policy}` has no settings at all"),
                None => format!("its settings are {}", list(settings)),
            }),
            SettingError::Invalid { default, .. } => {
                Some(format!("the default is `{default}`; `pmk-host policy inspect FILE` shows what each setting does"))
            }
        }
    }
}

fn list(names: &[String]) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// The known name closest to what was typed, if it is close enough to be a typing error.
fn nearest<'a>(typed: &str, known: &'a [String]) -> Option<&'a str> {
    let typed = typed.to_lowercase().replace('_', "-");
    known
        .iter()
        .map(|name| (distance(&typed, name), name.as_str()))
        .min()
        .filter(|(distance, name)| *distance <= 1 + name.len() / 4)
        .map(|(_, name)| name)
}

/// The edit distance: how many letters have to be inserted, deleted or replaced.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let exchanged = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = exchanged.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

impl From<SettingError> for Failure {
    fn from(error: SettingError) -> Self {
        let failure = Failure::new(&error);
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}
