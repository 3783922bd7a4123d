//! Sets and removes audiences.

use std::path::Path;

use super::error::ChangeError;
use crate::slack_id::Id;
use crate::{
    access::audience::Audience,
    config::{self, Json, Object},
};

/// Sets the audience of everybody without their own.
///
/// # Errors
/// The audience is unknown, or gateway.json cannot be changed.
pub(super) fn set_default_audience(home: &Path, audience: &str) -> Result<(), ChangeError> {
    let audience: Audience = audience.parse()?;
    config::edit(home, |root| {
        root.object_at(&["audience"])?.set("default", audience.name());
        Ok(())
    })
}

/// Sets the audience of a person or a channel.
///
/// # Errors
/// The audience is unknown, the id is invalid, or gateway.json cannot be changed.
pub(super) fn set_audience(home: &Path, id: &str, audience: &str) -> Result<(), ChangeError> {
    let key = key_of(Id::parse(id)?);
    let audience: Audience = audience.parse()?;
    config::edit(home, |root| {
        root.object_at(&["audience", key])?.set(id, audience.name());
        Ok(())
    })
}

/// Removes a person's or a channel's own audience, or an entry that the file has by mistake, whatever it is called.
///
/// # Errors
/// The file has no such entry, or cannot be changed.
pub(super) fn unset_audience(home: &Path, id: &str) -> Result<(), ChangeError> {
    config::edit(home, |root| {
        let holding: Vec<&str> = ["users", "channels"].into_iter().filter(|key| holds(root, key, id)).collect();
        if holding.is_empty() {
            Id::parse(id)?;
            return Err(ChangeError::NoAudience(id.to_owned()));
        }
        for key in holding {
            root.object_at(&["audience", key])?.remove(id);
        }
        Ok(())
    })
}

/// Whether there is an entry under this key of `audience`.
fn holds(root: &Object, key: &str, id: &str) -> bool {
    let Some(Json::Object(audience)) = root.get("audience") else { return false };
    matches!(audience.get(key), Some(Json::Object(entries)) if entries.contains(id))
}

fn key_of(id: Id<'_>) -> &'static str {
    match id {
        Id::User(_) => "users",
        Id::Channel(_) => "channels",
    }
}
