//! Ids of tool calls that providers accept.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use pmk_core::{Block, Message};

/// For each message, the ids of its tool blocks in order, as they are sent.
///
/// Ids may repeat within a conversation, and imported ones may contain any character; providers require unique ids, and
/// Anthropic requires them to consist of `a-z A-Z 0-9 _ -`. A result belongs to the call with the same id in the
/// message before, by order where there are several.
pub fn unique(messages: &[impl AsRef<Message>]) -> Vec<Vec<Cow<'_, str>>> {
    let mut taken: HashSet<Cow<'_, str>> = HashSet::new();
    let mut open: HashMap<&str, Vec<Cow<'_, str>>> = HashMap::new();
    messages
        .iter()
        .map(AsRef::as_ref)
        .map(|message| {
            let mut calls: HashMap<&str, Vec<Cow<'_, str>>> = HashMap::new();
            let ids = message
                .blocks
                .iter()
                .filter_map(|block| match block {
                    Block::Text { .. } | Block::Image(_) => None,
                    Block::ToolUse { id, .. } => {
                        let wire = unused(id, &mut taken);
                        calls.entry(id).or_default().insert(0, wire.clone());
                        Some(wire)
                    }
                    Block::ToolResult { tool_use_id, .. } => Some(
                        open.get_mut(tool_use_id.as_str()).and_then(Vec::pop).unwrap_or(Cow::Borrowed(tool_use_id)),
                    ),
                })
                .collect();
            open = calls;
            ids
        })
        .collect()
}

/// An id that the API accepts and that no earlier call has.
fn unused<'a>(id: &'a str, taken: &mut HashSet<Cow<'a, str>>) -> Cow<'a, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let base = if id.is_empty() || !id.chars().all(plain) {
        let replaced: String = id.chars().map(|c| if plain(c) { c } else { '_' }).collect();
        Cow::Owned(format!("toolu_{replaced}"))
    } else {
        Cow::Borrowed(id)
    };
    let mut candidate = base.clone();
    let mut count = 1u32;
    while !taken.insert(candidate.clone()) {
        count += 1;
        candidate = Cow::Owned(format!("{base}-{count}"));
    }
    candidate
}
