//! Finds people in the lists of gateway.json. Whitespace around an id is ignored, as wherever the lists are used.

use crate::config::{Json, Object};

/// Whether this entry of a list is the person.
pub(super) fn is(entry: &Json, user: &str) -> bool {
    entry.as_str().is_some_and(|entry| entry.trim() == user)
}

/// Whether somebody is on the blocklist. No command changes it: that is reserved for the owner of the host.
pub(super) fn is_blocked(root: &Object, user: &str) -> bool {
    matches!(root.get("blocklist"), Some(Json::List(blocked)) if blocked.iter().any(|blocked| is(blocked, user)))
}
