//! Imports the open case of a channel of pmk: `activeCase` in its `meta.json`. Its format has changed over time and is
//! not documented, so everything that can be understood of it is imported, and the rest is reported.

use jiff::Timestamp;
use pmk_core::{FrontName, text};
use serde_json::Value;
use thiserror::Error;

use super::{MAX_TITLE_CHARS, Note, NoteKind};

/// The names that titles, times and people have had.
const TITLE: [&str; 5] = ["title", "name", "subject", "slug", "id"];
const OPENED_AT: [&str; 4] = ["openedAt", "createdAt", "startedAt", "at"];
const OPENED_BY: [&str; 4] = ["openedBy", "createdBy", "userId", "owner"];
const NOTES: [(NoteKind, &[&str]); 2] = [
    (NoteKind::Hypothesis, &["hypotheses", "hypothesis"]),
    (NoteKind::Question, &["openQuestions", "nextQuestions", "questions"]),
];
const WORDS: [&str; 4] = ["text", "title", "question", "hypothesis"];

/// An open case of pmk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedCase {
    pub front: FrontName,
    pub channel: String,
    pub title: String,
    pub opened_by: Option<String>,
    /// `None`: pmk did not say.
    pub opened_at_ms: Option<i64>,
    pub notes: Vec<Note>,
}

/// Why a channel's case is not imported.
#[derive(Debug, Error)]
pub enum BadCase {
    #[error("it is not JSON: {0}")]
    NoJson(#[from] serde_json::Error),
    #[error("`activeCase` has no readable title")]
    NoTitle,
}

/// Returns the case in a channel's `meta.json`, and one line for each part that could not be understood. `None` if no
/// case is open.
///
/// # Errors
/// There is a case, and nothing of it can be understood.
pub fn imported(front: FrontName, channel: &str, json: &[u8]) -> Result<Option<(ImportedCase, Vec<String>)>, BadCase> {
    let meta: Value = serde_json::from_slice(json.strip_prefix("\u{feff}".as_bytes()).unwrap_or(json))?;
    let case = match meta.get("activeCase") {
        None | Some(Value::Null | Value::Bool(false)) => return Ok(None),
        Some(Value::String(title)) if title.trim().is_empty() => return Ok(None),
        Some(case) => case,
    };
    let mut odd = Vec::new();
    let title = match case {
        Value::String(title) => line(title),
        case => first(case, &TITLE).and_then(words),
    };
    let title = title.ok_or(BadCase::NoTitle)?;
    let opened_at = first(case, &OPENED_AT);
    let opened_at_ms = opened_at.and_then(time);
    if opened_at_ms.is_none() {
        odd.push("it does not say when it was opened: now is used".to_owned());
    }
    let imported = ImportedCase {
        front,
        channel: channel.to_owned(),
        title: text::head(&title, MAX_TITLE_CHARS).to_owned(),
        opened_by: first(case, &OPENED_BY).and_then(Value::as_str).and_then(line),
        opened_at_ms,
        notes: NOTES.iter().flat_map(|(kind, keys)| notes(*kind, first(case, keys), &mut odd)).collect(),
    };
    Ok(Some((imported, odd)))
}

/// Returns the value of the first of these keys that has one.
fn first<'a>(case: &'a Value, keys: &[&str]) -> Option<&'a Value> {
    keys.iter().filter_map(|key| case.get(key)).find(|value| !value.is_null())
}

fn notes(kind: NoteKind, list: Option<&Value>, odd: &mut Vec<String>) -> Vec<Note> {
    let list = match list {
        None => return vec![],
        Some(Value::Array(list)) => list.as_slice(),
        Some(one) => std::slice::from_ref(one),
    };
    let read: Vec<Note> = list.iter().filter_map(|value| Note::new(kind, &words(value)?)).collect();
    if read.len() < list.len() {
        odd.push(format!("{} of its entries of kind `{}` could not be read", list.len() - read.len(), kind.name()));
    }
    read
}

/// Returns a text: a string, a number, or a text field of an object.
fn words(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => line(text),
        Value::Number(number) => Some(number.to_string()),
        Value::Object(_) => first(value, &WORDS).and_then(Value::as_str).and_then(line),
        _ => None,
    }
}

fn line(text: &str) -> Option<String> {
    let line = text::collapse_whitespace(&text::plain_line(text));
    (!line.is_empty()).then_some(line)
}

/// Parses milliseconds since the epoch, or an RFC 3339 text.
fn time(value: &Value) -> Option<i64> {
    match value {
        Value::String(text) => Some(text.parse::<Timestamp>().ok()?.as_millisecond()),
        number => number.as_f64().filter(|at| *at > 0.0 && *at < 1e15).map(|at| at as i64),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(json: &str) -> Result<Option<(ImportedCase, Vec<String>)>, BadCase> {
        imported(FrontName::Slack, "C1", json.as_bytes())
    }

    #[test]
    fn a_case_is_read_with_what_it_knows() {
        let json = r#"{"activeCase": {"id": "2026-05-login", "title": " login\nfails ", "openedAt": "2026-05-07T07:39:55.339Z",
            "openedBy": "U1", "hypotheses": ["cache", {"text": "DNS", "at": 7}, 7, [], ""], "openQuestions": "since when?"}}"#;
        let (case, odd) = read(json).expect("a case").expect("an open one");
        assert_eq!((case.title.as_str(), case.opened_by.as_deref()), ("login fails", Some("U1")));
        assert_eq!(case.opened_at_ms, Some(1_778_139_595_339));
        let notes: Vec<&str> = case.notes.iter().map(|note| note.text.as_str()).collect();
        assert_eq!(notes, ["cache", "DNS", "7", "since when?"]);
        assert_eq!(odd, ["2 of its entries of kind `hypothesis` could not be read"]);
    }

    #[test]
    fn odd_shapes_are_a_case_where_they_have_a_title() {
        for (json, title, opened) in [
            (r#"{"activeCase": "login fails"}"#, "login fails", None),
            (
                r#"{"activeCase": {"slug": "login-fails", "createdAt": 1778139595339}}"#,
                "login-fails",
                Some(1_778_139_595_339),
            ),
            (r#"{"activeCase": {"id": 12, "openedAt": {}, "hypotheses": null}}"#, "12", None),
        ] {
            let (case, odd) = read(json).expect("a case").expect("an open one");
            let is_odd = usize::from(opened.is_none());
            assert_eq!((case.title.as_str(), case.opened_at_ms, odd.len()), (title, opened, is_odd));
        }
        let long = format!(r#"{{"activeCase": "{}"}}"#, "長".repeat(900));
        assert_eq!(read(&long).expect("a case").expect("an open one").0.title.chars().count(), MAX_TITLE_CHARS);
    }

    #[test]
    fn no_case_and_none_that_can_be_read_are_told_apart() {
        for none in ["{}", "[]", "7", r#"{"activeCase": null}"#, r#"{"activeCase": false}"#, r#"{"activeCase": " "}"#] {
            assert!(matches!(read(none), Ok(None)), "{none}");
        }
        for bad in ["", "{", r#"{"activeCase": {}}"#, r#"{"activeCase": [1]}"#, r#"{"activeCase": true}"#] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(json in "[\\[\\]{}:,\"a-z0-9 ]{0,40}", title in "\\PC{0,300}") {
            let _ = read(&json);
            let meta = serde_json::json!({"activeCase": {"title": title}}).to_string();
            if let Ok(Some((case, _))) = read(&meta) {
                prop_assert!(!case.title.is_empty() && case.title.chars().count() <= MAX_TITLE_CHARS);
            }
        }
    }
}
