//! Errors about unexpected JSON, and how JSON is read and shown.

use std::{fmt, marker::PhantomData};

use pmk_core::text;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{MapAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::Value;

/// The type of a value, in words.
pub fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Reads an object, and nothing else: a derived reader also accepts a list of the fields' values in the order of their
/// declaration, which is not an agreed format.
///
/// # Errors
/// If it is not an object, or not this one.
pub fn object<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    struct Object<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for Object<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
            T::deserialize(MapAccessDeserializer::new(map))
        }
    }

    deserializer.deserialize_map(Object(PhantomData))
}

/// The value on one line, safe for a terminal.
pub fn shown(value: &impl Serialize) -> String {
    printable(serde_json::to_string(value))
}

/// The value on several lines, safe for a terminal.
pub fn shown_pretty(value: &impl Serialize) -> String {
    printable(serde_json::to_string_pretty(value))
}

fn printable(json: serde_json::Result<String>) -> String {
    text::printable_json(&json.expect("values with texts for keys are JSON")).into_owned()
}

/// Reads a text that is one object.
///
/// # Errors
/// If it is not an object, or not this one.
pub fn read_object<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let read = object(&mut reader)?;
    reader.end()?;
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: bidirectional controls reached the terminal.
    #[test]
    fn what_is_not_seen_is_escaped_and_parsed_as_it_was() {
        let hidden = "\u{1b}[2J \u{7f}\u{9b}\u{202e}\u{2066}\u{200b}\u{feff}\u{e0041} \u{200d} \t\n\\ \"";
        let value = serde_json::json!({ hidden: [hidden, "👨\u{200d}👩\u{200d}👧 預算"] });
        for json in [shown(&value), shown_pretty(&value)] {
            assert_eq!(text::printable(&json), json);
            assert!(json.contains("\\u202e\\u2066") && json.contains("\\udb40\\udc41"), "{json}");
            assert!(json.contains("👨\u{200d}👩\u{200d}👧 預算"), "{json}");
            assert_eq!(serde_json::from_str::<Value>(&json).ok(), Some(value.clone()));
        }
    }

    #[derive(Debug, PartialEq, Eq, Deserialize)]
    struct Pair {
        a: String,
        b: Option<u8>,
    }

    #[test]
    fn only_an_object_is_read_as_one() {
        assert_eq!(read_object::<Pair>(r#"{"b":1,"a":"x","c":[]}"#).ok(), Some(Pair { a: "x".into(), b: Some(1) }));
        for text in [r#"["x",1]"#, r#""x""#, "null", r#"{"a":"x"} 1"#, r#"{"a":"x","a":"y"}"#, r#"{"b":1}"#] {
            assert!(read_object::<Pair>(text).is_err(), "{text}");
        }
    }
}
