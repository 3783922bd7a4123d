//! The audience of an answer, and so how the model should speak (specification 003 §5).
//!
//! The audience of a turn is picked when the turn begins ([`Audiences::pick`]) and stored with it, so that a later
//! change does not affect earlier turns. [`Prompts`] has the system prompt for each.

use std::{collections::BTreeMap, fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use thiserror::Error;

mod prompts;

pub use prompts::{PromptProblem, Prompts, ToolCallFormat};

/// A kind of reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Audience {
    /// Wants files, endpoints and names.
    Tech,
    /// Knows the structure, asks in the terms of the product.
    Pm,
    /// Wants the meaning for the business.
    Biz,
    /// Wants conclusion, impact and action.
    Exec,
}

impl Audience {
    pub const ALL: [Audience; 4] = [Audience::Tech, Audience::Pm, Audience::Biz, Audience::Exec];

    /// The audience if nothing is configured. The default of pmk was first `tech`, then `pm`, then `biz`. `biz` also
    /// shows an unknown person no code, so it is used here.
    pub const FALLBACK: Audience = Audience::Biz;

    pub const fn name(self) -> &'static str {
        match self {
            Audience::Tech => "tech",
            Audience::Pm => "pm",
            Audience::Biz => "biz",
            Audience::Exec => "exec",
        }
    }
}

impl fmt::Display for Audience {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A text that names no audience.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("unknown audience `{0}`; use `tech`, `pm`, `biz` or `exec`")]
pub struct UnknownAudience(pub String);

impl FromStr for Audience {
    type Err = UnknownAudience;

    fn from_str(text: &str) -> Result<Self, UnknownAudience> {
        let name = text.trim();
        Audience::ALL
            .into_iter()
            .find(|audience| name.eq_ignore_ascii_case(audience.name()))
            .ok_or_else(|| UnknownAudience(text.to_owned()))
    }
}

/// The audiences of people and channels, as configured in gateway.json.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Audiences {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Audience>,
    pub users: BTreeMap<String, Audience>,
    pub channels: BTreeMap<String, Audience>,
}

impl Audiences {
    /// Returns the person's own setting, else the channel's, else the default, else [`Audience::FALLBACK`]. An empty
    /// channel counts as none.
    pub fn pick(&self, user: &str, channel: Option<&str>) -> Audience {
        self.users.get(user).copied().unwrap_or_else(|| self.of_channel(channel))
    }

    /// Returns the audience that reads along in a channel, whoever asks there.
    pub fn of_channel(&self, channel: Option<&str>) -> Audience {
        let own = channel.filter(|channel| !channel.is_empty()).and_then(|channel| self.channels.get(channel));
        own.copied().or(self.default).unwrap_or(Audience::FALLBACK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_person_goes_before_the_channel_before_the_default() {
        let mut audiences = Audiences::default();
        let pick = |audiences: &Audiences| {
            [
                audiences.pick("U1", Some("C1")),
                audiences.pick("U2", Some("C1")),
                audiences.pick("U2", Some("C2")),
                audiences.pick("U2", None),
            ]
        };
        assert_eq!(pick(&audiences), [Audience::Biz; 4]);
        audiences.default = Some(Audience::Tech);
        audiences.channels.insert("C1".into(), Audience::Exec);
        audiences.users.insert("U1".into(), Audience::Pm);
        assert_eq!(pick(&audiences), [Audience::Pm, Audience::Exec, Audience::Tech, Audience::Tech]);
        assert_eq!(["C1", "C2"].map(|channel| audiences.of_channel(Some(channel))), [Audience::Exec, Audience::Tech]);
    }

    #[test]
    fn an_empty_channel_is_none() {
        let mut audiences = Audiences::default();
        audiences.channels.insert(String::new(), Audience::Exec);
        assert_eq!(audiences.pick("U1", Some("")), Audience::FALLBACK);
    }

    #[test]
    fn names_survive_the_round_trip() {
        for audience in Audience::ALL {
            assert_eq!(audience.to_string().parse(), Ok(audience));
            assert_eq!(serde_json::to_value(audience).expect("JSON"), audience.name());
        }
        assert_eq!(" Tech ".parse(), Ok(Audience::Tech));
        assert_eq!("dev".parse::<Audience>(), Err(UnknownAudience("dev".into())));
    }
}
