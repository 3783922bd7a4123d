//! The effective settings: every setting with its value and the origin of the value. Of a secret, only the kind is
//! shown.

use std::{fmt, path::Path};

use pmk_models::Provider;
use pmk_system::{error::Failure, json};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{
    keys,
    shape::{Key, Shape, joined},
    text_of, whose,
};
use crate::language;

/// A setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Effective {
    /// The path of its key, such as `limits.modelIdleSeconds`.
    pub key: String,
    pub value: Shown,
    #[serde(rename = "from")]
    pub origin: Origin,
}

/// A value as it may be shown.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Shown {
    Value(Value),
    /// A secret, which is not shown, with the kind of its source.
    Secret {
        secret: &'static str,
    },
}

const A_SECRET: Shown = Shown::Secret { secret: "a secret" };

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    CommandLine,
    /// The variable of this name.
    Environment(String),
    /// gateway.json.
    File,
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::CommandLine => f.write_str("command line"),
            Origin::Environment(name) => f.write_str(name),
            Origin::File => f.write_str("gateway.json"),
            Origin::Default => f.write_str("default"),
        }
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shown::Value(Value::Null) => f.write_str("none"),
            Shown::Value(Value::String(text)) => f.write_str(text),
            Shown::Value(value) => f.write_str(&json::shown(value)),
            Shown::Secret { secret } => write!(f, "({secret})"),
        }
    }
}

/// Environment variables that do not override a key of the file, and whether they are secret.
const VARIABLES: [(&str, bool); 11] = [
    ("PMK_SLACK_API_URL", false),
    ("PMK_SLACK_LIMITS", false),
    ("PMK_DRY_RUN", false),
    ("PMK_LOG", false),
    ("ANTHROPIC_API_KEY", true),
    ("ANTHROPIC_BASE_URL", false),
    ("OPENAI_API_KEY", true),
    ("OPENAI_BASE_URL", false),
    ("PMK_MAX_SESSION_TOKENS", false),
    ("PMK_SEED_CAP", false),
    ("PMK_MRA_RESULT_CAP", false),
];

/// Returns every setting of a home; variables take precedence over the file. `variable` looks up a variable.
///
/// # Errors
/// The file cannot be read. An invalid one is reported by [`examine`](super::Config::examine).
pub fn effective(home: &Path, variable: impl Fn(&str) -> Option<String>) -> Result<Vec<Effective>, Failure> {
    let text = text_of(home)?.unwrap_or_default();
    let root: Map<String, Value> = serde_json::from_str(&text).unwrap_or_default();
    let mut found = vec![];
    let mut keys = keys::keys();
    if whose(root.get("model").and_then(Value::as_str)) == Provider::OpenAi {
        for (name, variable) in [("apiKey", "OPENAI_API_KEY"), ("baseUrl", "OPENAI_BASE_URL")] {
            keys.iter_mut().filter(|key| key.name == name).for_each(|key| key.variable = Some(variable));
        }
    }
    walk("", &keys, &root, &variable, &mut found);
    // The default language depends on the origin of the home.
    for one in found.iter_mut().filter(|one| one.key == "language" && matches!(one.origin, Origin::Default)) {
        one.value = Shown::Value(language::of_home(home, &root).tag().into());
        if let Some(variable) = language::variable_of_home(home, &root) {
            one.origin = Origin::Environment(variable.to_owned());
        }
    }
    let told = |name: &str| keys.iter().any(|key| key.variable == Some(name));
    found.extend(VARIABLES.into_iter().filter(|(name, _)| !told(name)).filter_map(|(name, is_secret)| {
        let text = variable(name)?;
        // An address that contains a password is refused where it is used, but is still a secret.
        let value = if is_secret || text.contains('@') { A_SECRET } else { Shown::Value(text.into()) };
        Some(Effective { key: name.to_owned(), value, origin: Origin::Environment(name.to_owned()) })
    }));
    Ok(found)
}

fn walk(
    at: &str,
    keys: &[Key],
    object: &Map<String, Value>,
    variable: &impl Fn(&str) -> Option<String>,
    found: &mut Vec<Effective>,
) {
    let nothing = Map::new();
    // Required keys are not settings.
    for key in keys.iter().filter(|key| !key.is_needed) {
        let (path, given) = (joined(at, key.name), key.given(object));
        match &key.shape {
            // Not a key of this gateway, and it may contain secrets.
            Shape::Kept => continue,
            Shape::Object { keys, .. } if !keys.iter().any(|key| key.is_needed) => {
                let inner = given.and_then(Value::as_object).unwrap_or(&nothing);
                walk(&path, keys, inner, variable, found);
                continue;
            }
            _ => {}
        }
        let set = key.variable.and_then(|name| Some((name, variable(name)?)));
        let (value, origin) = match (set, given, &key.default) {
            (Some((name, text)), ..) => (Value::from(text), Origin::Environment(name.to_owned())),
            (None, Some(given), _) => (given.clone(), Origin::File),
            (None, None, default) => (default.clone().unwrap_or_default(), Origin::Default),
        };
        let value = match key.shape {
            Shape::Secret => match value {
                Value::Null => Shown::Value(Value::Null),
                Value::String(_) => A_SECRET,
                Value::Object(source) if source.contains_key("env") => {
                    Shown::Secret { secret: "a secret, from a variable" }
                }
                Value::Object(source) if source.contains_key("file") => {
                    Shown::Secret { secret: "a secret, from a file" }
                }
                _ => Shown::Secret { secret: "a secret, from a command" },
            },
            Shape::Like { shown, .. } => match value.as_str() {
                Some(text) => shown(text).map_or(A_SECRET, |text| Shown::Value(text.into())),
                None => Shown::Value(value),
            },
            _ => Shown::Value(value),
        };
        found.push(Effective { key: path, value, origin });
    }
}
