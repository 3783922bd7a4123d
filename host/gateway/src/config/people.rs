//! Reads the audiences and the contacts of gateway.json. As in pmk, an invalid entry is ignored with a warning, so that
//! one mistake does not keep everybody else from being answered.

use std::{collections::BTreeMap, str::FromStr};

use serde_json::{Map, Value};

use crate::{
    access::audience::{Audience, Audiences},
    escalation::Pools,
};

/// Reads `audience`: the default, and the exceptions.
pub(super) fn audiences(root: &Map<String, Value>, warnings: &mut Vec<String>) -> Audiences {
    let Some(part) = object(root, "audience", warnings) else { return Audiences::default() };
    let mut audience = |at: String, value: &Value| {
        let read = value.as_str().ok_or_else(|| "it is not a string".to_owned());
        let read = read.and_then(|text| Audience::from_str(text).map_err(|error| error.to_string()));
        read.inspect_err(|why| warnings.push(format!("`{at}` is ignored: {why}"))).ok()
    };
    let default = part.get("default").and_then(|value| audience("audience.default".into(), value));
    let mut all = |key: &str| -> BTreeMap<String, Audience> {
        let entries = part.get(key).and_then(Value::as_object).into_iter().flatten();
        entries.filter_map(|(id, value)| Some((id.clone(), audience(format!("audience.{key}.{id}"), value)?))).collect()
    };
    Audiences { default, users: all("users"), channels: all("channels") }
}

/// Reads `escalation`: the contacts.
pub(super) fn pools(root: &Map<String, Value>, warnings: &mut Vec<String>) -> Pools {
    let Some(part) = object(root, "escalation", warnings) else { return Pools::default() };
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
    let repos = part.get("repos").and_then(Value::as_object).into_iter().flatten();
    let repos = repos.map(|(repo, value)| (repo.clone(), ids(&format!("escalation.repos.{repo}"), value))).collect();
    Pools { default, repos }
}

fn object<'a>(root: &'a Map<String, Value>, key: &str, warnings: &mut Vec<String>) -> Option<&'a Map<String, Value>> {
    match root.get(key) {
        None | Some(Value::Null) => None,
        Some(Value::Object(part)) => Some(part),
        Some(_) => {
            warnings.push(format!("`{key}` is not an object; it is ignored"));
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

    #[test]
    fn another_shape_is_told_and_leaves_the_defaults() {
        let mut warnings = vec![];
        let root = root(json!({"audience": "biz", "escalation": []}));
        assert_eq!(audiences(&root, &mut warnings), Audiences::default());
        assert_eq!(pools(&root, &mut warnings), Pools::default());
        assert_eq!(warnings.len(), 2);
    }
}
