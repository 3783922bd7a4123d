//! The keys of gateway.json that a running gateway follows and that the hosts of one database share.

use std::{io, path::Path};

use pmk_system::{files, home};
use serde_json::{Map, Value};

use super::{
    Config,
    document::Json,
    edit::{EditError, edit_if_free},
    object,
};

/// The shared keys that say who is who.
pub const PEOPLE: [&str; 4] = ["admins", "blocklist", "audience", "escalation"];
/// The other shared key, which is written as a whole, rather than a collection that several people add to.
pub const EXPERIMENT: &str = "experiment";

const VERSION_KEY: &str = "version";

/// What a file says in the shared keys.
#[derive(Debug, Default)]
pub struct SharedKeys {
    /// The keys, including those that are `null`.
    pub keys: Map<String, Value>,
    /// Why the experiment is not among them although the file has one: it is invalid.
    pub without_experiment: Option<String>,
}

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

/// Returns the shared keys of a home's file; `None` if there is no file. Another key may be invalid here, as one of a
/// newer version is.
///
/// # Errors
/// The file cannot be read or trusted, or what it says of people is invalid.
pub fn followed(home: &Path) -> Result<Option<SharedKeys>, EditError> {
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
fn part_of(text: &str, home: &Path) -> Result<SharedKeys, String> {
    let mut keys = object(text)?;
    keys.retain(|key, _| key == VERSION_KEY || is_followed(key));
    let usable = |keys: &Map<String, Value>| Config::usable(&Value::Object(keys.clone()).to_string(), home).map(drop);
    let mut without_experiment = None;
    if let Err(why) = usable(&keys) {
        // A slip in an experiment keeps nobody from being blocked on every host.
        if keys.remove(EXPERIMENT).is_none() || usable(&keys).is_err() {
            return Err(why);
        }
        without_experiment = Some(why);
    }
    keys.remove(VERSION_KEY);
    Ok(SharedKeys { keys, without_experiment })
}

/// Writes the shared keys of a home's file, if they still equal `instead_of`. Everything else stays as it is, valid or
/// not, and so does an experiment that is invalid.
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
        let before = serde_json::to_string(root).map_err(unusable)?;
        let is_whole = Config::usable(&before, home).is_ok();
        let SharedKeys { keys: there, without_experiment } = part_of(&before, home).map_err(NotWritten::Unusable)?;
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
        let is_usable = match part_of(&text, home) {
            _ if is_whole => Config::usable(&text, home).map(drop),
            Ok(SharedKeys { without_experiment: Some(why), .. }) if without_experiment.is_none() => Err(why),
            written => written.map(drop),
        };
        is_usable.map_err(NotWritten::Unusable)
    })?;
    // Somebody else holds the lock, and so is changing the file.
    written.ok_or(NotWritten::Changed)
}

fn is_followed(key: &str) -> bool {
    key == EXPERIMENT || PEOPLE.contains(&key)
}
