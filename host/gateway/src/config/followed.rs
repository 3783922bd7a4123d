//! The keys of gateway.json that a running gateway follows and that the hosts of one database share.

use std::{io, path::Path};

use pmk_system::{files, home};
use serde_json::{Map, Value};

use super::{
    Config,
    document::{Json, Object},
    edit::{EditError, edit_if_free},
    refusal,
};

/// The shared keys.
pub const FOLLOWED: [&str; 5] = ["admins", "blocklist", "audience", "escalation", EXPERIMENT];
/// The shared key that is written as a whole, rather than a collection that several people add to.
pub const EXPERIMENT: &str = "experiment";

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

/// Returns the shared keys of a home's file, including those that are `null`; `None` if there is no file.
///
/// # Errors
/// The file cannot be read, or is invalid.
pub fn followed(home: &Path) -> Result<Option<Map<String, Value>>, EditError> {
    let path = home::config_file(home);
    let invalid = |what| EditError::Invalid { path: path.clone(), what };
    let text = match files::read_text(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => return Err(invalid(error.to_string())),
        text => text.map_err(|source| EditError::Io { action: "read", path: path.clone(), source })?,
    };
    if let (None, problems) = Config::parse(&text, home) {
        return Err(invalid(refusal(&problems)));
    }
    let root: Map<String, Value> = serde_json::from_str(&text).map_err(|error| invalid(error.to_string()))?;
    Ok(Some(only_followed(root)))
}

/// Writes the shared keys of a home's file, if they still equal `instead_of`. Everything else stays as it is.
///
/// # Errors
/// [`NotWritten`]; the file is as it was.
pub fn write_followed(
    home: &Path,
    wanted: &Map<String, Value>,
    instead_of: &Map<String, Value>,
) -> Result<(), NotWritten> {
    let written = edit_if_free(home, |root| {
        let unusable = |error: serde_json::Error| NotWritten::Unusable(error.to_string());
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
        match Config::parse(&text, home) {
            (Some(_), _) => Ok(()),
            (None, problems) => Err(NotWritten::Unusable(refusal(&problems))),
        }
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
