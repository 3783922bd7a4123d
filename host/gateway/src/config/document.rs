//! A JSON document that is written as it was read: every key, known or not, stays in its place.
//!
//! `serde_json` sorts the keys of an object. Its feature that keeps the order would apply to the whole program and
//! change the order of keys in every output and every request, so gateway.json has a type of its own.

use std::{collections::HashSet, fmt};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, MapAccess, SeqAccess, Visitor},
};
use serde_json::Value;
use thiserror::Error;

/// Any JSON value.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    Object(Object),
    List(Vec<Json>),
    /// Neither an object nor a list.
    Scalar(Value),
}

/// An object whose keys keep their order. A duplicate key stays a duplicate; the last one counts, as it does when the
/// configuration is read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object {
    entries: Vec<(String, Json)>,
}

/// The value of a key has the wrong type.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("`{key}` is not {wanted}")]
pub struct WrongShape {
    pub key: String,
    pub wanted: &'static str,
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Json::Scalar(Value::from(text))
    }
}

impl From<u64> for Json {
    fn from(number: u64) -> Self {
        Json::Scalar(Value::from(number))
    }
}

impl Json {
    /// Returns the text, if this is a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Json::Scalar(value) => value.as_str(),
            _ => None,
        }
    }

    fn twice(&self, at: &str, found: &mut Vec<String>) {
        match self {
            Json::Object(object) => object.twice(at, found),
            Json::List(list) => list.iter().for_each(|item| item.twice(at, found)),
            Json::Scalar(_) => {}
        }
    }
}

impl Object {
    /// Finds the paths of all keys that repeat an earlier key of the same object, such as `slack.replyIn`. `at` is the
    /// path of this object; the items of a list have that of the list.
    pub(super) fn twice(&self, at: &str, found: &mut Vec<String>) {
        let mut keys = HashSet::new();
        for (key, value) in &self.entries {
            let path = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
            if !keys.insert(key) {
                found.push(path.clone());
            }
            value.twice(&path, found);
        }
    }

    /// Sets the value of a key: in its place, or else at the end.
    pub fn set(&mut self, key: &str, value: impl Into<Json>) {
        *self.entry(key, || Json::Scalar(Value::Null)) = value.into();
    }

    /// Returns the value of a key; `null` counts as absent.
    pub fn get(&self, key: &str) -> Option<&Json> {
        let (_, value) = self.entries.iter().rev().find(|(name, _)| name == key)?;
        (*value != Json::Scalar(Value::Null)).then_some(value)
    }

    /// Whether the key exists.
    pub fn contains(&self, key: &str) -> bool {
        self.entries.iter().any(|(name, _)| name == key)
    }

    /// Removes a key, and returns whether it existed.
    pub fn remove(&mut self, key: &str) -> bool {
        let before = self.entries.len();
        self.entries.retain(|(name, _)| name != key);
        self.entries.len() < before
    }

    /// Returns the object at this path. The object and its parents are created where they are missing or `null`.
    ///
    /// # Errors
    /// Something other than an object is there.
    pub fn object_at(&mut self, path: &[&str]) -> Result<&mut Object, WrongShape> {
        let mut at = self;
        for (depth, key) in path.iter().enumerate() {
            let Json::Object(next) = at.entry(key, || Json::Object(Object::default())) else {
                return Err(WrongShape { key: path[..=depth].join("."), wanted: "an object" });
            };
            at = next;
        }
        Ok(at)
    }

    /// Returns the list at this path, created if it is missing or `null`.
    ///
    /// # Errors
    /// Something other than a list is there.
    pub fn list_at(&mut self, path: &[&str]) -> Result<&mut Vec<Json>, WrongShape> {
        let (key, parents) = path.split_last().unwrap_or((&"", &[]));
        match self.object_at(parents)?.entry(key, || Json::List(vec![])) {
            Json::List(list) => Ok(list),
            _ => Err(WrongShape { key: path.join("."), wanted: "a list" }),
        }
    }

    /// Returns the value of a key, created if it is missing or `null`.
    fn entry(&mut self, key: &str, missing: impl FnOnce() -> Json) -> &mut Json {
        let at = match self.entries.iter().rposition(|(name, _)| name == key) {
            Some(at) => {
                if self.entries[at].1 == Json::Scalar(Value::Null) {
                    self.entries[at].1 = missing();
                }
                at
            }
            None => {
                self.entries.push((key.to_owned(), missing()));
                self.entries.len() - 1
            }
        };
        &mut self.entries[at].1
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.entries.iter().map(|(key, value)| (key, value)))
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Json::Object(object) => object.serialize(serializer),
            Json::List(list) => list.serialize(serializer),
            Json::Scalar(value) => value.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Json::deserialize(deserializer)? {
            Json::Object(object) => Ok(object),
            _ => Err(D::Error::custom("it is not an object")),
        }
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Scalar(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Scalar(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Scalar(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Json::Scalar(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Json::Object(Object { entries }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{
  "version": 1,
  "zeta": [
    null,
    true,
    -7,
    0.25,
    18446744073709551615,
    "中\n"
  ],
  "alpha": {
    "twice": 1,
    "twice": 2,
    "empty": {},
    "none": []
  }
}"#;

    fn object(text: &str) -> Object {
        serde_json::from_str(text).unwrap()
    }

    fn text(object: &Object) -> String {
        serde_json::to_string(object).unwrap()
    }

    #[test]
    fn what_is_read_is_written() {
        assert_eq!(serde_json::to_string_pretty(&object(TEXT)).unwrap(), TEXT);
        assert!(serde_json::from_str::<Object>("[]").is_err());
    }

    #[test]
    fn a_change_leaves_everything_else_where_it_was() {
        let mut root = object(r#"{"z":1,"a":{"y":1,"x":null},"list":["U1"],"twice":1,"twice":2}"#);
        root.set("z", "new");
        root.set("twice", 3);
        root.object_at(&["a", "x", "deep"]).unwrap().set("k", "v");
        root.list_at(&["list"]).unwrap().push("U2".into());
        root.list_at(&["more", "list"]).unwrap().push("U3".into());
        assert!(root.object_at(&["a"]).unwrap().remove("y"));
        assert!(!root.object_at(&["a"]).unwrap().remove("y"));
        let expected =
            r#"{"z":"new","a":{"x":{"deep":{"k":"v"}}},"list":["U1","U2"],"twice":1,"twice":3,"more":{"list":["U3"]}}"#;
        assert_eq!(text(&root), expected);
    }

    #[test]
    fn a_key_that_stands_twice_is_found_wherever_it_is() {
        let twice = |text: &str| {
            let mut found = vec![];
            object(text).twice("", &mut found);
            found
        };
        let text = r#"{"a": 1, "b": {"c": [{"d": 1.5, "d": -1}], "c": null}, "a": true, "e": {"a": "x"}}"#;
        assert_eq!(twice(text), ["b.c.d", "b.c", "a"]);
        assert_eq!(twice(r#"{"a": 1, "a": {"b": 1, "b": 2}}"#), ["a", "a.b"]);
        assert!(twice(r#"{"a": {"b": 1}, "b": 1}"#).is_empty());
    }

    #[test]
    fn another_shape_is_named_with_its_path() {
        let mut root = object(r#"{"a":{"b":"x"}}"#);
        assert_eq!(root.object_at(&["a", "b", "c"]).unwrap_err().to_string(), "`a.b` is not an object");
        assert_eq!(root.list_at(&["a"]).unwrap_err().to_string(), "`a` is not a list");
        assert_eq!(text(&root), r#"{"a":{"b":"x"}}"#);
    }
}
