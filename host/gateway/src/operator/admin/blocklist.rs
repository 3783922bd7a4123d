//! Reads the blocklist during a change of gateway.json. No command changes it: that is reserved for the owner of the
//! host.

use crate::config::{Json, Object};

/// Whether somebody is on the blocklist. Whitespace around an id is ignored.
pub(super) fn is_blocked(root: &Object, user: &str) -> bool {
    let Some(Json::List(blocked)) = root.get("blocklist") else { return false };
    blocked.iter().any(|blocked| blocked.as_str().is_some_and(|blocked| blocked.trim() == user))
}
