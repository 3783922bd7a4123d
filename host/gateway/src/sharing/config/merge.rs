//! Merges two independent changes of one JSON document.
//!
//! What only one side has changed is taken from that side. Where both have changed an object, each of its keys is
//! merged in the same way; where both have changed a list, each of its elements: what either side has added is
//! included, what either has removed is not. Where two values conflict, theirs is used.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// The merged document, and the keys where our value lost.
pub(super) struct Merged {
    pub value: Map<String, Value>,
    pub contested: Vec<String>,
}

/// Merges both changes; the values of the keys in `whole` are never merged, only chosen.
pub(super) fn merge(
    base: &Map<String, Value>,
    ours: &Map<String, Value>,
    theirs: &Map<String, Value>,
    whole: &[&str],
) -> Merged {
    let mut merging = Merging { whole, contested: Vec::new() };
    let value = merging.objects(base, ours, theirs, "");
    Merged { value, contested: merging.contested }
}

struct Merging<'a> {
    whole: &'a [&'a str],
    contested: Vec<String>,
}

impl Merging<'_> {
    fn objects(
        &mut self,
        base: &Map<String, Value>,
        ours: &Map<String, Value>,
        theirs: &Map<String, Value>,
        at: &str,
    ) -> Map<String, Value> {
        let added = ours.keys().filter(|key| !theirs.contains_key(*key));
        let keys: Vec<&String> = theirs.keys().chain(added).collect();
        let mut merged = Map::new();
        for key in keys {
            let at = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
            if let Some(value) = self.values(base.get(key), ours.get(key), theirs.get(key), at) {
                merged.insert(key.clone(), value);
            }
        }
        merged
    }

    fn values(
        &mut self,
        base: Option<&Value>,
        ours: Option<&Value>,
        theirs: Option<&Value>,
        at: String,
    ) -> Option<Value> {
        if ours == base || ours == theirs {
            return theirs.cloned();
        }
        if theirs == base {
            return ours.cloned();
        }
        if !self.whole.contains(&at.as_str()) {
            // A removed value counts as an empty one.
            if let (Some(ours), Some(theirs)) = (object(ours), object(theirs)) {
                let merged = self.objects(&object(base).unwrap_or_default(), &ours, &theirs, &at);
                return (!merged.is_empty()).then_some(Value::Object(merged));
            }
            if let (Some(ours), Some(theirs)) = (list(ours), list(theirs)) {
                let merged = lists(list(base).unwrap_or_default(), ours, theirs);
                return (!merged.is_empty()).then_some(Value::Array(merged));
            }
        }
        self.contested.push(at);
        theirs.cloned()
    }
}

/// Returns a value as an object; a missing value counts as an empty one.
fn object(value: Option<&Value>) -> Option<Cow<'_, Map<String, Value>>> {
    match value {
        None => Some(Cow::default()),
        Some(value) => value.as_object().map(Cow::Borrowed),
    }
}

/// Returns a value as a list; a missing value counts as an empty one.
fn list(value: Option<&Value>) -> Option<&[Value]> {
    match value {
        None => Some(&[]),
        Some(value) => value.as_array().map(Vec::as_slice),
    }
}

fn lists(base: &[Value], ours: &[Value], theirs: &[Value]) -> Vec<Value> {
    let kept = theirs.iter().filter(|value| ours.contains(value) || !base.contains(value));
    let added = ours.iter().filter(|value| !base.contains(value) && !theirs.contains(value));
    kept.chain(added).cloned().collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().expect("an object").clone()
    }

    fn merged(base: Value, ours: Value, theirs: Value) -> (Value, Vec<String>) {
        let Merged { value, contested } = merge(&map(base), &map(ours), &map(theirs), &["experiment"]);
        (Value::Object(value), contested)
    }

    #[test]
    fn what_either_side_has_added_is_there_and_what_either_has_taken_away_is_not() {
        let base = json!({"admins": ["U1", "U2"], "audience": {"users": {"U1": "pm", "U2": "biz"}}});
        let ours = json!({"admins": ["U1", "U3"], "audience": {"users": {"U1": "pm", "U2": "biz", "U3": "tech"}},
                          "blocklist": ["U8"]});
        let theirs = json!({"admins": ["U2", "U1", "U4"], "audience": {"users": {"U1": "exec"}}, "blocklist": ["U9"]});
        let both = json!({"admins": ["U1", "U4", "U3"], "audience": {"users": {"U1": "exec", "U3": "tech"}},
                          "blocklist": ["U9", "U8"]});
        assert_eq!(merged(base, ours, theirs), (both, vec![]));
    }

    #[test]
    fn of_two_values_in_the_place_of_one_theirs_counts() {
        let base = json!({"audience": {"users": {"U1": "pm"}, "default": "pm"}});
        let ours = json!({"audience": {"users": {"U1": "biz"}}, "experiment": {"name": "a", "arms": [1]}});
        let theirs =
            json!({"audience": {"users": {"U1": "tech"}, "default": "biz"}, "experiment": {"name": "b", "arms": [2]}});
        let contested = ["audience.default", "audience.users.U1", "experiment"].map(str::to_owned).to_vec();
        assert_eq!(merged(base, ours, theirs.clone()), (theirs, contested));
    }

    #[test]
    fn an_order_that_one_side_has_changed_is_as_that_side_has_it() {
        let (base, turned) =
            (json!({"escalation": {"default": ["U1", "U2"]}}), json!({"escalation": {"default": ["U2", "U1"]}}));
        assert_eq!(merged(base.clone(), turned.clone(), base.clone()).0, turned);
        assert_eq!(merged(base.clone(), base, turned.clone()).0, turned);
    }

    fn document() -> impl Strategy<Value = Map<String, Value>> {
        let id = prop::sample::select(vec!["U1", "U2", "U3", "U4"]);
        let ids = prop::collection::btree_set(id.clone(), 0..4);
        let users = prop::collection::btree_map(id, prop::sample::select(vec!["pm", "biz", "tech"]), 0..4);
        (prop::option::of(ids), prop::option::of(users)).prop_map(|(ids, users)| {
            let mut document = Map::new();
            document.extend(ids.map(|ids| ("admins".to_owned(), json!(ids))));
            document.extend(users.map(|users| ("audience".to_owned(), json!({"users": users}))));
            document
        })
    }

    proptest! {
        /// In any order, and however often.
        #[test]
        fn nothing_that_one_side_alone_has_changed_is_lost(base in document(), ours in document(), theirs in document()) {
            let merge = |ours, theirs| merge(&base, ours, theirs, &[]).value;
            prop_assert_eq!(&merge(&base, &theirs), &theirs);
            prop_assert_eq!(&merge(&ours, &base), &ours);
            prop_assert_eq!(&merge(&ours, &ours), &ours);
            let once = merge(&ours, &theirs);
            // What was offered but not stored is merged again.
            prop_assert_eq!(&merge(&ours, &once), &once);
            let members = |document: &Map<String, Value>| document.get("admins").and_then(Value::as_array).cloned().unwrap_or_default();
            let (was, one, other, came) = (members(&base), members(&ours), members(&theirs), members(&once));
            for id in ["U1", "U2", "U3", "U4"].map(Value::from) {
                let is = |list: &[Value]| list.contains(&id);
                let expected = if is(&was) { is(&one) && is(&other) } else { is(&one) || is(&other) };
                prop_assert_eq!(is(&came), expected);
            }
        }
    }
}
