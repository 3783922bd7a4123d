//! Sets and removes audiences.

use std::path::Path;

use super::error::ChangeError;
use crate::slack_id::Id;
use crate::{access::audience::Audience, config};

/// Sets the audience of everybody without their own.
///
/// # Errors
/// The audience is unknown, or gateway.json cannot be changed.
pub fn set_default_audience(home: &Path, audience: &str) -> Result<Audience, ChangeError> {
    let audience: Audience = audience.parse()?;
    config::edit(home, |root| {
        root.object_at(&["audience"])?.set("default", audience.name());
        Ok(audience)
    })
}

/// Sets the audience of a person or a channel.
///
/// # Errors
/// The audience is unknown, the id is invalid, or gateway.json cannot be changed.
pub fn set_audience(home: &Path, id: &str, audience: &str) -> Result<Audience, ChangeError> {
    let key = key_of(Id::parse(id)?);
    let audience: Audience = audience.parse()?;
    config::edit(home, |root| {
        root.object_at(&["audience", key])?.set(id, audience.name());
        Ok(audience)
    })
}

/// Removes a person's or a channel's own audience.
///
/// # Errors
/// The id is invalid or has no audience of its own, or gateway.json cannot be changed.
pub fn unset_audience(home: &Path, id: &str) -> Result<(), ChangeError> {
    let key = key_of(Id::parse(id)?);
    config::edit(home, |root| match root.object_at(&["audience", key])?.remove(id) {
        true => Ok(()),
        false => Err(ChangeError::NoAudience(id.to_owned())),
    })
}

fn key_of(id: Id<'_>) -> &'static str {
    match id {
        Id::User(_) => "users",
        Id::Channel(_) => "channels",
    }
}
