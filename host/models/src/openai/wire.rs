//! A request in the shape of chat completions.

use std::borrow::Cow;

use pmk_core::{Block, Message, Role};
use serde_json::{Value, json};

use crate::{Request, tool_ids};

/// What the room for the answer is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// `max_completion_tokens`
    Completion,
    /// `max_tokens`
    Tokens,
}

/// The body of one call. The tokens are asked for, since a stream does not tell them by itself.
pub fn body(model: &str, room: Room, max_tokens: u32, request: &Request) -> Vec<u8> {
    let mut messages = Vec::with_capacity(request.messages.len() + 1);
    if !request.system.trim().is_empty() {
        messages.push(json!({"role": "system", "content": request.system}));
    }
    let ids = tool_ids::unique(&request.messages);
    for (message, ids) in request.messages.iter().zip(&ids) {
        match message.role {
            Role::User => push_user(&mut messages, message, ids),
            Role::Assistant => messages.push(assistant(message, ids)),
        }
    }
    let mut body =
        json!({"model": model, "stream": true, "stream_options": {"include_usage": true}, "messages": messages});
    let room = match room {
        Room::Completion => "max_completion_tokens",
        Room::Tokens => "max_tokens",
    };
    body[room] = max_tokens.into();
    if !request.tools.is_empty() {
        body["tools"] = request
            .tools
            .iter()
            .map(|tool| {
                let function =
                    json!({"name": tool.name, "description": tool.description, "parameters": tool.input_schema});
                json!({"type": "function", "function": function})
            })
            .collect();
    }
    body.to_string().into_bytes()
}

/// Each tool result is a message of its own, right after the calls; what a person said comes after them.
fn push_user(messages: &mut Vec<Value>, message: &Message, ids: &[Cow<'_, str>]) {
    let mut ids = ids.iter();
    let mut texts = Vec::new();
    for block in &message.blocks {
        match block {
            Block::ToolResult { content, is_error, .. } => {
                // There is no field for it.
                let content =
                    if *is_error { Cow::Owned(format!("[error] {content}")) } else { Cow::Borrowed(content.as_str()) };
                messages.push(json!({"role": "tool", "tool_call_id": ids.next(), "content": content}));
            }
            Block::Text { text } => texts.push(text.as_str()),
            Block::ToolUse { .. } => {
                ids.next();
            }
        }
    }
    if !texts.is_empty() {
        messages.push(json!({"role": "user", "content": texts.join("\n\n")}));
    }
}

fn assistant(message: &Message, ids: &[Cow<'_, str>]) -> Value {
    let mut ids = ids.iter();
    let mut texts = Vec::new();
    let mut calls = Vec::new();
    for block in &message.blocks {
        match block {
            Block::Text { text } => texts.push(text.as_str()),
            Block::ToolUse { name, input, .. } => {
                let function = json!({"name": name, "arguments": input.to_string()});
                calls.push(json!({"id": ids.next(), "type": "function", "function": function}));
            }
            Block::ToolResult { .. } => {
                ids.next();
            }
        }
    }
    let content = if texts.is_empty() { Value::Null } else { texts.join("\n\n").into() };
    let mut wire = json!({"role": "assistant", "content": content});
    if !calls.is_empty() {
        wire["tool_calls"] = calls.into();
    }
    wire
}

#[cfg(test)]
mod tests {
    use pmk_core::{Origin, message};

    use super::*;
    use crate::Tool;

    fn sent(request: &Request) -> Value {
        serde_json::from_slice(&body("m", Room::Tokens, 10, request)).expect("JSON")
    }

    #[test]
    fn a_plain_conversation() {
        let messages = message::shared([Message::user("a"), Message::assistant("b"), Message::user("c")]);
        let request = Request { system: "be kind".into(), messages, ..Request::default() };
        assert_eq!(
            sent(&request),
            json!({
                "model": "m", "stream": true, "stream_options": {"include_usage": true}, "max_tokens": 10,
                "messages": [
                    {"role": "system", "content": "be kind"}, {"role": "user", "content": "a"},
                    {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"},
                ],
            })
        );
        let body: Value = serde_json::from_slice(&body("m", Room::Completion, 10, &request)).expect("JSON");
        assert_eq!((body.get("max_tokens"), &body["max_completion_tokens"]), (None, &json!(10)));
    }

    #[test]
    fn calls_and_results_stay_paired() {
        let call = |name: &str| Block::ToolUse { id: "x".into(), name: name.into(), input: json!({"q": name}) };
        let result =
            |content: &str, is_error| Block::ToolResult { tool_use_id: "x".into(), content: content.into(), is_error };
        let text = |text: &str| Block::Text { text: text.into() };
        let messages = vec![
            Message::user("q"),
            Message {
                role: Role::Assistant,
                origin: Origin::Assistant,
                blocks: vec![text("look"), call("a"), call("b")],
            },
            Message {
                role: Role::User,
                origin: Origin::ToolResult,
                blocks: vec![result("1", false), result("2", true), text("and?")],
            },
        ];
        let tool = Tool { name: "a".into(), description: "d".into(), input_schema: json!({"type": "object"}) };
        let body = sent(&Request { messages: message::shared(messages), tools: [tool].into(), ..Request::default() });
        let function = |name: &str| json!({"name": name, "arguments": format!("{{\"q\":\"{name}\"}}")});
        assert_eq!(
            body["messages"],
            json!([
                {"role": "user", "content": "q"},
                {"role": "assistant", "content": "look", "tool_calls": [
                    {"id": "x", "type": "function", "function": function("a")},
                    {"id": "x-2", "type": "function", "function": function("b")},
                ]},
                {"role": "tool", "tool_call_id": "x", "content": "1"},
                {"role": "tool", "tool_call_id": "x-2", "content": "[error] 2"},
                {"role": "user", "content": "and?"},
            ])
        );
        let function = json!({"name": "a", "description": "d", "parameters": {"type": "object"}});
        assert_eq!(body["tools"], json!([{"type": "function", "function": function}]));
    }
}
