//! Converts messages to pmk's form, which has only texts. A tool call and its result become part of the answer they
//! led to, so that a question and its answer remain one pair for pmk.

use pmk_core::{Block, Message, Origin, Role};
use serde::{Deserialize, Serialize};

/// A message in pmk's form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Flat {
    pub role: Role,
    pub content: String,
}

/// Returns the messages with their blocks as text.
pub(super) fn flatten<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Vec<Flat> {
    let mut flat = Flattened::default();
    for message in messages {
        let results = message.blocks.iter().filter(|block| matches!(block, Block::ToolResult { .. }));
        let texts: Vec<String> = match message.role {
            Role::User => {
                results.for_each(|result| flat.add_to_answer(text(result)));
                message.blocks.iter().filter(|block| !matches!(block, Block::ToolResult { .. })).map(text).collect()
            }
            Role::Assistant => message.blocks.iter().map(text).collect(),
        };
        let content = texts.join("\n\n");
        match message.role {
            // A message that only answers a tool call has become part of the answer.
            Role::User if message.origin == Origin::ToolResult && content.trim().is_empty() => {}
            Role::Assistant if flat.answer_goes_on => flat.add_to_answer(content),
            role => flat.messages.push(Flat { role, content }),
        }
        flat.answer_goes_on = message.has_tools();
    }
    flat.messages
}

#[derive(Default)]
struct Flattened {
    messages: Vec<Flat>,
    /// Whether the previous message called a tool or carried a result.
    answer_goes_on: bool,
}

impl Flattened {
    fn add_to_answer(&mut self, content: String) {
        match self.messages.last_mut() {
            Some(last) if last.role == Role::Assistant => {
                last.content.push_str("\n\n");
                last.content.push_str(&content);
            }
            _ => self.messages.push(Flat { role: Role::Assistant, content }),
        }
    }
}

fn text(block: &Block) -> String {
    match block {
        Block::Text { text } => text.clone(),
        Block::ToolUse { name, input, .. } => format!("[tool_use {name}] {input}"),
        Block::ToolResult { content, is_error: false, .. } => format!("[tool_result] {content}"),
        Block::ToolResult { content, is_error: true, .. } => format!("[tool_result, failed] {content}"),
        Block::Image(image) => format!("[image {}×{}]", image.width, image.height),
    }
}

#[cfg(test)]
mod tests {
    use pmk_core::History;

    use super::*;

    #[test]
    fn a_turn_with_tools_becomes_one_question_and_one_answer() {
        let history = History::parse(
            r#"[{"role":"user","content":"q1"},
                {"role":"assistant","content":[{"type":"text","text":"let me see"},
                    {"type":"tool_use","id":"a","name":"ls","input":{"in":"."}}]},
                {"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x y"}]},
                {"role":"assistant","content":[{"type":"tool_use","id":"b","name":"cat","input":{}}]},
                {"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":"no","is_error":true}]},
                {"role":"assistant","content":"done"},
                {"role":"user","content":"q2"},
                {"role":"assistant","content":"one"},
                {"role":"assistant","content":"two"}]"#,
        )
        .expect("a history");
        let flat: Vec<(Role, String)> =
            flatten(&history.messages).into_iter().map(|flat| (flat.role, flat.content)).collect();
        let answer = "let me see\n\n[tool_use ls] {\"in\":\".\"}\n\n[tool_result] x y\n\n[tool_use cat] {}\n\n\
                      [tool_result, failed] no\n\ndone";
        assert_eq!(
            flat,
            [
                (Role::User, "q1"),
                (Role::Assistant, answer),
                (Role::User, "q2"),
                (Role::Assistant, "one"),
                (Role::Assistant, "two")
            ]
            .map(|(role, content)| (role, content.to_owned()))
        );
    }
}
