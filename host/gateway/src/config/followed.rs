//! The keys of gateway.json that a running gateway follows and that the hosts of one database share.

use std::{io, path::Path};

use pmk_system::{files, home};
use serde_json::{Map, Value};

use super::{
    Config,
    document::{Json, Object},
    edit::{EditError, edit_if_free},
    object,
};

/// The shared keys that say who is who.
pub const PEOPLE: [&str; 4] = ["admins", "blocklist", "audience", "escalation"];
/// The other shared key, which is written as a whole, rather than a collection that several people add to.
pub const EXPERIMENT: &str = "experiment";

const VERSION_KEY: &str = "version";

/// Why the file was not written.
#[derive(Debug)]
pub enum NotWritten {
    /// The file no longer has the expected content.
    Changed,
    /// The result would be invalid.
    Unusable(String),
    Failed(EditError),
}

impl From<EditError> for NotWritten {
    fn from(error: EditError) -> Self {
        NotWritten::Failed(error)
    }
}

/// Returns the shared keys of a home's file, including those that are `null`; `None` if there is no file. Another key may
/// be invalid here, as one of a newer version is.
///
/// # Errors
/// The file cannot be read or trusted, or the keys are invalid.
pub fn followed(home: &Path) -> Result<Option<Map<String, Value>>, EditError> {
    home::check_trusted(home).map_err(EditError::Untrusted)?;
    let path = home::config_file(home);
    let invalid = |what| EditError::Invalid { path: path.clone(), what };
    let text = match files::read_text(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => return Err(invalid(error.to_string())),
        text => text.map_err(|source| EditError::Io { action: "read", path: path.clone(), source })?,
    };
    part_of(&text, home).map(Some).map_err(invalid)
}

/// Returns what a home's file says in these keys, whatever else is in it; `None` if they cannot be used or trusted.
pub fn alone(home: &Path, keys: &[&str]) -> Option<Config> {
    home::check_trusted(home).ok()?;
    let text = files::read_text(&home::config_file(home)).ok()?;
    let mut root = object(&text).ok()?;
    root.retain(|key, _| key == VERSION_KEY || keys.contains(&key.as_str()));
    let config = Config::usable(&Value::Object(root).to_string(), home).ok()?;
    Some(config.within(home))
}

/// Returns the shared keys of a file.
fn part_of(text: &str, home: &Path) -> Result<Map<String, Value>, String> {
    let mut root = object(text)?;
    root.retain(|key, _| key == VERSION_KEY || is_followed(key));
    Config::usable(&Value::Object(root.clone()).to_string(), home)?;
    root.remove(VERSION_KEY);
    Ok(root)
}

/// Writes the shared keys of a home's file, if they still equal `instead_of`. Everything else stays as it is, valid or not.
///
/// # Errors
/// [`NotWritten`]; the file is as it was.
pub fn write_followed(
    home: &Path,
    wanted: &Map<String, Value>,
    instead_of: &Map<String, Value>,
) -> Result<(), NotWritten> {
    let is_part_usable = |text: &str| part_of(text, home).map(drop);
    let written = edit_if_free(home, is_part_usable, |root| {
        let unusable = |error: serde_json::Error| NotWritten::Unusable(error.to_string());
        let is_whole = Config::usable(&serde_json::to_string(root).map_err(unusable)?, home).is_ok();
        let there = only_followed(serde_json::from_value(value_of(root).map_err(unusable)?).map_err(unusable)?);
        if there != *instead_of {
            return Err(NotWritten::Changed);
        }
        for key in PEOPLE.into_iter().chain([EXPERIMENT]) {
            match wanted.get(key) {
                value if value == there.get(key) => {}
                Some(value) => {
                    let value: Json = serde_json::from_value(value.clone()).map_err(unusable)?;
                    root.set(key, value);
                }
                None => _ = root.remove(key),
            }
        }
        let text = serde_json::to_string(root).map_err(unusable)?;
        let is_usable = if is_whole { Config::usable(&text, home).map(drop) } else { is_part_usable(&text) };
        is_usable.map_err(NotWritten::Unusable)
    })?;
    // Somebody else holds the lock, and so is changing the file.
    written.ok_or(NotWritten::Changed)
}

fn value_of(root: &Object) -> serde_json::Result<Value> {
    serde_json::to_value(root)
}

fn only_followed(mut root: Map<String, Value>) -> Map<String, Value> {
    root.retain(|key, _| is_followed(key));
    root
}

fn is_followed(key: &str) -> bool {
    key == EXPERIMENT || PEOPLE.contains(&key)
}
