//! Self-description, settings and the log.

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap},
};

use super::value::Value;

/// The bounds that the host sets.
pub(crate) const MAX_TEXT_CHARS: usize = 2_000;
const MAX_SETTINGS: usize = 100;

/// A policy's self-description.
#[derive(Debug, Default)]
pub struct Description {
    pub(crate) noted: RefCell<Noted>,
}

/// The description so far.
#[derive(Debug, Default)]
pub(crate) struct Noted {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) about: String,
    pub(crate) settings: BTreeMap<String, Declared>,
    pub(crate) mistakes: Vec<String>,
}

/// A setting as declared by the policy.
#[derive(Clone, Debug)]
pub(crate) struct Declared {
    pub(crate) default: Value,
    /// The allowed values of an integer.
    pub(crate) range: Option<(i64, i64)>,
}

impl Description {
    /// The name operators use: 1 to 64 of `a-z 0-9 -`.
    pub fn name(&self, name: &str) {
        self.noted.borrow_mut().name = name.to_owned();
    }

    /// The policy's own version, at most 64 characters.
    pub fn version(&self, version: &str) {
        self.noted.borrow_mut().version = version.to_owned();
    }

    /// One line on what the policy does, at most 200 characters.
    pub fn about(&self, line: &str) {
        self.noted.borrow_mut().about = line.to_owned();
    }

    /// Declares an integer setting; [`IntegerSetting`](crate::IntegerSetting) does it for you.
    pub fn setting_integer(&self, name: &str, default: i64, min: i64, max: i64, help: &str) {
        self.declare(name, Value::Integer(default), Some((min, max)), help);
    }

    /// Declares a boolean setting; [`BooleanSetting`](crate::BooleanSetting) does it for you.
    pub fn setting_boolean(&self, name: &str, default: bool, help: &str) {
        self.declare(name, Value::Boolean(default), None, help);
    }

    /// Declares a text setting; [`TextSetting`](crate::TextSetting) does it for you.
    pub fn setting_text(&self, name: &str, default: &str, help: &str) {
        self.declare(name, Value::Text(default.to_owned()), None, help);
    }

    fn declare(&self, name: &str, default: Value, range: Option<(i64, i64)>, help: &str) {
        let mut noted = self.noted.borrow_mut();
        if !is_name(name) {
            noted.mistakes.push(format!("`{name}` is no name for a setting: 1 to 64 of a-z 0-9 -"));
        }
        if help.is_empty() {
            noted.mistakes.push(format!("setting `{name}` has no help"));
        }
        if too_long(&default) {
            noted.mistakes.push(format!("the default of setting `{name}` is longer than {MAX_TEXT_CHARS} characters"));
        }
        if let (Value::Integer(value), Some((min, max))) = (&default, range)
            && !(min..=max).contains(value)
        {
            noted.mistakes.push(format!("the default of setting `{name}` is not within {min} to {max}"));
        }
        if noted.settings.insert(name.to_owned(), Declared { default, range }).is_some() {
            noted.mistakes.push(format!("setting `{name}` is declared twice"));
        }
        if noted.settings.len() == MAX_SETTINGS + 1 {
            noted.mistakes.push(format!("more than {MAX_SETTINGS} settings are declared"));
        }
    }
}

/// Whether the host accepts this as the name of a policy or a setting.
pub(crate) fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
}

/// Whether this is a text that the host does not accept as the value of a setting.
pub(crate) fn too_long(value: &Value) -> bool {
    matches!(value, Value::Text(text) if text.chars().count() > MAX_TEXT_CHARS)
}

/// The context of one decision: the settings in force, and the lines logged.
#[derive(Debug, Default)]
pub(crate) struct Decision {
    settings: HashMap<String, Value>,
    log: Vec<(u8, String)>,
}

thread_local! {
    static DECISION: RefCell<Decision> = RefCell::default();
}

impl Decision {
    /// Runs `decide` with these settings and returns what it logged.
    pub(crate) fn run(settings: &HashMap<String, Value>, decide: impl FnOnce()) -> Vec<(u8, String)> {
        DECISION.replace(Decision { settings: settings.clone(), log: Vec::new() });
        decide();
        DECISION.take().log
    }

    fn setting(name: &str) -> Option<Value> {
        DECISION.with_borrow(|decision| decision.settings.get(name).cloned())
    }
}

/// Writes a line to the host's log, at one of the [levels](crate::level).
pub fn log(level: u8, message: &str) {
    DECISION.with_borrow_mut(|decision| decision.log.push((level, message.to_owned())));
}

pub(crate) fn setting_integer(name: &str) -> Option<i64> {
    match Decision::setting(name) {
        Some(Value::Integer(value)) => Some(value),
        _ => None,
    }
}

pub(crate) fn setting_boolean(name: &str) -> Option<bool> {
    match Decision::setting(name) {
        Some(Value::Boolean(value)) => Some(value),
        _ => None,
    }
}

pub(crate) fn setting_text(name: &str) -> Option<String> {
    match Decision::setting(name) {
        Some(Value::Text(value)) => Some(value),
        _ => None,
    }
}
