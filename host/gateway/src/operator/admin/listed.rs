//! Finds people in the lists of gateway.json. Whitespace around an id is ignored, as wherever the lists are used.

use crate::config::{Json, Object};

/// Whether this entry of a list is the person.
pub(super) fn is(entry: &Json, user: &str) -> bool {
    entry.as_str().is_some_and(|entry| entry.trim() == user)
}

/// The texts in a list.
pub(super) fn texts(root: &Object, key: &str) -> Vec<String> {
    match root.get(key) {
        Some(Json::List(list)) => list.iter().filter_map(Json::as_str).map(str::to_owned).collect(),
        _ => vec![],
    }
}

/// Whether somebody is on the blocklist. No command changes it: that is reserved for the owner of the host.
pub(super) fn is_blocked(root: &Object, user: &str) -> bool {
    matches!(root.get("blocklist"), Some(Json::List(blocked)) if blocked.iter().any(|blocked| is(blocked, user)))
}
