//! Histories that come from outside: pmk's `session.json`, Anthropic's `{"system","messages"}`, JSON
//! lines. They carry no origins, so those are read off the text; and they may be broken, so they are
//! repaired before anything is decided on them.

mod repair;

use serde_json::Value;
use thiserror::Error;

pub use self::repair::{Repaired, repair};
use crate::{
    marker,
    message::{Block, Message, Origin, Role},
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
    #[error("it is not JSON: {source}{}", cut_off(source))]
    NotJson { source: serde_json::Error },
    #[error("line {line} is not JSON: {}{}", in_line(source), cut_off(source))]
    BadLine { line: usize, source: serde_json::Error },
    #[error(
        "it has no `messages` list\n\
         hint: a history is pmk's `session.json`, Anthropic's `{{\"system\",\"messages\"}}`, or one message a line"
    )]
    NoMessages,
    /// `line` is given where every message has a line of its own.
    #[error("{}: {what}", place(*index, *line))]
    BadMessage { index: usize, line: Option<usize>, what: String },
}

/// The parser's words without its own line number, which is always 1.
fn in_line(source: &serde_json::Error) -> String {
    let text = source.to_string();
    match text.rsplit_once(" at line ") {
        Some((what, _)) => format!("{what} at column {}", source.column()),
        None => text,
    }
}

/// Files that are appended to a line at a time end in half a line after a crash.
fn cut_off(source: &serde_json::Error) -> &'static str {
    if source.is_eof() { "\nhint: it ends too early; complete what was cut off, or remove it" } else { "" }
}

fn place(index: usize, line: Option<usize>) -> String {
    match line {
        Some(line) => format!("line {line}"),
        None => format!("message {index}"),
    }
}

impl History {
    /// Reads any of the three formats; which one is seen by the content.
    ///
    /// # Errors
    /// [`HistoryError`] names the line or message that is wrong.
    pub fn parse(text: &str) -> Result<History, HistoryError> {
        let text = text.trim_start_matches('\u{feff}');
        if text.trim().is_empty() {
            return Err(HistoryError::Empty);
        }
        match serde_json::from_str::<Value>(text) {
            Ok(Value::Object(mut object)) if object.contains_key("messages") => {
                let system = object.get("system").and_then(system_text);
                match object.remove("messages") {
                    Some(Value::Array(messages)) => History::of_values(system, in_list(messages)),
                    _ => Err(HistoryError::NoMessages),
                }
            }
            Ok(Value::Array(messages)) => History::of_values(None, in_list(messages)),
            Ok(object) if is_message(&object) => History::of_values(None, in_list(vec![object])),
            Ok(_) => Err(HistoryError::NoMessages),
            Err(source) => match lines(text).next().and_then(|(_, line)| serde_json::from_str(line).ok()) {
                Some(first) if is_message(&first) => {
                    let values = lines(text)
                        .map(|(line, text)| match serde_json::from_str(text) {
                            Ok(value) => Ok((Some(line), value)),
                            Err(source) => Err(HistoryError::BadLine { line, source }),
                        })
                        .collect::<Result<Vec<_>, _>>()?;
                    History::of_values(None, values)
                }
                _ => Err(HistoryError::NotJson { source }),
            },
        }
    }

    fn of_values(mut system: Option<String>, values: Vec<(Option<usize>, Value)>) -> Result<History, HistoryError> {
        let mut messages = Vec::with_capacity(values.len());
        for (index, (line, value)) in values.into_iter().enumerate() {
            let bad = |what: String| HistoryError::BadMessage { index, line, what };
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
            let mut message = Message { role, origin: Origin::User, blocks };
            message.origin = named_origin(&value, &message).unwrap_or_else(|| recognise(&message, messages.last()));
            messages.push(message);
        }
        Ok(History { system, messages })
    }
}

fn in_list(values: Vec<Value>) -> Vec<(Option<usize>, Value)> {
    values.into_iter().map(|value| (None, value)).collect()
}

/// The lines that are not blank, counted from 1.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty())
}

fn is_message(value: &Value) -> bool {
    value.get("role").is_some()
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
        Value::Array(items) => items.iter().filter(|item| !is_thinking(item)).map(block).collect(),
        Value::Null => Ok(vec![]),
        _ => Err("`content` is neither a text nor a list of blocks".into()),
    }
}

/// What a model thought is signed for its own session and of no use in another.
fn is_thinking(value: &Value) -> bool {
    matches!(value.get("type").and_then(Value::as_str), Some("thinking" | "redacted_thinking"))
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

/// The origin that a file of our own names, unless the message cannot be that.
fn named_origin(value: &Value, message: &Message) -> Option<Origin> {
    let origin = Origin::from_name(value.get("origin")?.as_str()?)?;
    let fits = match origin {
        Origin::Assistant => message.role == Role::Assistant,
        Origin::SeedAck => message.role == Role::Assistant && !message.has_tools(),
        Origin::ToolResult => message.role == Role::User,
        _ => message.role == Role::User && !message.has_tools(),
    };
    fits.then_some(origin)
}

/// Reads the origin of a message off its role, its blocks and its first line.
fn recognise(message: &Message, before: Option<&Message>) -> Origin {
    if message.role == Role::Assistant {
        let answers_seed = before.is_some_and(|before| before.origin == Origin::Seed);
        return if answers_seed && !message.has_tools() { Origin::SeedAck } else { Origin::Assistant };
    }
    if message.has_tools() {
        return Origin::ToolResult;
    }
    let text = message.plain_text();
    if text.starts_with(SEED_PREFIX) {
        Origin::Seed
    } else if marker::parse(&text).is_some() {
        Origin::Marker
    } else if is_mra_result(&text) {
        Origin::MraResult
    } else {
        Origin::User
    }
}

fn is_mra_result(text: &str) -> bool {
    let first_line = text.lines().next().unwrap_or_default();
    first_line.starts_with("這是 `mra ask")
        || first_line
            .strip_prefix("`mra ask ")
            .and_then(|rest| rest.split_once('`'))
            .is_some_and(|(_, rest)| rest.trim_start().starts_with("失敗"))
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
    fn pmks_own_lines_are_read() {
        let lines = "\u{feff}\r\n{\"ts\":\"2026-05-07T07:39:55.339Z\",\"role\":\"user\",\"userId\":\"U1\",\"content\":\"q\"}\r\n\
                     {\"ts\":\"2026-05-07T07:39:56.339Z\",\"role\":\"assistant\",\"content\":\"a\"}\r\n\r\n";
        assert_eq!(History::parse(lines).expect("lines").messages, [Message::user("q"), Message::assistant("a")]);
        let cut = &lines[..lines.trim_end().len() - 9];
        let error = History::parse(cut).expect_err("the last line is cut off").to_string();
        assert!(error.starts_with("line 3 is not JSON") && error.contains("hint: it ends too early"), "{error}");
        assert!(!error.contains("line 1"), "{error}");
        let error = History::parse(&lines.replace("assistant", "tool")).expect_err("no such role").to_string();
        assert_eq!(error, "line 3: role `tool` is neither `user` nor `assistant`");
    }

    #[test]
    fn a_named_origin_must_fit_the_message() {
        let history = History::parse(
            r#"[{"role":"user","origin":"summary","content":"earlier"},
                {"role":"assistant","origin":"seed","content":"a"},
                {"role":"user","origin":"no such","content":"q"},
                {"role":"user","origin":"marker","content":[{"type":"tool_result","tool_use_id":"a"}]}]"#,
        )
        .expect("a history");
        let origins: Vec<&str> = history.messages.iter().map(|message| message.origin.name()).collect();
        assert_eq!(origins, ["summary", "assistant", "user", "tool-result"]);
    }

    #[test]
    fn a_call_in_answer_to_the_seed_is_no_acknowledgement() {
        let history = History::parse(
            r#"[{"role":"user","content":"我先把 workspace 的 PKB context 給你"},
                {"role":"assistant","content":[{"type":"thinking","thinking":"?"},
                                               {"type":"tool_use","id":"a","name":"ls","input":{}}]},
                {"role":"user","content":[{"type":"tool_result","tool_use_id":"a",
                                           "content":[{"type":"text","text":"x"},{"type":"image"}]}]}]"#,
        )
        .expect("a history");
        assert_eq!(history.messages[1].origin, Origin::Assistant);
        assert_eq!(history.messages[1].blocks.len(), 1);
        assert_eq!(history.messages[2].plain_text(), "x\n[image]");
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

        #[test]
        fn any_file_of_messages_is_read_or_refused_and_never_panics(
            messages in prop::collection::vec(
                (
                    prop::sample::select(vec![r#""user""#, r#""assistant""#, r#""system""#, "7", "null"]),
                    prop::sample::select(vec![
                        r#""q""#, "null", "{}", "[]", r#"[{"type":"text"}]"#, r#"[{"type":"tool_use","id":"a","name":"n"}]"#,
                        r#"[{"type":"tool_result","tool_use_id":"a","content":[{"type":"image"},3]}]"#,
                        r#"[{"type":"image"}]"#, r#"["q"]"#,
                    ]),
                ),
                0..6,
            ),
            lines in any::<bool>(),
            cut in 0usize..400,
        ) {
            let messages: Vec<String> =
                messages.iter().map(|(role, content)| format!(r#"{{"role":{role},"content":{content}}}"#)).collect();
            let text = match lines {
                true => messages.join("\n"),
                false => format!(r#"{{"messages":[{}]}}"#, messages.join(",")),
            };
            if let Ok(history) = History::parse(&text) {
                prop_assert!(history.messages.len() <= messages.len());
                repair(history.messages);
            }
            let cut = &text[..cut.min(text.len())];
            prop_assert!(lines || cut == text || History::parse(cut).is_err());
        }
    }
}
