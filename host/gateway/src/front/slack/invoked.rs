//! Slash commands and clicks: who uses them, and where.

use serde::Deserialize;
use serde_json::Value;

use crate::{
    front::{Invocation, malformed},
    json,
    may::Action,
};

/// An envelope of type `slash_commands` or `interactive`. Of a view nobody says in which channel it is.
#[derive(Deserialize)]
struct Envelope {
    #[serde(deserialize_with = "json::object")]
    payload: Payload,
}

/// What says who and where: texts of a slash command, objects with an id of a click.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Payload {
    user_id: Value,
    channel_id: Value,
    user: Value,
    channel: Value,
}

/// Reads one.
///
/// # Errors
/// An id is none; or it names nobody.
pub(super) fn read(text: &str) -> Result<Invocation, &'static str> {
    let Envelope { payload } = json::read_object(text).map_err(|_| "payload")?;
    let (user, channel, action) = match (payload.user_id.as_str(), payload.channel_id.as_str()) {
        (Some(user), Some(channel)) => (user, Some(channel), Action::SlashCommand),
        _ => {
            let user = payload.user["id"].as_str().ok_or("user")?;
            let channel = match &payload.channel {
                Value::Null => None,
                channel => Some(channel["id"].as_str().ok_or("channel")?),
            };
            (user, channel, Action::Interact)
        }
    };
    let ids = [("user", Some(user)), ("channel", channel)];
    match malformed(ids.into_iter().filter_map(|(name, id)| Some((name, id?)))) {
        Some(field) => Err(field),
        None => Ok(Invocation { user: user.to_owned(), channel: channel.map(str::to_owned), action }),
    }
}
