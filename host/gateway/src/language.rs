//! Determines the language of the gateway: the `language` of gateway.json; without one, Traditional Chinese in a home
//! that was created by pmk, which supported no other; anywhere else the language of the environment, or English.

use std::path::Path;

use pmk_core::Language;
use pmk_system::home;
use serde_json::{Map, Value};

/// The variables that name the language of the environment; the first that is set applies.
const VARIABLES: [&str; 3] = ["LC_ALL", "LC_MESSAGES", "LANG"];

/// Keys of gateway.json that only pmk wrote, at the top level and in `slack`.
const PMKS: [&str; 2] = ["github", "review"];
const PMKS_OF_SLACK: [&str; 2] = ["botUserId", "workspaceName"];

/// Returns the language of the environment.
pub fn of_environment() -> Language {
    named().map_or_else(Language::default, |(_, locale)| Language::of_locale(&locale))
}

/// Returns the variable that decides the language of a home whose configuration names none, if one does.
pub fn variable_of_home(home: &Path, config: &Map<String, Value>) -> Option<&'static str> {
    if came_from_pmk(home, config) { None } else { named().map(|(name, _)| name) }
}

/// The variable that names the language of the environment, and what it says.
fn named() -> Option<(&'static str, String)> {
    let of = |name: &'static str| Some((name, std::env::var(name).ok().filter(|locale| !locale.trim().is_empty())?));
    VARIABLES.into_iter().find_map(of)
}

/// Returns the language of a home whose configuration names none.
pub fn of_home(home: &Path, config: &Map<String, Value>) -> Language {
    if came_from_pmk(home, config) { Language::TraditionalChinese } else { of_environment() }
}

/// Whether the home was created by pmk: its conversations are there, or its setup has left keys in gateway.json.
fn came_from_pmk(home: &Path, config: &Map<String, Value>) -> bool {
    let slack = config.get("slack").and_then(Value::as_object);
    PMKS.iter().any(|key| config.contains_key(*key))
        || slack.is_some_and(|slack| PMKS_OF_SLACK.iter().any(|key| slack.contains_key(*key)))
        || home::gateway_dir(home).join("slack").is_dir()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_of_pmks_is_known_by_what_pmk_left() {
        let home = tempfile::tempdir().expect("a folder");
        let is_pmks = |config: Value| came_from_pmk(home.path(), config.as_object().expect("an object"));
        for config in [
            serde_json::json!({"version": 1, "github": {}}),
            serde_json::json!({"version": 1, "review": {}}),
            serde_json::json!({"version": 1, "slack": {"botUserId": "U1"}}),
            serde_json::json!({"version": 1, "slack": {"workspaceName": "acme"}}),
        ] {
            assert!(is_pmks(config.clone()), "{config}");
        }
        let ours = || serde_json::json!({"version": 1, "admins": ["U1"], "slack": {"appToken": "xapp-1"}});
        assert!(!is_pmks(ours()));
        std::fs::create_dir_all(home.path().join("gateway/slack/users")).expect("pmk's conversations");
        assert!(is_pmks(ours()));
    }
}
