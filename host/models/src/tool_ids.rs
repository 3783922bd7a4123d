//! Ids and names of tool calls that providers accept.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use pmk_core::{Block, Message, text};

/// The maximum length of a tool's name: OpenAI's.
const MAX_NAME_CHARS: usize = 64;

/// Which ids a server accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ids {
    /// Any that are unique. Some proxies want back what they have put into them.
    AsGiven,
    /// Anthropic's: of `a-z A-Z 0-9 _ -`.
    Plain,
    /// Numbered, of nine letters and digits: Mistral takes no other ones, and all servers take these.
    Short,
}

/// For each message, the ids of its tool blocks in order, as they are sent.
///
/// Ids may repeat within a conversation, and come from other servers, or with an import; providers require unique ids,
/// and some have requirements of their own. A result belongs to the call with the same id in the
/// message before, by order where there are several.
pub fn unique(messages: &[impl AsRef<Message>], ids: Ids) -> Vec<Vec<Cow<'_, str>>> {
    let mut taken: HashSet<Cow<'_, str>> = HashSet::new();
    let mut open: HashMap<&str, Vec<Cow<'_, str>>> = HashMap::new();
    messages
        .iter()
        .map(AsRef::as_ref)
        .map(|message| {
            let mut calls: HashMap<&str, Vec<Cow<'_, str>>> = HashMap::new();
            let sent = message
                .blocks
                .iter()
                .filter_map(|block| match block {
                    Block::Text { .. } | Block::Image(_) => None,
                    Block::ToolUse { id, .. } => {
                        let wire = unused(id, ids, &mut taken);
                        calls.entry(id).or_default().insert(0, wire.clone());
                        Some(wire)
                    }
                    Block::ToolResult { tool_use_id, .. } => Some(
                        open.get_mut(tool_use_id.as_str()).and_then(Vec::pop).unwrap_or(Cow::Borrowed(tool_use_id)),
                    ),
                })
                .collect();
            open = calls;
            sent
        })
        .collect()
}

/// An id that the API accepts and that no earlier call has.
fn unused<'a>(id: &'a str, ids: Ids, taken: &mut HashSet<Cow<'a, str>>) -> Cow<'a, str> {
    let accepted = match ids {
        Ids::AsGiven => Cow::Borrowed(id),
        Ids::Plain => plain(id),
        Ids::Short => Cow::Owned(format!("call{:05}", taken.len() + 1)),
    };
    let base = match accepted {
        Cow::Borrowed(id) if !id.is_empty() => Cow::Borrowed(id),
        numbered if ids == Ids::Short => numbered,
        replaced => Cow::Owned(format!("toolu_{replaced}")),
    };
    let mut candidate = base.clone();
    let mut count = 1u32;
    while !taken.insert(candidate.clone()) {
        count += 1;
        candidate = Cow::Owned(format!("{base}-{count}"));
    }
    candidate
}

/// The name of a called tool, as it is sent. Models make up names, and what one server passes on is refused by another.
pub fn name(name: &str) -> Cow<'_, str> {
    match plain(text::head(name, MAX_NAME_CHARS)) {
        Cow::Borrowed("") => Cow::Borrowed("unknown"),
        plain => plain,
    }
}

/// The text with `_` for every character that providers refuse in ids and names.
fn plain(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(|c| if is_plain(c) { c } else { '_' }).collect())
}
