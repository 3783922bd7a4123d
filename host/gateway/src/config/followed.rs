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
use crate::access::people::People;

/// The shared keys.
pub const FOLLOWED: [&str; 5] = ["admins", "blocklist", "audience", "escalation", EXPERIMENT];
/// The shared key that is written as a whole, rather than a collection that several people add to.
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
/// The file cannot be read, or the keys are invalid.
pub fn followed(home: &Path) -> Result<Option<Map<String, Value>>, EditError> {
    let path = home::config_file(home);
    let invalid = |what| EditError::Invalid { path: path.clone(), what };
    let text = match files::read_text(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => return Err(invalid(error.to_string())),
        text => text.map_err(|source| EditError::Io { action: "read", path: path.clone(), source })?,
    };
    part_of(&text, home).map(|(part, _)| Some(part)).map_err(invalid)
}

/// Returns the people that a home's file names, as [`followed`] has them; `None` if they cannot be read.
pub fn people_of(home: &Path) -> Option<People> {
    let text = files::read_text(&home::config_file(home)).ok()?;
    part_of(&text, home).ok().map(|(_, config)| config.people)
}

/// Returns the shared keys of a file, and what they mean.
fn part_of(text: &str, home: &Path) -> Result<(Map<String, Value>, Config), String> {
    let mut root = object(text)?;
    let version = root.remove(VERSION_KEY);
    let part = only_followed(root);
    let mut alone = part.clone();
    alone.extend(version.map(|version| (VERSION_KEY.to_owned(), version)));
    let config = Config::usable(&Value::Object(alone).to_string(), home)?;
    Ok((part, config))
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
        for key in FOLLOWED {
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
    root.retain(|key, _| FOLLOWED.contains(&key.as_str()));
    root
}
