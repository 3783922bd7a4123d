//! The one question about permission: may somebody do this? Every door asks it, once for each thing that comes in,
//! by what it is: messages and slash commands when their turn begins; reactions and clicks when they arrive. So does
//! whoever is about to say something to somebody who has not just spoken.
//!
//! What follows from a thing itself (only who gave an answer may judge it, only who asked may confirm a question, and
//! only they and the admins stop its answer or have it asked again) is
//! decided where that thing is known.

use serde::Serialize;

use crate::access::people::People;

/// What somebody is about to do, or is about to get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Write to the model.
    Speak,
    /// Give the gateway an order, in a message or by a slash command.
    Command,
    /// Look at how the gateway is set up, or change it, by such an order.
    Administer,
    /// Answer what was asked of them.
    Answer,
    /// Say yes or no by a reaction or a button: to an atom, or to a question that is to be put to others.
    Judge,
    /// Say by a reaction or a button what they think of an answer.
    Vote,
    /// Stop an answer that is being made.
    Stop,
    /// Have a question taken up once more.
    Again,
    /// Click something that none of our messages offers.
    Interact,
    /// Get to read something that they have not just asked for: a question, an answer, news for the admins.
    Hear,
}

/// Where it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Venue {
    /// Between them and the gateway.
    Direct,
    /// Where others see it.
    Channel,
    /// Nobody says, or it is in no conversation.
    Nowhere,
}

impl Venue {
    /// The place that a front calls so: the ids of direct messages begin with a D on all of them.
    pub fn of(channel: Option<&str>) -> Venue {
        match channel {
            Some(channel) if channel.starts_with('D') => Venue::Direct,
            Some(_) => Venue::Channel,
            None => Venue::Nowhere,
        }
    }
}

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessDecision {
    Allowed,
    Refused { reason: Reason },
}

/// Why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// They are on the blocklist of gateway.json.
    Blocked,
    /// Others would see it.
    NotADirectMessage,
    /// They are not among the `admins` of gateway.json.
    NotAnAdmin,
}

impl Reason {
    /// The words for it in the admin log.
    pub const fn name(self) -> &'static str {
        match self {
            Reason::Blocked => "on the blocklist",
            Reason::NotADirectMessage => "not a direct message",
            Reason::NotAnAdmin => "not an admin",
        }
    }
}

impl AccessDecision {
    /// Whether it is yes.
    pub const fn is_allowed(self) -> bool {
        matches!(self, AccessDecision::Allowed)
    }
}

/// Whether somebody may do this there. The blocklist goes before everything else that a person is: contact, admin, asker.
/// Who is an admin is told to nobody in a channel.
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
