//! Histories that come from outside: pmk's `session.json`, Anthropic's `{"system","messages"}`, JSON
//! lines. They carry no origins, so those are read off the text; and they may be broken, so they are
//! repaired before anything is decided on them.

use serde_json::Value;
use thiserror::Error;

use crate::{
    marker,
    message::{Block, Message, Origin, Role},
    structure,
};

/// How the seed of every pmk session begins (seed 003 §3).
pub const SEED_PREFIX: &str = "我先把 workspace 的 PKB context 給你";

/// A history as a file gave it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// The system prompt, where the file has one.
    pub system: Option<String>,
    /// The messages, oldest first.
    pub messages: Vec<Message>,
}

/// A file that is no history.
#[derive(Debug, Error)]
pub enum HistoryError {
    #[error("it is empty")]
    Empty,
    #[error("it is not JSON: {0}")]
    NotJson(serde_json::Error),
    #[error("line {line} is not JSON: {source}")]
    BadLine { line: usize, source: serde_json::Error },
    #[error("it has no `messages` list")]
    NoMessages,
    #[error("message {index}: {what}")]
    BadMessage { index: usize, what: String },
}

impl History {
    /// Reads any of the three formats; which one is seen by the content.
    ///
    /// # Errors
    /// [`HistoryError`] names the line or message that is wrong.
    pub fn parse(text: &str) -> Result<History, HistoryError> {
        let text = text.trim_start_matches('\u{feff}').trim();
        if text.is_empty() {
            return Err(HistoryError::Empty);
        }
        match serde_json::from_str::<Value>(text) {
            Ok(Value::Object(mut object)) if object.contains_key("messages") => {
                let system = object.get("system").and_then(system_text);
                match object.remove("messages") {
                    Some(Value::Array(messages)) => History::of_values(system, messages),
                    _ => Err(HistoryError::NoMessages),
                }
            }
            Ok(Value::Array(messages)) => History::of_values(None, messages),
            Ok(object) if object.get("role").is_some() => History::of_values(None, vec![object]),
            Ok(_) => Err(HistoryError::NoMessages),
            Err(whole) => {
                let first = text.lines().next().and_then(|line| serde_json::from_str::<Value>(line).ok());
                if first.is_none_or(|first| first.get("role").is_none()) {
                    return Err(HistoryError::NotJson(whole));
                }
                let values = text
                    .lines()
                    .enumerate()
                    .filter(|(_, line)| !line.trim().is_empty())
                    .map(|(at, line)| {
                        serde_json::from_str(line).map_err(|source| HistoryError::BadLine { line: at + 1, source })
                    })
                    .collect::<Result<Vec<Value>, _>>()?;
                History::of_values(None, values)
            }
        }
    }

    fn of_values(mut system: Option<String>, values: Vec<Value>) -> Result<History, HistoryError> {
        let mut messages = Vec::with_capacity(values.len());
        for (index, value) in values.into_iter().enumerate() {
            let bad = |what: String| HistoryError::BadMessage { index, what };
            let content = value.get("content").ok_or_else(|| bad("it has no `content`".into()))?;
            let role = match value.get("role").and_then(Value::as_str) {
                Some("user") => Role::User,
                Some("assistant") => Role::Assistant,
                Some("system") if index == 0 => {
                    system = system_text(content).or(system);
                    continue;
                }
                Some(other) => return Err(bad(format!("role `{other}` is neither `user` nor `assistant`"))),
                None => return Err(bad("it has no `role`".into())),
            };
            let blocks = blocks(content).map_err(bad)?;
            let named = value.get("origin").and_then(Value::as_str).and_then(Origin::from_name);
            let origin = named.unwrap_or_else(|| recognise(role, &blocks, &messages));
            messages.push(Message { role, origin, blocks });
        }
        Ok(History { system, messages })
    }
}

fn system_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(_) => blocks(value).ok().map(|blocks| crate::message::plain_text(&blocks)),
        _ => None,
    }
}

fn blocks(content: &Value) -> Result<Vec<Block>, String> {
    match content {
        Value::String(text) => Ok(vec![Block::Text { text: text.clone() }]),
        Value::Array(items) => items.iter().map(block).collect(),
        Value::Null => Ok(vec![]),
        _ => Err("`content` is neither a text nor a list of blocks".into()),
    }
}

fn block(value: &Value) -> Result<Block, String> {
    let text = |key: &str| {
        value.get(key).and_then(Value::as_str).map(str::to_owned).ok_or_else(|| format!("a block has no `{key}`"))
    };
    match value.get("type").and_then(Value::as_str) {
        Some("text") => Ok(Block::Text { text: text("text")? }),
        Some("tool_use") => Ok(Block::ToolUse {
            id: text("id")?,
            name: text("name")?,
            input: value.get("input").cloned().unwrap_or_else(|| Value::Object(Default::default())),
        }),
        Some("tool_result") => Ok(Block::ToolResult {
            tool_use_id: text("tool_use_id")?,
            content: result_text(value.get("content")),
            is_error: value.get("is_error").and_then(Value::as_bool).unwrap_or(false),
        }),
        Some(other) => Ok(Block::Text { text: format!("[{other}]") }),
        None => Err("a block has no `type`".into()),
    }
}

/// A tool result is a text or a list of blocks; what is no text is named in brackets.
fn result_text(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(items)) => {
            let part = |item: &Value| match item.get("text").and_then(Value::as_str) {
                Some(text) => text.to_owned(),
                None => format!("[{}]", item.get("type").and_then(Value::as_str).unwrap_or("unknown")),
            };
            items.iter().map(part).collect::<Vec<_>>().join("\n")
        }
        None | Some(Value::Null) => String::new(),
        Some(other) => other.to_string(),
    }
}

/// Reads the origin of a message off its role, its blocks and its first line.
fn recognise(role: Role, blocks: &[Block], before: &[Message]) -> Origin {
    if role == Role::Assistant {
        return match before {
            [seed] if seed.origin == Origin::Seed => Origin::SeedAck,
            _ => Origin::Assistant,
        };
    }
    if blocks.iter().any(|block| matches!(block, Block::ToolResult { .. })) {
        return Origin::ToolResult;
    }
    let text = crate::message::plain_text(blocks);
    let first_line = text.lines().next().unwrap_or_default();
    if before.is_empty() && text.starts_with(SEED_PREFIX) {
        Origin::Seed
    } else if marker::parse(&text).is_some() {
        Origin::Marker
    } else if is_mra_result(first_line) {
        Origin::MraResult
    } else {
        Origin::User
    }
}

fn is_mra_result(first_line: &str) -> bool {
    first_line.starts_with("這是 `mra ask")
        || first_line
            .strip_prefix("`mra ask ")
            .and_then(|rest| rest.split_once('`'))
            .is_some_and(|(_, rest)| rest.trim_start().starts_with("失敗"))
}

/// A history in which every tool block has its partner and a user message comes first.
#[derive(Clone, Debug, PartialEq)]
pub struct Repaired {
    /// The messages that are left, each with its index in the history.
    pub messages: Vec<(usize, Message)>,
    /// What was taken out, one line each.
    pub repairs: Vec<String>,
}

/// Takes out what no provider accepts: answers before the first question, calls without a result and
/// results without a call (seed 002). Says what it did.
pub fn repair(messages: Vec<Message>) -> Repaired {
    let mut messages: Vec<(usize, Message)> = messages.into_iter().enumerate().collect();
    let mut repairs = Vec::new();
    loop {
        let leading = messages.iter().take_while(|(_, message)| message.role == Role::Assistant).count();
        for (index, _) in messages.drain(..leading) {
            repairs.push(format!("message {index}: an answer before the first question is left out"));
        }
        let view: Vec<&Message> = messages.iter().map(|(_, message)| message).collect();
        let orphans = structure::pair_tools(&view).orphans;
        if orphans.is_empty() {
            return Repaired { messages, repairs };
        }
        for (at, block) in orphans.into_iter().rev() {
            let (index, message) = &mut messages[at];
            repairs.push(match message.blocks.remove(block) {
                Block::ToolUse { name, .. } => {
                    format!("message {index}: a call of `{name}` without a result is left out")
                }
                _ => format!("message {index}: a tool result without its call is left out"),
            });
        }
        messages.retain(|(_, message)| !message.blocks.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pmk_sessions_get_their_origins_back() {
        let history = History::parse(
            r#"{"userId":"U1","messages":[
                {"role":"user","content":"我先把 workspace 的 PKB context 給你（請當作 ground truth）"},
                {"role":"assistant","content":"了解"},
                {"role":"user","content":"(此處省略 12 輪較舊的對話以節省 context)"},
                {"role":"user","content":"q"},
                {"role":"assistant","content":"a"},
                {"role":"user","content":"這是 `mra ask erp` 的結果：\nx"},
                {"role":"user","content":"`mra ask erp …` 失敗：timeout"},
                {"role":"user","content":"`mra ask` 是什麼"}]}"#,
        )
        .expect("a history");
        let origins: Vec<&str> = history.messages.iter().map(|message| message.origin.name()).collect();
        assert_eq!(origins, ["seed", "seed-ack", "marker", "user", "assistant", "mra-result", "mra-result", "user"]);
    }

    #[test]
    fn a_truncated_file_says_where_it_ends() {
        let error = History::parse("{\"messages\":[{\"role\":\"user\",").expect_err("truncated").to_string();
        assert!(error.contains("line 1"), "{error}");
        let error = History::parse("{\"role\":\"user\",\"content\":\"q\"}\n{\"role\":").expect_err("cut").to_string();
        assert!(error.starts_with("line 2 is not JSON"), "{error}");
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

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "\\PC{0,200}") {
            let _ = History::parse(&text);
        }

        #[test]
        fn no_json_makes_the_reader_panic(
            text in r#"(\{|\}|\[|\]|"role"|"content"|"user"|"messages"|:|,|"tool_use"|"type"|null|1|\n){0,40}"#
        ) {
            let _ = History::parse(&text);
        }
    }
}
