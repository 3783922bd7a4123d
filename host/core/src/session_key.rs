//! Which conversation a message belongs to.
//!
//! Top-level direct messages of one person share a session; every thread has its own; a channel's top level has one
//! (specification 003 §2). Context never crosses from one key to another.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::text;

/// The front a conversation takes place on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FrontName {
    /// `slack`.
    Slack,
    /// `console`: the terminal.
    Console,
}

/// Where on the front a conversation takes place.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// The direct messages with this user.
    Dm(String),
    /// This channel.
    Channel(String),
}

/// The maximum length of an id, in characters.
pub const MAX_ID_CHARS: usize = 128;

/// Whether a text can be the id of a user, a channel or a thread: a key made of it can be parsed back and is safe to
/// print on a terminal.
pub fn is_id(text: &str) -> bool {
    let allowed = |c: char| c.is_alphanumeric() || (c.is_ascii_punctuation() && c != ':');
    !text.is_empty() && text.chars().all(allowed) && text.chars().nth(MAX_ID_CHARS).is_none()
}

/// The key of a conversation. As text: `slack:dm:U`, `slack:dm:U:TS`, `slack:channel:C`, `slack:channel:C:TS`; console
/// keys begin with `console:`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SessionKey {
    /// The front; conversations are never shared between fronts.
    pub front: FrontName,
    /// The person of the direct messages, or the channel.
    pub place: Place,
    /// The timestamp of the thread's first message.
    pub thread: Option<String>,
}

/// A text that is not a session key.
#[derive(Debug, Error, PartialEq, Eq)]
#[error(
    "`{}` is not a session key; a key looks like `slack:dm:U1`, `slack:dm:U1:1700000000.000100`, `slack:channel:C1` or \
     `console:dm:U1`",
    text::one_line(text::head(.0, 200))
)]
pub struct BadSessionKey(pub String);

impl fmt::Display for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let front = match self.front {
            FrontName::Slack => "slack",
            FrontName::Console => "console",
        };
        match &self.place {
            Place::Dm(user) => write!(f, "{front}:dm:{user}")?,
            Place::Channel(channel) => write!(f, "{front}:channel:{channel}")?,
        }
        match &self.thread {
            Some(thread) => write!(f, ":{thread}"),
            None => Ok(()),
        }
    }
}

impl FromStr for SessionKey {
    type Err = BadSessionKey;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || BadSessionKey(text.to_owned());
        let mut parts = text.split(':');
        let front = match parts.next() {
            Some("slack") => FrontName::Slack,
            Some("console") => FrontName::Console,
            _ => return Err(bad()),
        };
        let kind = parts.next().ok_or_else(bad)?;
        let id = parts.next().filter(|id| is_id(id)).ok_or_else(bad)?.to_owned();
        let place = match kind {
            "dm" => Place::Dm(id),
            "channel" => Place::Channel(id),
            _ => return Err(bad()),
        };
        let thread = match parts.next() {
            Some(thread) if !is_id(thread) => return Err(bad()),
            thread => thread.map(str::to_owned),
        };
        if parts.next().is_some() {
            return Err(bad());
        }
        Ok(SessionKey { front, place, thread })
    }
}

impl TryFrom<String> for SessionKey {
    type Error = BadSessionKey;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<SessionKey> for String {
    fn from(key: SessionKey) -> Self {
        key.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_survive_the_round_trip() {
        for text in [
            "slack:dm:U1",
            "slack:dm:U1:1700000000.000100",
            "slack:channel:C1",
            "slack:channel:C1:1700000000.000100",
            "console:dm:U1",
        ] {
            let key: SessionKey = text.parse().expect(text);
            assert_eq!(key.to_string(), text);
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "slack", "slack:dm", "slack:dm:", "slack:dm:U:", "irc:dm:U", "slack:x:U", "slack:dm:U:1:2"] {
            assert!(text.parse::<SessionKey>().is_err(), "{text}");
        }
    }

    #[test]
    fn what_a_terminal_would_obey_is_in_no_key() {
        let long = format!("slack:dm:{}", "U".repeat(MAX_ID_CHARS + 1));
        for text in ["slack:dm:U\u{1b}[2J", "slack:dm:U\n", "slack:dm:U V", "slack:dm:U:\u{202e}1", long.as_str()] {
            let error = text.parse::<SessionKey>().expect_err(text).to_string();
            assert!(!error.contains(char::is_control), "{error:?}");
        }
        assert!("console:dm:王小明:1.2".parse::<SessionKey>().is_ok());
    }
}
