//! What a conversation is shown of tool calls.

use serde::{Deserialize, Serialize};

/// What people see of tool calls (specification 004 §3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verbosity {
    /// Nothing at all, not even that work is going on.
    Off,
    /// The progress, while the turn is under way.
    #[default]
    Progress,
    /// One line for each call.
    Summary,
    /// One line for each call, and for readers of code its result.
    Full,
}

impl Verbosity {
    const ALL: [Verbosity; 4] = [Verbosity::Off, Verbosity::Progress, Verbosity::Summary, Verbosity::Full];

    /// Returns its name.
    pub const fn name(self) -> &'static str {
        match self {
            Verbosity::Off => "off",
            Verbosity::Progress => "progress",
            Verbosity::Summary => "summary",
            Verbosity::Full => "full",
        }
    }

    /// Returns the verbosity that a message orders: `verbose off|progress|summary|full`, and nothing else.
    pub fn ordered(text: &str) -> Option<Verbosity> {
        let mut words = text.split_whitespace();
        let (order, value, more) = (words.next()?, words.next()?, words.next());
        if more.is_some() || !order.trim_start_matches('/').eq_ignore_ascii_case("verbose") {
            return None;
        }
        Verbosity::from_name(value)
    }

    /// Returns the verbosity of that name.
    pub fn from_name(name: &str) -> Option<Verbosity> {
        Verbosity::ALL.into_iter().find(|verbosity| verbosity.name().eq_ignore_ascii_case(name))
    }
}
