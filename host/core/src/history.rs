//! Histories from outside: pmk's `session.json`, Anthropic's `{"system","messages"}`, JSON lines. They carry no
//! origins, so origins are inferred from the text; and they may be broken, so they are repaired before any decision.

mod builder;
mod error;
mod repair;

use serde_json::Value;

pub use self::{
    builder::HistoryBuilder,
    error::HistoryError,
    repair::{Repaired, repair, repair_numbered},
};
use crate::{
    marker,
    message::{Block, Message, Origin, Role},
};

/// How a seed begins: in every pmk session (specification 003 §3), and in English.
pub const SEED_PREFIXES: [&str; 2] =
    ["我先把 workspace 的 PKB context 給你", "Here are the team's documents (take them as ground truth"];

/// A history as read from a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// The system prompt, if the file has one.
    pub system: Option<String>,
    /// The messages, oldest first.
    pub messages: Vec<Message>,
    /// Content that could not be read and is represented by its type in brackets, one line per type.
    pub unread: Vec<String>,
}

impl History {
    /// Reads any of the three formats, which it detects from the content.
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
                let system = system_text(object.get("system").unwrap_or(&Value::Null))?;
                match object.remove("messages") {
                    Some(Value::Array(messages)) => History::of_values(system, in_list(messages)),
                    _ => Err(HistoryError::NoMessages),
                }
            }
            Ok(Value::Array(messages)) => History::of_values(None, in_list(messages)),
            Ok(object) if is_message(&object) => History::of_values(None, in_list(vec![object])),
            Ok(_) => Err(HistoryError::NoMessages),
            Err(source) => match lines(text).next().and_then(|(_, line)| serde_json::from_str(line).ok()) {
                Some(Value::Object(first)) if !first.contains_key("messages") => {
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

    fn of_values(system: Option<String>, values: Vec<(Option<usize>, Value)>) -> Result<History, HistoryError> {
        let mut history = HistoryBuilder::with_system(system);
        for (line, value) in values {
            history.push(line, &value)?;
        }
        Ok(history.finish())
    }
}

fn in_list(values: Vec<Value>) -> Vec<(Option<usize>, Value)> {
    values.into_iter().map(|value| (None, value)).collect()
}

/// The lines that are not blank, with their numbers, from 1.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty())
}

fn is_message(value: &Value) -> bool {
    value.get("role").is_some()
}

fn system_text(value: &Value) -> Result<Option<String>, HistoryError> {
    let bad = |what: String| HistoryError::BadSystem { what };
    match value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text.clone())),
        Value::Array(_) => {
            let blocks = blocks(value, &mut |_| {}).map_err(|what| bad(format!("cannot be read: {what}")))?;
            Ok(Some(crate::message::plain_text(&blocks)))
        }
        _ => Err(bad("is neither a string nor a list of blocks".to_owned())),
    }
}

/// Reads the blocks of a message. `unread` is called with the type of every block that is represented only by its name.
fn blocks(content: &Value, unread: &mut dyn FnMut(&str)) -> Result<Vec<Block>, String> {
    match content {
        Value::String(text) => Ok(vec![Block::Text { text: text.clone() }]),
        Value::Array(items) => items.iter().filter(|item| !is_thinking(item)).map(|item| block(item, unread)).collect(),
        Value::Null => Ok(vec![]),
        _ => Err("`content` is neither a string nor a list of blocks".into()),
    }
}

/// Thinking blocks are signed for their own session and of no use in another.
fn is_thinking(value: &Value) -> bool {
    matches!(value.get("type").and_then(Value::as_str), Some("thinking" | "redacted_thinking"))
}

fn block(value: &Value, unread: &mut dyn FnMut(&str)) -> Result<Block, String> {
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
            content: result_text(value.get("content"), unread),
            is_error: value.get("is_error").and_then(Value::as_bool).unwrap_or(false),
        }),
        Some(other) => {
            unread(other);
            Ok(Block::Text { text: format!("[{other}]") })
        }
        None => Err("a block has no `type`".into()),
    }
}

/// The text of a tool result, which is a text or a list of blocks; blocks that are not text are named in brackets.
fn result_text(content: Option<&Value>, unread: &mut dyn FnMut(&str)) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(items)) => {
            let mut part = |item: &Value| match item.get("text").and_then(Value::as_str) {
                Some(text) => text.to_owned(),
                None => {
                    let kind = item.get("type").and_then(Value::as_str).unwrap_or("unknown");
                    unread(kind);
                    format!("[{kind}]")
                }
            };
            items.iter().map(&mut part).collect::<Vec<_>>().join("\n")
        }
        None | Some(Value::Null) => String::new(),
        Some(other) => other.to_string(),
    }
}

/// The origin that our own file format names, unless the message cannot have it.
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

/// Infers the origin of a message from its role, its blocks and its first line.
fn recognise(message: &Message, before: Option<&Message>) -> Origin {
    if message.role == Role::Assistant {
        let answers_seed = before.is_some_and(|before| before.origin == Origin::Seed);
        return if answers_seed && !message.has_tools() { Origin::SeedAck } else { Origin::Assistant };
    }
    if message.has_tools() {
        return Origin::ToolResult;
    }
    let text = message.plain_text();
    if SEED_PREFIXES.iter().any(|prefix| text.starts_with(prefix)) {
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
    ["這是 `mra ask", "What `mra ask"].iter().any(|start| first_line.starts_with(start))
        || first_line
            .strip_prefix("`mra ask ")
            .and_then(|rest| rest.split_once('`'))
            .is_some_and(|(_, rest)| ["失敗", "failed:"].iter().any(|word| rest.trim_start().starts_with(word)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Regression: the error was about the line after it, and JSON.
    #[test]
    fn a_first_line_that_is_not_a_message_is_what_is_wrong() {
        let error =
            History::parse("{\"text\":\"hello\"}\n{\"role\":\"user\",\"content\":\"x\"}\n").unwrap_err().to_string();
        assert!(error.starts_with("line 1: "), "{error}");
        let error = History::parse("{\"messages\":[]}\nfoo").unwrap_err().to_string();
        assert!(error.starts_with("it is not JSON"), "{error}");
    }

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
        let error = History::parse(cut).expect_err("the last line is cut off");
        assert!(error.hint().starts_with("it is truncated"), "{}", error.hint());
        let error = error.to_string();
        assert!(error.starts_with("line 3 is not JSON") && !error.contains('\n'), "{error}");
        assert!(!error.contains("line 1"), "{error}");
        let error = History::parse(&lines.replace("assistant", "tool")).expect_err("no such role").to_string();
        assert_eq!(error, "line 3: role `tool` is neither `user` nor `assistant`");
    }

    #[test]
    fn a_system_prompt_that_is_none_is_no_silent_loss() {
        for system in ["5", "{}", "true", r#"[{"type":"text"}]"#] {
            let error = History::parse(&format!(r#"{{"system":{system},"messages":[]}}"#)).expect_err(system);
            assert!(error.to_string().starts_with("its system prompt "), "{error}");
        }
        for (system, wanted) in [("null", None), (r#"[{"type":"text","text":"be brief"}]"#, Some("be brief"))] {
            let history = History::parse(&format!(r#"{{"system":{system},"messages":[]}}"#)).expect(system);
            assert_eq!(history.system.as_deref(), wanted);
        }
    }

    #[test]
    fn what_cannot_be_read_is_told() {
        let history = History::parse(
            r#"[{"role":"user","content":[{"type":"text","text":"look"},{"type":"image"},{"type":"image"}]},
                {"role":"assistant","content":[{"type":"tool_use","id":"a","name":"ls"}]},
                {"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"image"},3]}]}]"#,
        )
        .expect("a history");
        assert_eq!(
            history.unread,
            [
                "`image` blocks cannot be read and are replaced by `[image]`: 3, the first in message 0",
                "`unknown` blocks cannot be read and are replaced by `[unknown]`: 1, the first in message 2",
            ]
        );
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
