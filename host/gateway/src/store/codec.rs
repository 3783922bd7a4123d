//! Converts between rows and values.

use std::sync::Arc;

use pmk_core::{Entry, Message, Origin, Role, SessionKey, message, tokens};
use pmk_search::terms_of_message;
use serde::{Serialize, de::DeserializeOwned};

use super::{
    error::Fault,
    sql::{Row, ValueRef},
};

/// How JSON writes NUL.
const NUL: &str = r"\u0000";

/// Serialises a value as JSON that statements may look into, without NUL: PostgreSQL takes nothing out of JSON that
/// has an escaped one in it.
pub(super) fn to_json(value: &impl Serialize) -> String {
    let json = to_exact_json(value);
    if json.contains(NUL) { without_nul(&json) } else { json }
}

/// Serialises a value as JSON that is only read as a whole.
pub(super) fn to_exact_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("types with string keys only always have a JSON form")
}

/// Replaces each escaped NUL of JSON by the replacement character. What follows a backslash that is itself escaped is
/// none.
fn without_nul(json: &str) -> String {
    let mut clean = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        clean.push_str(before);
        rest = match escape.strip_prefix(NUL) {
            Some(rest) => {
                clean.push(char::REPLACEMENT_CHARACTER);
                rest
            }
            None => {
                let (escape, rest) = escape.split_at(2);
                clean.push_str(escape);
                rest
            }
        };
    }
    clean + rest
}

/// Parses a JSON column; `what` names it in the error.
pub(super) fn from_json<T: DeserializeOwned>(column: ValueRef<'_>, what: &str) -> Result<T, Fault> {
    let text = text(column, what)?;
    serde_json::from_str(text).map_err(|error| Fault::Damaged(format!("{what} cannot be read: {error}")))
}

/// Parses a column with a conversation's key.
pub(super) fn key(column: ValueRef<'_>) -> Result<SessionKey, Fault> {
    let text = text(column, "a session key")?;
    text.parse().map_err(|error: pmk_core::session_key::BadSessionKey| Fault::Damaged(error.to_string()))
}

/// Returns the text of a column; `what` names it in the error.
pub(super) fn text<'a>(column: ValueRef<'a>, what: &str) -> Result<&'a str, Fault> {
    column.as_str().map_err(|error| Fault::Damaged(format!("{what} cannot be read: {error}")))
}

/// The columns that [`entry`] reads, of `message m` and `live l`.
macro_rules! entry_columns {
    () => {
        "m.id, m.role, m.origin, m.blocks, l.replacement, coalesce(l.tokens, m.tokens), coalesce(l.chars, m.chars)"
    };
}
pub(super) use entry_columns;

/// Reads a message as the live window or the archive holds it, from the columns of [`entry_columns`].
pub(super) fn entry(row: Row<'_>) -> Result<Entry, Fault> {
    let id: i64 = row.get(0)?;
    let damaged = |column: &str| Fault::Damaged(format!("the {column} of message {id} cannot be read"));
    let role = match row.get_ref(1)?.as_str() {
        Ok("user") => Role::User,
        Ok("assistant") => Role::Assistant,
        _ => return Err(damaged("role")),
    };
    let origin = row.get_ref(2)?.as_str().ok().and_then(Origin::from_name).ok_or_else(|| damaged("origin"))?;
    let blocks = from_json(row.get_ref(3)?, &format!("message {id}"))?;
    let stored = Arc::new(Message { role, origin, blocks });
    let (message, original) = match row.get_ref(4)? {
        ValueRef::Null => (stored, None),
        replacement => (Arc::new(from_json(replacement, &format!("what replaces message {id}"))?), Some(stored)),
    };
    Ok(Entry { id, message, original, tokens: row.get(5)?, chars: row.get(6)? })
}

/// Returns the stored size of a message without decoding it, from the columns of [`entry_columns`].
pub(super) fn stored_bytes(row: Row<'_>) -> Result<usize, Fault> {
    let bytes = |column| row.get_ref(column).map(|text| text.as_bytes_or_null().ok().flatten().map_or(0, <[u8]>::len));
    Ok(bytes(3)? + bytes(4)?)
}

/// A message to be archived: encoded and counted before the writer gets it.
pub(super) struct NewMessage {
    pub(super) role: &'static str,
    pub(super) origin: &'static str,
    pub(super) blocks: String,
    pub(super) tokens: u32,
    pub(super) chars: u32,
    /// Its search terms.
    pub(super) terms: Vec<String>,
}

/// What the live window shows of a message.
pub(super) struct Shown {
    /// The reduced message that replaces the original, as JSON.
    pub(super) replacement: Option<String>,
    pub(super) tokens: u32,
    pub(super) chars: u32,
}

impl From<&Entry> for Shown {
    fn from(entry: &Entry) -> Self {
        let replacement = entry.original.as_ref().map(|_| to_exact_json(&*entry.message));
        Shown { replacement, tokens: entry.tokens, chars: entry.chars }
    }
}

impl From<&Message> for NewMessage {
    fn from(message: &Message) -> Self {
        let chars = u32::try_from(message::chars(&message.blocks)).unwrap_or(u32::MAX);
        NewMessage::counted(message, tokens::message(message), chars)
    }
}

/// The original message, if the entry is reduced.
impl From<&Entry> for NewMessage {
    fn from(entry: &Entry) -> Self {
        match &entry.original {
            Some(original) => (&**original).into(),
            // Its counts are already known.
            None => NewMessage::counted(&entry.message, entry.tokens, entry.chars),
        }
    }
}

impl NewMessage {
    fn counted(message: &Message, tokens: u32, chars: u32) -> NewMessage {
        NewMessage {
            role: match message.role {
                Role::User => "user",
                Role::Assistant => "assistant",
            },
            origin: message.origin.name(),
            blocks: to_exact_json(&message.blocks),
            tokens,
            chars,
            terms: terms_of_message(message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_nul_is_replaced() {
        for (text, stored) in
            [("a\0b\0", "a\u{fffd}b\u{fffd}"), (r"\u0000", r"\u0000"), ("\\\0\n\"預算\"\\", "\\\u{fffd}\n\"預算\"\\")]
        {
            let json = to_json(&[text]);
            assert_eq!(serde_json::from_str::<Vec<String>>(&json).unwrap(), [stored], "{json}");
            assert_eq!(serde_json::from_str::<Vec<String>>(&to_exact_json(&[text])).unwrap(), [text]);
        }
    }
}
