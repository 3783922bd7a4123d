//! For tests: JSON in which fields are missing, or `null`.

use proptest::{prelude::*, sample::Index};
use serde_json::Value;

/// A hole: which field of which event, and whether there is `null` in its place.
pub(crate) type Hole = (Index, Index, bool);

/// A few holes.
pub(crate) fn some() -> impl Strategy<Value = Vec<Hole>> {
    prop::collection::vec(any::<Hole>(), 0..12)
}

/// Makes the holes, but none in a field with one of the names, nor in what contains one, unless there is nothing in it.
pub(crate) fn make(events: &mut [Value], holes: &[Hole], kept: &[&str]) {
    for (event, field, is_null) in holes {
        let event = event.get_mut(events);
        let mut fields = Vec::new();
        find(event, "", kept, &mut fields);
        if fields.is_empty() {
            continue;
        }
        let (parent, name) = field.get(&fields).rsplit_once('/').expect("a field of something");
        match event.pointer_mut(parent).expect("just found") {
            Value::Object(fields) if !is_null => _ = fields.remove(name),
            parent => *parent.pointer_mut(&format!("/{name}")).expect("just found") = Value::Null,
        }
    }
}

/// Finds the fields that may be missing; returns whether there is one that may not.
fn find(value: &Value, pointer: &str, kept: &[&str], fields: &mut Vec<String>) -> bool {
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(inner) => inner.iter().map(|(name, value)| (name.clone(), value)).collect(),
        Value::Array(inner) => inner.iter().enumerate().map(|(at, value)| (at.to_string(), value)).collect(),
        _ => return false,
    };
    let mut has_kept = false;
    for (name, value) in inner {
        let pointer = format!("{pointer}/{name}");
        let is_kept = kept.contains(&name.as_str()) && !value.is_null() && value != "";
        if find(value, &pointer, kept, fields) || is_kept {
            has_kept = true;
        } else {
            fields.push(pointer);
        }
    }
    has_kept
}
