//! Who is ignored, as a change of gateway.json finds it. Nothing here changes it: that is the owner's of the host.

use crate::config::{Json, Object};

/// Whether somebody is on the blocklist. Blanks around an id do not count.
pub(super) fn is_blocked(root: &Object, user: &str) -> bool {
    let Some(Json::List(blocked)) = root.get("blocklist") else { return false };
    blocked.iter().any(|blocked| blocked.as_str().is_some_and(|blocked| blocked.trim() == user))
}
