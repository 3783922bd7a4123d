//! The people in gateway.json: admins, blocked users, audiences and contacts.

use crate::{access::audience::Audiences, escalation::Pools, slack_id::Id};

/// The people of a gateway. A running gateway follows changes of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct People {
    /// Users who may change the gateway from a conversation, and who are notified when something needs a person.
    pub admins: Vec<String>,
    /// Users who are ignored.
    pub blocklist: Vec<String>,
    /// The audience of each person, which selects the system prompt.
    pub audience: Audiences,
    /// The contacts who answer what neither documents nor code can.
    pub escalation: Pools,
}

impl People {
    /// Whether somebody is an admin. Whitespace around an id in the file is ignored.
    pub fn is_admin(&self, user: &str) -> bool {
        self.admins.iter().any(|admin| admin.trim() == user)
    }

    /// Whether anybody can act as an admin: an entry that is no id of a person counts as little as a blocked one.
    pub fn has_admin(&self) -> bool {
        self.admins.iter().map(|admin| admin.trim()).any(|admin| Id::user(admin).is_ok() && !self.is_blocked(admin))
    }

    /// Whether somebody is ignored.
    pub fn is_blocked(&self, user: &str) -> bool {
        self.blocklist.iter().any(|blocked| blocked.trim() == user)
    }
}
