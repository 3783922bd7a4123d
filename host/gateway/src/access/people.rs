//! Who is who, as gateway.json says: whom the gateway obeys, ignores, speaks to and asks.

use crate::{access::audience::Audiences, escalation::Pools};

/// The people of a gateway. A running one follows changes of them.
#[derive(Clone, Debug, Default)]
pub struct People {
    /// Users who may change it from where people talk, and who are told when something needs a person.
    pub admins: Vec<String>,
    /// Users that are ignored.
    pub blocklist: Vec<String>,
    /// Which system prompt a person gets.
    pub audience: Audiences,
    /// Who answers what neither documents nor code can.
    pub escalation: Pools,
}

impl People {
    /// Whether somebody is an admin. Blanks around an id in the file do not count.
    pub fn is_admin(&self, user: &str) -> bool {
        self.admins.iter().any(|admin| admin.trim() == user)
    }

    /// Whether somebody is ignored.
    pub fn is_blocked(&self, user: &str) -> bool {
        self.blocklist.iter().any(|blocked| blocked.trim() == user)
    }
}
