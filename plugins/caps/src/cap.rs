//! How much of a message is kept, and from which end.

use pmk_policy_sdk::{Cap, CapVerdict, Incoming, level, log};

use crate::{
    Caps, cut,
    look::{LOOKED_AT, Look},
    names, settings,
};

impl Cap for Caps {
    fn cap(incoming: &Incoming, verdict: &CapVerdict) {
        let cap = allowed(incoming);
        if incoming.chars() <= cap {
            return;
        }
        let looked_at = LOOKED_AT.min(incoming.chars());
        let (start, end) = (incoming.text(0, looked_at), incoming.text(incoming.chars() - looked_at, looked_at));
        // The last line is incomplete, because only part of the text was read.
        let look = Look::of(start.rsplit_once('\n').map_or(start.as_str(), |(whole, _)| whole), &end);
        let tail = tail_of(look, cap);
        let start = incoming.text(0, cap - tail);
        let end = incoming.text(incoming.chars() - tail, tail);
        match look {
            Look::Json => verdict.shorten(cut::json_head(&start), cut::json_tail(&end)),
            Look::Table | Look::Log => verdict.shorten(cut::lines_head(&start), cut::lines_tail(&end)),
            Look::Text => verdict.shorten(cap - tail, tail),
        }
    }
}

/// The cap in characters: by name, otherwise by kind.
fn allowed(incoming: &Incoming) -> u32 {
    let list = settings::BY_NAME.value();
    let (by_name, unread) = names::cap_of(&list, &incoming.name());
    for word in unread {
        log(level::WARN, &format!("`{word}` in `by-name` is not `NAME=CHARACTERS`"));
    }
    by_name.unwrap_or_else(|| settings::CAPS.of(incoming)).max(1)
}

/// How much of it is for the end: a log has errors at its end, a table its columns at its start.
fn tail_of(look: Look, cap: u32) -> u32 {
    match look {
        Look::Json => cap / 2,
        Look::Table => cap / 5,
        Look::Log => cap - cap / 5,
        Look::Text => cap / 3,
    }
}
