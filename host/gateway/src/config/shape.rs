//! The allowed values in gateway.json. One description serves the check of a file, its display, and the JSON Schema, so
//! that all three know the same keys and limits.

use std::ops::RangeInclusive;

use jiff::Timestamp;
use pmk_system::json;
use serde_json::{Map, Value, json};

use super::Secret;
use crate::{slack_id::Id, spelling::closest};

/// More seconds than any timer can wait.
const TOO_MANY_SECONDS: f64 = 18_446_744_073_709_551_616.0;

/// A problem with a file, as a sentence without its period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub what: String,
    /// Whether the gateway cannot start with such a file.
    pub is_grave: bool,
}

/// The description of a key.
#[derive(Clone, Debug)]
pub struct Key {
    pub name: &'static str,
    /// Its meaning, in one line.
    pub about: &'static str,
    pub shape: Shape,
    /// The value if the file has none.
    pub default: Option<Value>,
    /// The environment variable that takes precedence over the file.
    pub variable: Option<&'static str>,
    pub is_needed: bool,
    /// Whether `null` is the same as leaving it out.
    pub may_be_null: bool,
    /// Whether invalid values are ignored with a warning by the code that reads them, instead of being refused.
    pub is_forgiven: bool,
}

/// The allowed values.
#[derive(Clone, Debug)]
pub enum Shape {
    /// Not used by this gateway: kept as it is, and may contain secrets.
    Kept,
    /// An object whose keys are checked elsewhere.
    Free,
    /// A text, and what it is called.
    Text(&'static str),
    /// The id of a person. Any other text names nobody in Slack and causes a warning; on another front it may name
    /// somebody.
    Person,
    Flag,
    Whole(RangeInclusive<u64>),
    /// A positive number of seconds.
    Seconds,
    /// One of these words; `any_case` allows upper and lower case.
    Word {
        words: Vec<&'static str>,
        any_case: bool,
    },
    /// A text for which `is_it` holds, with the equivalent pattern and what it is called. `shown` returns what may be
    /// shown of it, or `None` if it may contain a secret.
    Like {
        is_it: fn(&str) -> bool,
        pattern: String,
        noun: String,
        shown: fn(&str) -> Option<String>,
    },
    /// A point in time.
    Moment,
    Secret,
    /// A program and its first arguments.
    Command,
    List {
        of: Box<Shape>,
        least: usize,
        most: Option<usize>,
        noun: &'static str,
    },
    /// Any keys, with values that all have this shape.
    Map(Box<Shape>),
    Object {
        keys: Vec<Key>,
        unknown: Unknown,
    },
}

/// What happens to unknown keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    Refused,
    /// Ignored with a warning.
    Told,
}

impl Key {
    /// Creates a key without a default.
    pub fn new(name: &'static str, shape: Shape, about: &'static str) -> Key {
        Key {
            name,
            about,
            shape,
            default: None,
            variable: None,
            is_needed: false,
            may_be_null: false,
            is_forgiven: false,
        }
    }

    /// Sets the default.
    pub fn or(mut self, default: impl Into<Value>) -> Key {
        self.default = Some(default.into());
        self
    }

    /// Sets the variable that takes precedence.
    pub fn after(mut self, variable: &'static str) -> Key {
        self.variable = Some(variable);
        self
    }

    pub fn needed(mut self) -> Key {
        self.is_needed = true;
        self
    }

    pub fn or_null(mut self) -> Key {
        self.may_be_null = true;
        self
    }

    pub fn forgiven(mut self) -> Key {
        self.is_forgiven = true;
        self
    }

    /// Returns its value in the file.
    pub fn given<'a>(&self, object: &'a Map<String, Value>) -> Option<&'a Value> {
        object.get(self.name).filter(|value| !(self.may_be_null && value.is_null()))
    }

    fn schema(&self) -> Value {
        let mut schema = self.shape.schema();
        if self.may_be_null {
            if let Some(Value::Array(kinds)) = schema.get_mut("anyOf") {
                kinds.push(json!({"type": "null"}));
            } else if let Some(kind) = schema.get("type").cloned() {
                schema["type"] = json!([kind, "null"]);
            }
            if let Some(Value::Array(words)) = schema.get_mut("enum") {
                words.push(Value::Null);
            }
        }
        schema["description"] = self.about.into();
        if let Some(default) = &self.default {
            schema["default"] = default.clone();
        }
        schema
    }
}

impl Shape {
    /// An object with these keys and no others.
    pub fn object(keys: Vec<Key>) -> Shape {
        Shape::Object { keys, unknown: Unknown::Refused }
    }

    /// A list, with what it is called.
    pub fn list(of: Shape, noun: &'static str) -> Shape {
        Shape::List { of: Box::new(of), least: 0, most: None, noun }
    }

    /// Appends the problems of a value at this path, which is empty for the file itself.
    pub fn look(&self, at: &str, value: &Value, problems: &mut Vec<Problem>) {
        match (self, value) {
            (Shape::Kept, _) => {}
            (Shape::Secret, value) => {
                problems.extend(Secret::read(at, Some(value)).err().map(grave));
            }
            (Shape::Command, Value::Array(words)) => {
                for (n, word) in words.iter().enumerate() {
                    Shape::Text("a string").look(&format!("{at}[{n}]"), word, problems);
                }
                let program = words.first().map(|word| word.as_str().unwrap_or("?"));
                if program.is_none_or(|program| program.trim().is_empty()) {
                    problems.push(grave(format!("`{at}` does not name a program")));
                }
            }
            (Shape::Person, Value::String(text)) => {
                if Id::user(text.trim()).is_err() {
                    let what = format!("`{at}` is `{text}`, not a Slack user id (`U…`, `W…`)");
                    problems.push(Problem { what, is_grave: false });
                }
            }
            (Shape::List { of, least, most, .. }, Value::Array(items)) => {
                if items.len() < *least {
                    problems.push(grave(format!("`{at}` has {}, which is fewer than {least}", items.len())));
                }
                if let Some(most) = most
                    && items.len() > *most
                {
                    problems.push(grave(format!("`{at}` has {}, which is more than {most}", items.len())));
                }
                for (n, item) in items.iter().enumerate() {
                    of.look(&format!("{at}[{n}]"), item, problems);
                }
            }
            (Shape::Map(of), Value::Object(entries)) => {
                for (name, value) in entries {
                    of.look(&joined(at, name), value, problems);
                }
            }
            (Shape::Object { keys, unknown }, Value::Object(object)) => {
                look_at_keys(at, keys, *unknown, object, problems);
            }
            _ => match (self.takes(value), value) {
                (Some(true), _) => {}
                (Some(false), Value::String(text)) => {
                    let meant = match self {
                        Shape::Word { words, .. } => did_you_mean(text, words.iter().copied()),
                        _ => String::new(),
                    };
                    // The text before an @ may contain a password.
                    let text = if text.contains('@') { "…@…" } else { text };
                    problems.push(grave(format!("`{at}` is `{text}`, not {}{meant}", self.noun())));
                }
                (Some(false), value) => problems.push(grave(format!("`{at}` is {value}, not {}", self.noun()))),
                (None, value) => {
                    problems.push(grave(format!("`{at}` is {}, not {}", json::kind(value), self.noun())));
                }
            },
        }
    }

    /// Whether a value without nested values is allowed; `None` if it is of another type.
    fn takes(&self, value: &Value) -> Option<bool> {
        Some(match (self, value) {
            (Shape::Free, Value::Object(_)) | (Shape::Flag, Value::Bool(_)) | (Shape::Text(_), Value::String(_)) => {
                true
            }
            (Shape::Whole(range), Value::Number(number)) => {
                number.as_u64().is_some_and(|number| range.contains(&number))
            }
            (Shape::Seconds, Value::Number(number)) => {
                number.as_f64().is_some_and(|seconds| seconds > 0.0 && seconds < TOO_MANY_SECONDS)
            }
            (Shape::Word { words, any_case }, Value::String(text)) => {
                let is_it = |word: &&str| text == word || (*any_case && text.trim().eq_ignore_ascii_case(word));
                words.iter().any(is_it)
            }
            (Shape::Like { is_it, .. }, Value::String(text)) => is_it(text),
            (Shape::Moment, Value::String(text)) => text.parse::<Timestamp>().is_ok(),
            _ => return None,
        })
    }

    /// Returns what it is called.
    fn noun(&self) -> String {
        match self {
            Shape::Kept => "anything".to_owned(),
            Shape::Text(noun) | Shape::List { noun, .. } => (*noun).to_owned(),
            Shape::Person => "a user id".to_owned(),
            Shape::Flag => "true or false".to_owned(),
            Shape::Whole(range) => format!("a whole number from {} to {}", range.start(), range.end()),
            Shape::Seconds => "a number of seconds above 0".to_owned(),
            Shape::Word { words, .. } => {
                let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
                match words.split_last() {
                    Some((last, [])) => last.clone(),
                    Some((last, others)) => format!("{} or {last}", others.join(", ")),
                    None => "any word".to_owned(),
                }
            }
            Shape::Like { noun, .. } => noun.clone(),
            Shape::Moment => "a time such as `2026-05-07T09:00:00Z`".to_owned(),
            Shape::Secret => r#"a string, {"env":"NAME"}, {"file":"PATH"} or {"cmd":"COMMAND"}"#.to_owned(),
            Shape::Command => "a list of a program and its arguments".to_owned(),
            Shape::Free | Shape::Map(_) | Shape::Object { .. } => "an object".to_owned(),
        }
    }

    /// Returns the equivalent JSON Schema.
    pub fn schema(&self) -> Value {
        match self {
            Shape::Kept => json!({}),
            Shape::Free => json!({"type": "object"}),
            Shape::Text(_) | Shape::Person => json!({"type": "string"}),
            Shape::Flag => json!({"type": "boolean"}),
            Shape::Whole(range) => json!({"type": "integer", "minimum": range.start(), "maximum": range.end()}),
            Shape::Seconds => {
                json!({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": TOO_MANY_SECONDS})
            }
            Shape::Word { words, .. } => json!({"type": "string", "enum": words}),
            Shape::Like { pattern, .. } => json!({"type": "string", "pattern": pattern}),
            Shape::Moment => json!({"type": "string", "format": "date-time"}),
            Shape::Secret => {
                let one_of = |name: &str, value: Value| {
                    let properties = json!({name: value});
                    json!({"type": "object", "properties": properties, "required": [name], "additionalProperties": false})
                };
                let text = || json!({"type": "string"});
                // A full path, or the name of a credential.
                let path = json!({"type": "string", "pattern": "^(/|[^/]*[^/.][^/]*$|[.]{3,}$)"});
                json!({"anyOf": [text(), one_of("env", text()), one_of("file", path), one_of("cmd", text())]})
            }
            Shape::Command => json!({
                "type": "array", "items": {"type": "string"}, "minItems": 1, "prefixItems": [{"type": "string", "pattern": r"\S"}],
            }),
            Shape::List { of, least, most, .. } => {
                let mut schema = json!({"type": "array", "items": of.schema()});
                if *least > 0 {
                    schema["minItems"] = json!(least);
                }
                if let Some(most) = most {
                    schema["maxItems"] = json!(most);
                }
                schema
            }
            Shape::Map(of) => json!({"type": "object", "additionalProperties": of.schema()}),
            Shape::Object { keys, unknown } => {
                let properties: Map<String, Value> =
                    keys.iter().map(|key| (key.name.to_owned(), key.schema())).collect();
                let needed: Vec<&str> = keys.iter().filter(|key| key.is_needed).map(|key| key.name).collect();
                let mut schema = json!({"type": "object", "properties": properties});
                if !needed.is_empty() {
                    schema["required"] = json!(needed);
                }
                if *unknown == Unknown::Refused {
                    schema["additionalProperties"] = json!(false);
                }
                schema
            }
        }
    }
}

fn look_at_keys(at: &str, keys: &[Key], unknown: Unknown, object: &Map<String, Value>, problems: &mut Vec<Problem>) {
    for (name, value) in object {
        let Some(key) = keys.iter().find(|key| key.name == name) else {
            let path = joined(at, name);
            let meant = did_you_mean(name, keys.iter().map(|key| key.name));
            problems.push(match unknown {
                Unknown::Told => Problem { what: format!("unknown key `{path}` is ignored{meant}"), is_grave: false },
                Unknown::Refused if meant.is_empty() => {
                    let names: Vec<String> = keys.iter().map(|key| format!("`{}`", key.name)).collect();
                    grave(format!("unknown key `{path}`; there are {}", names.join(", ")))
                }
                Unknown::Refused => grave(format!("unknown key `{path}`{meant}")),
            });
            continue;
        };
        if key.may_be_null && value.is_null() {
            continue;
        }
        let mut found = vec![];
        key.shape.look(&joined(at, name), value, &mut found);
        // The code that reads these values reports invalid ones, but does not report unknown keys.
        found.retain(|problem| !key.is_forgiven || !problem.is_grave);
        problems.extend(found);
    }
    for key in keys.iter().filter(|key| key.is_needed && !object.contains_key(key.name)) {
        problems.push(grave(format!("`{}` is missing", joined(at, key.name))));
    }
}

fn grave(what: String) -> Problem {
    Problem { what, is_grave: true }
}

/// The path of a key.
pub fn joined(at: &str, name: &str) -> String {
    if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") }
}

/// Returns a text that may be shown; `None` if it contains an @, since an address may contain a user and a password.
pub fn plainly(text: &str) -> Option<String> {
    (!text.contains('@')).then(|| text.to_owned())
}

/// Suggests the known word most similar to a mistyped one, as the end of a sentence; empty if none is similar enough.
pub(crate) fn did_you_mean<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> String {
    closest(word, known).map(|known| format!("; did you mean `{known}`?")).unwrap_or_default()
}
