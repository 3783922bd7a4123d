//! The permission check: may somebody do this? It runs once for everything that comes in: for messages and slash
//! commands when their turn begins, for reactions and clicks when they arrive. It also runs before a message is sent to
//! somebody who has not just written.
//!
//! Rules that depend on the object itself are checked where that object is known: only the person who gave an answer
//! may judge it, only the asker may confirm a question, and only the asker and the admins may stop its answer or have
//! it asked again.

use serde::Serialize;

use crate::access::people::People;

/// What somebody is about to do or to receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Write to the model.
    Speak,
    /// Give the gateway a command, in a message or as a slash command.
    Command,
    /// View or change the setup of the gateway by a command.
    Administer,
    /// Answer a question that was put to them.
    Answer,
    /// Approve or reject an atom, or a question that is to be put to others, by a reaction or a button.
    Judge,
    /// Vote on an answer by a reaction or a button.
    Vote,
    /// Stop an answer that is being made.
    Stop,
    /// Have a question asked again.
    Again,
    /// Click something that none of the gateway's messages offers.
    Interact,
    /// Receive something that they have not just asked for: a question, an answer, notices for the admins.
    Hear,
}

/// Where it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Venue {
    /// In a direct message with the gateway.
    Direct,
    /// Where others see it.
    Channel,
    /// Unknown, or in no conversation.
    Nowhere,
}

impl Venue {
    /// Derives the venue from a channel id: on all fronts, the ids of direct messages begin with a D.
    pub fn of(channel: Option<&str>) -> Venue {
        match channel {
            Some(channel) if channel.starts_with('D') => Venue::Direct,
            Some(_) => Venue::Channel,
            None => Venue::Nowhere,
        }
    }
}

/// The result of a permission check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessDecision {
    Allowed,
    Refused { reason: Reason },
}

/// Why somebody may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// They are on the blocklist of gateway.json.
    Blocked,
    /// Others would see it.
    NotADirectMessage,
    /// They are not among the `admins` of gateway.json.
    NotAnAdmin,
    /// An app has written it in their name.
    ByApp,
}

impl Reason {
    /// The wording in the admin log.
    pub const fn name(self) -> &'static str {
        match self {
            Reason::Blocked => "on the blocklist",
            Reason::NotADirectMessage => "not a direct message",
            Reason::NotAnAdmin => "not an admin",
            Reason::ByApp => "written by an app",
        }
    }
}

impl AccessDecision {
    /// Whether it is allowed.
    pub const fn is_allowed(self) -> bool {
        matches!(self, AccessDecision::Allowed)
    }
}

/// Whether somebody may do this there. The blocklist takes precedence over every role: contact, admin, asker. In a
/// channel the reason never reveals who is an admin.
pub fn may(people: &People, actor: &str, action: Action, place: Venue) -> AccessDecision {
    let refused = |reason| AccessDecision::Refused { reason };
    match action {
        _ if people.is_blocked(actor) => refused(Reason::Blocked),
        Action::Administer if place != Venue::Direct => refused(Reason::NotADirectMessage),
        Action::Administer if !people.is_admin(actor) => refused(Reason::NotAnAdmin),
        Action::Administer
        | Action::Speak
        | Action::Command
        | Action::Answer
        | Action::Judge
        | Action::Vote
        | Action::Stop
        | Action::Again
        | Action::Interact
        | Action::Hear => AccessDecision::Allowed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACTIONS: [Action; 10] = [
        Action::Speak,
        Action::Command,
        Action::Administer,
        Action::Answer,
        Action::Judge,
        Action::Vote,
        Action::Stop,
        Action::Again,
        Action::Interact,
        Action::Hear,
    ];
    const PLACES: [Venue; 3] = [Venue::Direct, Venue::Channel, Venue::Nowhere];

    #[test]
    fn who_is_blocked_may_do_nothing_whatever_else_they_are() {
        let blocklist = vec!["U9".into(), " U8 ".into()];
        let people = People { admins: vec!["U9".into(), "U1".into()], blocklist, ..People::default() };
        for (action, place) in ACTIONS.into_iter().flat_map(|action| PLACES.map(|place| (action, place))) {
            for blocked in ["U8", "U9"] {
                let ruling = may(&people, blocked, action, place);
                assert_eq!(ruling, AccessDecision::Refused { reason: Reason::Blocked }, "{action:?} {place:?}");
            }
            for other in ["U1", "u9", "U99", ""] {
                let is_open = action != Action::Administer || (other == "U1" && place == Venue::Direct);
                assert_eq!(may(&people, other, action, place).is_allowed(), is_open, "{other} {action:?} {place:?}");
            }
        }
    }

    #[test]
    fn only_admins_administer_and_nobody_in_a_channel_learns_who_they_are() {
        let people = People { admins: vec![" U1 ".into()], ..People::default() };
        let ruling = |actor, channel| may(&people, actor, Action::Administer, Venue::of(channel));
        assert_eq!(ruling("U1", Some("D1")), AccessDecision::Allowed);
        assert_eq!(ruling("U2", Some("D2")), AccessDecision::Refused { reason: Reason::NotAnAdmin });
        assert_eq!(ruling("", Some("D2")), AccessDecision::Refused { reason: Reason::NotAnAdmin });
        for actor in ["U1", "U2"] {
            for channel in [Some("C1"), Some("G1"), Some(""), None] {
                assert_eq!(
                    ruling(actor, channel),
                    AccessDecision::Refused { reason: Reason::NotADirectMessage },
                    "{channel:?}"
                );
            }
        }
    }
}
