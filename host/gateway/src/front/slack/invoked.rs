//! Slash commands and clicks: who uses them, and where.

use serde::Deserialize;

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

#[derive(Deserialize)]
#[serde(untagged)]
enum Payload {
    Slash {
        user_id: String,
        channel_id: String,
    },
    Click {
        #[serde(deserialize_with = "json::object")]
        user: Id,
        channel: Option<Id>,
    },
}

#[derive(Deserialize)]
struct Id {
    id: String,
}

/// Reads one.
///
/// # Errors
/// An id is none; or it names nobody.
pub(super) fn read(text: &str) -> Result<Invocation, &'static str> {
    let Envelope { payload } = json::read_object(text).map_err(|_| "user")?;
    let (user, channel, action) = match payload {
        Payload::Slash { user_id, channel_id } => (user_id, Some(channel_id), Action::SlashCommand),
        Payload::Click { user, channel } => (user.id, channel.map(|channel| channel.id), Action::Interact),
    };
    let ids = [("user", Some(&user)), ("channel", channel.as_ref())];
    match malformed(ids.into_iter().filter_map(|(name, id)| Some((name, id?.as_str())))) {
        Some(field) => Err(field),
        None => Ok(Invocation { user, channel, action }),
    }
}
