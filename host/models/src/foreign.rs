//! Lenient parsing of what a provider sends, because an answer was paid for.

use std::borrow::Cow;

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, IgnoredAny},
};
use serde_json::{Value, json};

/// Parses an event's JSON. A lone surrogate escape, from a server that splits its text anywhere, becomes a replacement
/// character.
///
/// # Errors
/// If it is not of the expected type.
pub(crate) fn json<T: DeserializeOwned>(text: &str) -> serde_json::Result<T> {
    serde_json::from_str(text).or_else(|error| match whole_characters(text) {
        Cow::Owned(whole) => serde_json::from_str(&whole),
        Cow::Borrowed(_) => Err(error),
    })
}

/// Parses the data of an event; `None` where there is nothing in it, as in what some servers send to keep a connection.
///
/// # Errors
/// As for [`json`].
pub(crate) fn data<T: DeserializeOwned>(text: &str) -> serde_json::Result<Option<T>> {
    if text.trim().is_empty() { Ok(None) } else { json(text) }
}

/// A value, or `null` instead of one.
pub(crate) fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// A list without its nulls, or `null` instead of one.
pub(crate) fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    let list: Option<Vec<Option<T>>> = Option::deserialize(deserializer)?;
    Ok(list.into_iter().flatten().flatten().collect())
}

/// Whether it is complete JSON.
pub(crate) fn is_json(text: &str) -> bool {
    json::<IgnoredAny>(text).is_ok()
}

/// Whether both are the same JSON, however it is written.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    json::<Value>(one).is_ok_and(|one| json::<Value>(other).is_ok_and(|other| one == other))
}

/// Whether the JSON represents an error, in any of the ways that servers use.
pub(crate) fn is_error(text: &str) -> bool {
    let Ok(Value::Object(fields)) = json(text) else { return false };
    let names_one = |key| fields.get(key).is_some_and(says_something);
    let is_one = |key| fields.get(key).and_then(Value::as_str) == Some("error");
    names_one("error") || is_one("type") || is_one("object")
}

/// Whether there is anything in an error; some servers send an empty one with each part of an answer.
pub(crate) fn says_something(error: &Value) -> bool {
    match error {
        Value::Null => false,
        Value::Bool(is_one) => *is_one,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(values) => values.iter().any(says_something),
        Value::Object(fields) => fields.values().any(says_something),
    }
}

/// The input of a tool call, which is always an object; `None` where the answer was cut off before the input was
/// complete.
pub(crate) fn input(arguments: &str, is_cut: bool) -> Option<Value> {
    match json(arguments).ok().filter(Value::is_object) {
        Some(input) => Some(input),
        None if is_cut => None,
        None if arguments.trim().is_empty() => Some(json!({})),
        // Small models produce these. The tool's result then tells the model what is missing.
        None => Some(json!({"unreadable": arguments})),
    }
}

/// Replaces escapes of lone surrogates in JSON.
fn whole_characters(json: &str) -> Cow<'_, str> {
    const UNIT: usize = r"\u0000".len();
    let unit = |at: usize| u16::from_str_radix(json.get(at..at + UNIT)?.strip_prefix(r"\u")?, 16).ok();
    let mut whole = String::new();
    let (mut kept, mut at) = (0, 0);
    while let Some(escape) = json[at..].find('\\').map(|found| at + found) {
        at = match unit(escape) {
            Some(0xd800..=0xdbff) if matches!(unit(escape + UNIT), Some(0xdc00..=0xdfff)) => escape + 2 * UNIT,
            Some(0xd800..=0xdfff) => {
                whole.push_str(&json[kept..escape]);
                whole.push_str(r"\ufffd");
                kept = escape + UNIT;
                kept
            }
            Some(_) => escape + UNIT,
            // Every other escape is one character.
            None => escape + 1 + json[escape + 1..].chars().next().map_or(0, char::len_utf8),
        };
    }
    if kept == 0 {
        return json.into();
    }
    whole.push_str(&json[kept..]);
    whole.into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn half_a_character_costs_no_answer() {
        for (written, read) in [
            (r#""a\ud83d""#, "a\u{fffd}"),
            (r#""\ude00b""#, "\u{fffd}b"),
            (r#""\ud83d\ud83d\ude00""#, "\u{fffd}😀"),
            (r#""\ud83d\u0041""#, "\u{fffd}A"),
            (r#""\\ud83d \ud83d""#, "\\ud83d \u{fffd}"),
            (r#""\ud83d\n預""#, "\u{fffd}\n預"),
        ] {
            assert_eq!(json::<String>(written).expect(written), read, "{written}");
        }
        assert!(json::<String>(r#""\ud8"#).is_err() && json::<String>(r#""\"#).is_err());
    }

    proptest! {
        #[test]
        fn whole_json_is_read_as_it_is(text in "(\\PC|\\\\|\"|\n){0,20}") {
            let written = serde_json::to_string(&text).expect("JSON");
            prop_assert_eq!(&*whole_characters(&written), &*written);
        }

        #[test]
        fn nothing_makes_it_panic(text in r#"(\\|u|d8|00|dc|3d|"|預|\PC){0,20}"#) {
            let _ = json::<Value>(&text);
        }
    }
}
