//! Reads the audiences and the contacts of gateway.json. As in pmk, an invalid entry is ignored with a warning, so that
//! one mistake does not keep everybody else from being answered.

use std::{collections::BTreeMap, str::FromStr};

use serde_json::{Map, Value};

use super::shape::joined;
use crate::{
    access::audience::{Audience, Audiences},
    escalation::Pools,
    slack_id::{BadId, Id},
};

/// Reads `audience`: the default, and the exceptions.
pub(super) fn audiences(root: &Map<String, Value>, warnings: &mut Vec<String>) -> Audiences {
    let Some(part) = object(root, "", "audience", warnings) else { return Audiences::default() };
    let [users, channels] = ["users", "channels"].map(|key| object(part, "audience", key, warnings));
    let mut audience = |at: String, whose: Result<(), BadId>, value: &Value| {
        let read = whose.map_err(|error| error.to_string());
        let read = read.and_then(|()| value.as_str().ok_or_else(|| "it is not a string".to_owned()));
        let read = read.and_then(|text| Audience::from_str(text).map_err(|error| error.to_string()));
        read.inspect_err(|why| warnings.push(format!("`{at}` is ignored: {why}"))).ok()
    };
    let default = part.get("default").and_then(|value| audience("audience.default".into(), Ok(()), value));
    let mut all = |key: &str, entries: Option<&Map<String, Value>>, check: fn(&str) -> Result<(), BadId>| {
        let entry = |(id, value): (&String, &Value)| {
            Some((id.clone(), audience(format!("audience.{key}.{id}"), check(id), value)?))
        };
        entries.into_iter().flatten().filter_map(entry).collect::<BTreeMap<String, Audience>>()
    };
    let users = all("users", users, |id: &str| Id::user(id).map(drop));
    let channels = all("channels", channels, |id: &str| Id::channel(id).map(drop));
    Audiences { default, users, channels }
}

/// Reads `escalation`: the contacts.
pub(super) fn pools(root: &Map<String, Value>, warnings: &mut Vec<String>) -> Pools {
    let Some(part) = object(root, "", "escalation", warnings) else { return Pools::default() };
    let repos = object(part, "escalation", "repos", warnings);
    let mut ids = |at: &str, value: &Value| -> Vec<String> {
        let Some(items) = value.as_array() else {
            warnings.push(format!("`{at}` is not a list of user ids; it is ignored"));
            return vec![];
        };
        let kept: Vec<String> = items.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        if kept.len() < items.len() {
            warnings.push(format!("`{at}` contains something that is not a user id; it is ignored"));
        }
        kept
    };
    let default = part.get("default").map(|value| ids("escalation.default", value)).unwrap_or_default();
    let repos = repos.into_iter().flatten();
    let repos = repos.map(|(repo, value)| (repo.clone(), ids(&format!("escalation.repos.{repo}"), value))).collect();
    Pools { default, repos }
}

/// Returns the object at this key of the object at this path, which is empty for the file itself.
fn object<'a>(
    of: &'a Map<String, Value>,
    at: &str,
    key: &str,
    warnings: &mut Vec<String>,
) -> Option<&'a Map<String, Value>> {
    match of.get(key) {
        None | Some(Value::Null) => None,
        Some(Value::Object(part)) => Some(part),
        Some(_) => {
            warnings.push(format!("`{}` is not an object; it is ignored", joined(at, key)));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn root(value: Value) -> Map<String, Value> {
        value.as_object().expect("an object").clone()
    }

    #[test]
    fn what_makes_no_sense_is_left_out_and_told() {
        let mut warnings = vec![];
        let root = root(json!({
            "audience": {"default": "pm", "users": {"U1": "exec", "U2": "king", "U3": 7}, "channels": {"C1": "tech"},
                         "domainExamples": {"biz": []}},
            "escalation": {"default": ["U7", 8], "repos": {"erp": ["U9"], "web": "U9"}},
        }));
        let audiences = audiences(&root, &mut warnings);
        assert_eq!(audiences.pick("U1", None), Audience::Exec);
        assert_eq!(audiences.pick("U2", Some("C1")), Audience::Tech);
        assert_eq!(audiences.pick("U3", None), Audience::Pm);
        let pools = pools(&root, &mut warnings);
        assert_eq!(pools.contacts(Some("erp"), |contact| contact != "U1"), ["U9"]);
        assert_eq!(pools.contacts(Some("web"), |contact| contact != "U1"), ["U7"]);
        assert_eq!(warnings.len(), 4, "{warnings:?}");
        assert!(warnings[0].contains("`audience.users.U2`") && warnings[0].contains("`king`"), "{warnings:?}");
        assert_eq!(warnings[3], "`escalation.repos.web` is not a list of user ids; it is ignored");
    }

    /// Regression: such entries passed for well, although they are nobody's.
    #[test]
    fn an_audience_of_what_is_no_id_was_kept() {
        let mut warnings = vec![];
        let root = root(json!({
            "audience": {"users": {"@ann": "tech", "C1": "pm", "U1": "pm"},
                         "channels": {"#general": "pm", "U2": "tech", "C2": "exec"}},
        }));
        let kept = audiences(&root, &mut warnings);
        assert_eq!(kept.users, BTreeMap::from([("U1".to_owned(), Audience::Pm)]));
        assert_eq!(kept.channels, BTreeMap::from([("C2".to_owned(), Audience::Exec)]));
        assert_eq!(
            warnings,
            [
                "`audience.users.@ann` is ignored: `@ann` is not a user id (`U…`, `W…`)",
                "`audience.users.C1` is ignored: `C1` is not a user id (`U…`, `W…`)",
                "`audience.channels.#general` is ignored: `#general` is not a channel id (`C…`, `G…`, `D…`)",
                "`audience.channels.U2` is ignored: `U2` is not a channel id (`C…`, `G…`, `D…`)",
            ]
        );
    }

    #[test]
    fn another_shape_is_told_and_leaves_the_defaults() {
        let mut warnings = vec![];
        let root = root(json!({"audience": "biz", "escalation": []}));
        assert_eq!(audiences(&root, &mut warnings), Audiences::default());
        assert_eq!(pools(&root, &mut warnings), Pools::default());
        assert_eq!(warnings.len(), 2);
    }

    /// Regression: these were dropped without a word, and the check called the file valid.
    #[test]
    fn another_shape_within_an_audience_or_the_contacts_was_dropped_in_silence() {
        let mut warnings = vec![];
        let root = root(json!({
            "audience": {"default": "pm", "users": ["U1"], "channels": "C1"},
            "escalation": {"default": ["U7"], "repos": ["erp"]},
        }));
        assert_eq!(audiences(&root, &mut warnings).pick("U1", Some("C1")), Audience::Pm);
        assert_eq!(pools(&root, &mut warnings).contacts(Some("erp"), |_| true), ["U7"]);
        let told = ["audience.users", "audience.channels", "escalation.repos"]
            .map(|at| format!("`{at}` is not an object; it is ignored"));
        assert_eq!(warnings, told);
        warnings.clear();
        let empty = json!({"audience": {"users": null, "channels": {}}, "escalation": {"repos": null}});
        let root = empty.as_object().expect("an object");
        assert_eq!(audiences(root, &mut warnings), Audiences::default());
        assert_eq!(pools(root, &mut warnings), Pools::default());
        assert_eq!(warnings, Vec::<String>::new());
    }
}
