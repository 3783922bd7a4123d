//! Removes from a broken history what no provider would accept.

use crate::{
    message::{Block, Message, Origin, Role},
    structure,
};

/// A history in which every tool block has its partner, no message is empty, and a user's question comes first.
#[derive(Clone, Debug, PartialEq)]
pub struct Repaired {
    /// The remaining messages, each with its index in the history.
    pub messages: Vec<(usize, Message)>,
    /// What was removed, one line each.
    pub repairs: Vec<String>,
}

/// Removes what no provider accepts: messages before the first question, tool calls without a result, results without a
/// call (specification 002), and empty messages. Reports what it removed.
pub fn repair(messages: Vec<Message>) -> Repaired {
    repair_numbered(messages.into_iter().enumerate().collect())
}

/// As [`repair`], for the remaining messages of a longer history, each with its index there.
pub fn repair_numbered(messages: Vec<(usize, Message)>) -> Repaired {
    let says = |block: &Block| matches!(block, Block::Text { .. }) && !block.is_blank();
    let asks = |message: &Message| message.role == Role::User && message.blocks.iter().any(says);
    let first = messages.iter().position(|(_, message)| asks(message)).unwrap_or(messages.len());
    let mut left = Vec::with_capacity(messages.len() - first);
    let mut repairs = Vec::new();
    for (at, (index, message)) in messages.into_iter().enumerate() {
        if message.is_blank() {
            repairs.push(format!("message {index}: it is empty and left out"));
        } else if at < first {
            repairs.push(format!("message {index}: it comes before the first question and is left out"));
        } else {
            left.push((index, message));
        }
    }
    take_out_orphans(&mut left, &mut repairs);
    Repaired { messages: left, repairs }
}

/// Removes tool blocks without a partner. The two halves of a pair are in the same round, so removing orphans creates
/// no further ones.
fn take_out_orphans(messages: &mut Vec<(usize, Message)>, repairs: &mut Vec<String>) {
    let view: Vec<&Message> = messages.iter().map(|(_, message)| message).collect();
    let orphans = structure::pair_tools(&view).orphans;
    for of_message in orphans.chunk_by(|(a, _), (b, _)| a == b) {
        let (index, message) = &mut messages[of_message[0].0];
        let mut orphans = of_message.iter().map(|&(_, block)| block).peekable();
        let mut at = 0;
        message.blocks.retain(|block| {
            let stays = orphans.next_if_eq(&at).is_none();
            at += 1;
            if !stays {
                repairs.push(match block {
                    Block::ToolUse { name, .. } => {
                        format!("message {index}: a call of `{name}` without a result is left out")
                    }
                    _ => format!("message {index}: a tool result without its call is left out"),
                });
            }
            stays
        });
        if message.origin == Origin::ToolResult && !message.has_tools() {
            message.origin = Origin::User;
        }
    }
    messages.retain(|(_, message)| !message.is_blank());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::History;

    #[test]
    fn a_question_in_front_of_which_the_call_is_missing_is_kept() {
        let history = History::parse(
            r#"[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"r"},
                                          {"type":"text","text":"and now?"}]},
                {"role":"assistant","content":""},
                {"role":"assistant","content":"done"}]"#,
        )
        .expect("a history");
        let repaired = repair(history.messages);
        assert_eq!(repaired.messages[0], (0, Message::user("and now?")));
        assert_eq!(repaired.messages.len(), 2);
        assert_eq!(repaired.repairs.len(), 2);
    }

    #[test]
    fn broken_pairs_are_repaired_and_told() {
        let history = History::parse(
            r#"[{"role":"assistant","content":"hello"},
                {"role":"user","content":"q"},
                {"role":"assistant","content":[{"type":"text","text":"let me see"},
                                               {"type":"tool_use","id":"a","name":"ls","input":{}}]},
                {"role":"user","content":"never mind"},
                {"role":"assistant","content":"ok"},
                {"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"late"}]}]"#,
        )
        .expect("a history");
        let repaired = repair(history.messages);
        let left: Vec<usize> = repaired.messages.iter().map(|(index, _)| *index).collect();
        assert_eq!(left, [1, 2, 3, 4]);
        assert_eq!(repaired.messages[1].1.blocks.len(), 1);
        assert_eq!(repaired.repairs.len(), 3);
    }
}
