//! The shape every provider accepts: roles alternate, tool results come first, nothing is empty.

use crate::message::{Block, Message, Role};

/// Joins neighbours of the same role. Within a user message tool results go first, as Anthropic's
/// Messages API requires; empty texts, which it refuses, are left out.
pub fn alternate(messages: impl IntoIterator<Item = Message>) -> Vec<Message> {
    let mut out: Vec<Message> = Vec::new();
    for mut message in messages {
        message.blocks.retain(|block| !matches!(block, Block::Text { text } if text.trim().is_empty()));
        if message.blocks.is_empty() {
            continue;
        }
        match out.last_mut() {
            Some(last) if last.role == message.role => last.blocks.append(&mut message.blocks),
            _ => out.push(message),
        }
    }
    for message in &mut out {
        if message.role == Role::User {
            message.blocks.sort_by_key(|block| !matches!(block, Block::ToolResult { .. }));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Origin;

    #[test]
    fn a_marker_and_a_question_become_one_message() {
        let marker = crate::Marker::new(2).message();
        let joined = alternate([marker, Message::user("q"), Message::assistant("  "), Message::user("r")]);
        assert_eq!(joined.len(), 1);
        assert_eq!(joined[0].blocks.len(), 3);
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
