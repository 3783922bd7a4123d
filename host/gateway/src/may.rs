//! The one question about permission: may somebody do this? Every door asks it, once for each thing that comes in,
//! by what it is: messages when their turn begins; reactions, slash commands and clicks when they arrive. So does
//! whoever is about to say something to somebody who has not just spoken.
//!
//! What follows from a thing itself (only who gave an answer may judge it, only who asked may confirm a question) is
//! decided where that thing is known.

use serde::Serialize;

use crate::config::People;

/// What somebody is about to do, or is about to get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Write to the model.
    Speak,
    /// Give the gateway an order, in a message.
    Command,
    /// Answer what was asked of them.
    Answer,
    /// Say yes or no by a reaction: to an atom, or to a question that is to be put to others.
    Judge,
    /// Say by a reaction what they think of an answer.
    Vote,
    /// Use a slash command.
    SlashCommand,
    /// Click something in a message.
    Interact,
    /// Get to read something that they have not just asked for: a question, an answer, news for the admins.
    Hear,
}

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruling {
    Allowed,
    Refused { reason: Reason },
}

/// Why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// They are on the blocklist of gateway.json.
    Blocked,
}

impl Ruling {
    /// Whether it is yes.
    pub const fn is_allowed(self) -> bool {
        matches!(self, Ruling::Allowed)
    }
}

/// Whether somebody may do this. The blocklist goes before everything else that a person is: contact, admin, asker.
pub fn may(people: &People, actor: &str, _action: Action) -> Ruling {
    match people.blocklist.iter().any(|blocked| blocked.trim() == actor) {
        true => Ruling::Refused { reason: Reason::Blocked },
        false => Ruling::Allowed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_blocked_may_do_nothing_whatever_else_they_are() {
        let blocklist = vec!["U9".into(), " U8 ".into()];
        let people = People { admins: vec!["U9".into(), "U1".into()], blocklist, ..People::default() };
        let actions = [
            Action::Speak,
            Action::Command,
            Action::Answer,
            Action::Judge,
            Action::Vote,
            Action::SlashCommand,
            Action::Interact,
            Action::Hear,
        ];
        for action in actions {
            for blocked in ["U8", "U9"] {
                assert_eq!(may(&people, blocked, action), Ruling::Refused { reason: Reason::Blocked }, "{action:?}");
            }
            for other in ["U1", "u9", "U99", ""] {
                assert!(may(&people, other, action).is_allowed(), "{other} {action:?}");
            }
        }
    }
}
