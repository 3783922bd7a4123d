//! Reads a history one message at a time.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{History, HistoryError, blocks, named_origin, recognise, system_text};
use crate::message::{Message, Origin, Role};

/// A history that is read one message at a time, from any source.
#[derive(Default)]
pub struct HistoryBuilder {
    system: Option<String>,
    messages: Vec<Message>,
    unread: Unread,
    read: usize,
}

impl HistoryBuilder {
    /// Starts a history with this system prompt.
    pub(crate) fn with_system(system: Option<String>) -> Self {
        HistoryBuilder { system, ..HistoryBuilder::default() }
    }

    /// Starts a history whose system prompt is a text or a list of blocks in JSON, or null.
    ///
    /// # Errors
    /// If it is none of these.
    pub fn with_system_prompt(system: &Value) -> Result<Self, HistoryError> {
        Ok(HistoryBuilder::with_system(system_text(system)?))
    }

    /// Reads the next message; `line` is given where every message has its own line. Returns false for a system prompt,
    /// which is not a message of the conversation.
    ///
    /// # Errors
    /// If it is not a message. The history is unchanged and can continue with the next one.
    pub fn push(&mut self, line: Option<usize>, value: &Value) -> Result<bool, HistoryError> {
        let index = self.read;
        self.read += 1;
        let bad = |what: String| HistoryError::BadMessage { index, line, what };
        let content = value.get("content").ok_or_else(|| bad("it has no `content`".into()))?;
        let role = match value.get("role").and_then(Value::as_str) {
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            Some("system") if index == 0 => {
                self.system = system_text(content)?.or(self.system.take());
                return Ok(false);
            }
            Some(other) => return Err(bad(format!("role `{other}` is neither `user` nor `assistant`"))),
            None => return Err(bad("it has no `role`".into())),
        };
        let blocks = blocks(content, &mut |kind| self.unread.note(kind, index)).map_err(bad)?;
        let mut message = Message { role, origin: Origin::User, blocks };
        message.origin = named_origin(value, &message).unwrap_or_else(|| recognise(&message, self.messages.last()));
        self.messages.push(message);
        Ok(true)
    }

    /// Returns the history.
    pub fn finish(self) -> History {
        History { system: self.system, messages: self.messages, unread: self.unread.lines() }
    }
}

/// Types of blocks that cannot be read, with their number and the index of the first message that has one.
#[derive(Default)]
struct Unread(BTreeMap<String, (usize, usize)>);

impl Unread {
    fn note(&mut self, kind: &str, index: usize) {
        self.0.entry(kind.to_owned()).or_insert((0, index)).0 += 1;
    }

    fn lines(self) -> Vec<String> {
        let line = |(kind, (count, first)): (String, (usize, usize))| {
            format!(
                "`{kind}` blocks cannot be read and are replaced by `[{kind}]`: {count}, the first in message {first}"
            )
        };
        self.0.into_iter().map(line).collect()
    }
}
