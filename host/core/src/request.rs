//! The request format that every provider accepts: roles alternate, tool results come first, nothing is empty, every
//! call has a unique id.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::Arc,
};

use crate::message::{Block, Message, Role};

/// Merges adjacent messages of the same role. Within a user message, tool results go first, as Anthropic's Messages API
/// requires; empty texts, which it refuses, are left out; repeated call ids, which occur in imported histories, get a
/// number from the second use on. Messages that are sent unchanged are shared, not copied: a request may be as large as
/// the whole conversation.
pub fn alternate(messages: impl IntoIterator<Item = Arc<Message>>) -> Vec<Arc<Message>> {
    let mut out: Vec<Arc<Message>> = Vec::new();
    for mut message in messages {
        if message.is_blank() {
            continue;
        }
        if message.blocks.iter().any(Block::is_blank) {
            Arc::make_mut(&mut message).blocks.retain(|block| !block.is_blank());
        }
        match out.last_mut() {
            Some(last) if last.role == message.role => {
                Arc::make_mut(last).blocks.extend(Arc::unwrap_or_clone(message).blocks);
            }
            _ => out.push(message),
        }
    }
    for message in &mut out {
        let goes_later = |block: &Block| !matches!(block, Block::ToolResult { .. });
        if message.role == Role::User && !message.blocks.is_sorted_by_key(goes_later) {
            Arc::make_mut(message).blocks.sort_by_key(goes_later);
        }
    }
    number_repeated_ids(&mut out);
    out
}

/// Makes repeated ids unique. Results follow their calls: the first result of an id belongs to its first call.
fn number_repeated_ids(messages: &mut [Arc<Message>]) {
    let mut seen = HashSet::new();
    let mut calls = messages.iter().flat_map(|message| &message.blocks).filter_map(|block| match block {
        Block::ToolUse { id, .. } => Some(id.as_str()),
        _ => None,
    });
    if calls.all(|id| seen.insert(id)) {
        return;
    }
    let mut uses: HashMap<String, u32> = HashMap::new();
    let mut renamed: HashMap<String, VecDeque<String>> = HashMap::new();
    for message in messages {
        if message.role == Role::Assistant {
            renamed.clear();
        }
        if !message.has_tools() {
            continue;
        }
        for block in &mut Arc::make_mut(message).blocks {
            match block {
                Block::ToolUse { id, .. } => {
                    let unique = unused(&mut uses, id);
                    let old = std::mem::replace(id, unique.clone());
                    renamed.entry(old).or_default().push_back(unique);
                }
                Block::ToolResult { tool_use_id, .. } => {
                    if let Some(unique) = renamed.get_mut(tool_use_id).and_then(VecDeque::pop_front) {
                        *tool_use_id = unique;
                    }
                }
                Block::Text { .. } | Block::Image(_) => {}
            }
        }
    }
}

/// Returns the id itself the first time, then `id_2`, `id_3` …, skipping those in use.
fn unused(uses: &mut HashMap<String, u32>, id: &str) -> String {
    let mut unique = id.to_owned();
    while uses.contains_key(&unique) {
        let count = uses.entry(id.to_owned()).or_insert(1);
        *count = count.saturating_add(1);
        unique = format!("{id}_{count}");
    }
    uses.insert(unique.clone(), 1);
    unique
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Origin;

    fn alternate<const N: usize>(messages: [Message; N]) -> Vec<Arc<Message>> {
        super::alternate(messages.map(Arc::new))
    }

    #[test]
    fn a_marker_and_a_question_become_one_message() {
        let marker = crate::Marker::new(2).message();
        let joined = alternate([marker, Message::user("q"), Message::assistant("  "), Message::user("r")]);
        assert_eq!(joined.len(), 1);
        assert_eq!(joined[0].blocks.len(), 3);
    }

    #[test]
    fn repeated_ids_get_a_number() {
        let call = |id: &str| Block::ToolUse { id: id.into(), name: "ls".into(), input: serde_json::json!({}) };
        let result = |id: &str, content: &str| Block::ToolResult {
            tool_use_id: id.into(),
            content: content.into(),
            is_error: false,
        };
        let assistant = |blocks| Message { role: Role::Assistant, origin: Origin::Assistant, blocks };
        let user = |blocks| Message { role: Role::User, origin: Origin::ToolResult, blocks };
        let sent = alternate([
            Message::user("q"),
            assistant(vec![call("a"), call("a_2")]),
            user(vec![result("a_2", "second"), result("a", "first")]),
            assistant(vec![call("a"), call("a")]),
            user(vec![result("a", "third"), result("a", "fourth")]),
        ]);
        assert_eq!(sent[2].blocks, [result("a_2", "second"), result("a", "first")]);
        assert_eq!(sent[3].blocks, [call("a_3"), call("a_4")]);
        assert_eq!(sent[4].blocks, [result("a_3", "third"), result("a_4", "fourth")]);
    }

    #[test]
    fn results_go_before_text() {
        let result = Block::ToolResult { tool_use_id: "a".into(), content: "r".into(), is_error: false };
        let message = Message {
            role: Role::User,
            origin: Origin::ToolResult,
            blocks: vec![Block::Text { text: "and?".into() }, result.clone()],
        };
        assert_eq!(alternate([message])[0].blocks[0], result);
    }
}
