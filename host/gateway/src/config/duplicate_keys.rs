//! Finds duplicate keys. JSON allows them, and a reader of the file silently takes the last one.

use std::{collections::HashSet, fmt};

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Returns the paths of all keys that repeat an earlier key of the same object, such as `slack.replyIn`; none if the
/// text is not JSON.
pub(super) fn twice(text: &str) -> Vec<String> {
    let mut found = vec![];
    let mut json = serde_json::Deserializer::from_str(text);
    // JSON errors are reported elsewhere.
    let _ = Look { path: String::new(), found: &mut found }.deserialize(&mut json);
    found
}

/// Visits one value.
struct Look<'a> {
    path: String,
    found: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Look<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Look<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut keys = HashSet::new();
        while let Some(key) = map.next_key::<String>()? {
            let path = if self.path.is_empty() { key.clone() } else { format!("{}.{key}", self.path) };
            if !keys.insert(key) {
                self.found.push(path.clone());
            }
            map.next_value_seed(Look { path, found: self.found })?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Look { path: self.path.clone(), found: self.found })?.is_some() {}
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::twice;

    #[test]
    fn a_key_that_stands_twice_is_found_wherever_it_is() {
        let text = r#"{"a": 1, "b": {"c": [{"d": 1.5, "d": -1}], "c": null}, "a": true, "e": {"a": "x"}}"#;
        assert_eq!(twice(text), ["b.c.d", "b.c", "a"]);
        for none in [r#"{"a": {"b": 1}, "b": 1}"#, "[]", "", "{"] {
            assert!(twice(none).is_empty(), "{none}");
        }
    }
}
