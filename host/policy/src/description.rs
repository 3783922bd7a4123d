//! A policy's self-description.

use pmk_core::text;
use serde::Serialize;

use crate::decision::FLOOR;

/// The maximum length of a policy's name, and of a setting's name, in characters.
pub const MAX_NAME_CHARS: usize = 64;
/// The maximum length of a version, in characters.
pub const MAX_VERSION_CHARS: usize = 64;
/// The maximum length of the line that says what a policy does, and of a setting's help, in characters.
pub const MAX_LINE_CHARS: usize = 200;
/// The maximum length of a text setting, in characters.
pub const MAX_TEXT_CHARS: usize = 2_000;
/// The maximum number of settings that a policy may declare.
pub const MAX_SETTINGS: usize = 100;

/// A validated self-description.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Description {
    /// The name operators use.
    pub name: String,
    /// The policy's own version; may be empty.
    pub version: String,
    /// One line on what it does; may be empty.
    pub about: String,
    /// Its settings, in the order it declared them.
    pub settings: Vec<SettingSpec>,
}

impl Description {
    /// The setting with that name.
    pub fn setting(&self, name: &str) -> Option<&SettingSpec> {
        self.settings.iter().find(|spec| spec.name == name)
    }
}

/// One setting a policy declares.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SettingSpec {
    /// The name operators use.
    pub name: String,
    /// Its type.
    #[serde(flatten)]
    pub kind: SettingKind,
    /// One line for the operator; may be empty.
    pub help: String,
}

/// The type of a setting, and its default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum SettingKind {
    /// An integer from `min` to `max`.
    Integer {
        /// The default.
        default: i64,
        /// The smallest allowed.
        min: i64,
        /// The largest allowed.
        max: i64,
    },
    /// `true` or `false`.
    Boolean {
        /// The default.
        default: bool,
    },
    /// Text of at most [`MAX_TEXT_CHARS`] characters.
    Text {
        /// The default.
        default: String,
    },
}

/// A description while the component writes it. Of every text only enough is kept to detect that it is too long, so
/// that a component cannot fill the host's memory with its description.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    name: Option<String>,
    version: String,
    about: String,
    settings: Vec<SettingSpec>,
    /// Whether more settings were declared than are kept.
    overfull: bool,
}

impl Draft {
    pub fn name(&mut self, name: &str) {
        self.name = Some(bounded(name, MAX_NAME_CHARS));
    }

    pub fn version(&mut self, version: &str) {
        self.version = one_line(version, MAX_VERSION_CHARS);
    }

    pub fn about(&mut self, line: &str) {
        self.about = one_line(line, MAX_LINE_CHARS);
    }

    pub(crate) fn declare_text(&mut self, name: &str, default: &str, help: &str) {
        self.declare(name, SettingKind::Text { default: bounded(default, MAX_TEXT_CHARS) }, help);
    }

    pub(crate) fn declare(&mut self, name: &str, kind: SettingKind, help: &str) {
        if self.settings.len() >= MAX_SETTINGS {
            self.overfull = true;
            return;
        }
        let (name, help) = (bounded(name, MAX_NAME_CHARS), one_line(help, MAX_LINE_CHARS));
        self.settings.push(SettingSpec { name, kind, help });
    }

    /// Validates the description. The error is the first problem.
    pub(crate) fn finish(self) -> Result<Description, String> {
        let name = self.name.ok_or("it has no name")?;
        if !is_name(&name) {
            return Err(format!("the name {} is not 1 to {MAX_NAME_CHARS} characters of `a-z 0-9 -`", quoted(&name)));
        }
        if name == FLOOR {
            return Err(format!("the name `{FLOOR}` is reserved for the host's own decisions"));
        }
        if self.overfull {
            return Err(format!("it declares more than {MAX_SETTINGS} settings"));
        }
        for (at, spec) in self.settings.iter().enumerate() {
            check_setting(spec)?;
            if self.settings[..at].iter().any(|earlier| earlier.name == spec.name) {
                return Err(format!("setting `{}` is declared twice", spec.name));
            }
        }
        Ok(Description { name, version: self.version, about: self.about, settings: self.settings })
    }
}

fn check_setting(spec: &SettingSpec) -> Result<(), String> {
    let name = &spec.name;
    if !is_name(name) {
        return Err(format!(
            "the setting name {} is not 1 to {MAX_NAME_CHARS} characters of `a-z 0-9 -`",
            quoted(name)
        ));
    }
    match &spec.kind {
        SettingKind::Integer { min, max, .. } if min > max => {
            Err(format!("setting `{name}` has a min of {min} above its max of {max}"))
        }
        SettingKind::Integer { default, min, max } if !(min..=max).contains(&default) => {
            Err(format!("setting `{name}` has a default of {default} outside {min} to {max}"))
        }
        SettingKind::Text { default } if text::slice(default, 0, MAX_TEXT_CHARS).len() < default.len() => {
            Err(format!("setting `{name}` has a default of more than {MAX_TEXT_CHARS} characters"))
        }
        _ => Ok(()),
    }
}

fn is_name(name: &str) -> bool {
    (1..=MAX_NAME_CHARS).contains(&name.len())
        && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
}

/// Text from the component on one line, without invisible characters.
fn one_line(foreign: &str, max_chars: usize) -> String {
    // Only as much is processed as may be kept, allowing for what is removed.
    let plain = text::plain_line(text::slice(foreign, 0, 4 * max_chars));
    text::head(plain.trim(), max_chars).to_owned()
}

/// The text, cut to just enough to detect that it has more than `max_chars` characters.
fn bounded(foreign: &str, max_chars: usize) -> String {
    text::slice(foreign, 0, max_chars + 1).to_owned()
}

fn quoted(foreign: &str) -> String {
    format!("`{}`", one_line(foreign, MAX_NAME_CHARS))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Draft {
        let mut draft = Draft::default();
        draft.name(name);
        draft
    }

    fn integer(default: i64, min: i64, max: i64) -> SettingKind {
        SettingKind::Integer { default, min, max }
    }

    #[test]
    fn names_are_what_operators_can_type() {
        assert!(named("strict-2").finish().is_ok());
        for bad in ["", "Strict", "a b", "a.b", "預算", &"x".repeat(65), "floor"] {
            assert!(named(bad).finish().is_err(), "{bad}");
        }
        assert_eq!(Draft::default().finish().expect_err("a refusal"), "it has no name");
    }

    #[test]
    fn bad_settings_are_refused_by_name() {
        for (kind, wrong) in [
            (integer(5, 10, 1), "setting `x` has a min of 10 above its max of 1"),
            (integer(5, 10, 20), "setting `x` has a default of 5 outside 10 to 20"),
            (
                SettingKind::Text { default: bounded(&"x".repeat(3_000), MAX_TEXT_CHARS) },
                "setting `x` has a default of more than 2000 characters",
            ),
        ] {
            let mut draft = named("p");
            draft.declare("x", kind, "");
            assert_eq!(draft.finish().expect_err("a refusal"), wrong);
        }
        let mut draft = named("p");
        draft.declare("x", integer(1, 0, 2), "");
        draft.declare("x", SettingKind::Boolean { default: true }, "");
        assert_eq!(draft.finish().expect_err("a refusal"), "setting `x` is declared twice");
    }

    #[test]
    fn more_settings_than_sensible_are_refused() {
        let mut draft = named("p");
        for n in 0..=MAX_SETTINGS {
            draft.declare(&format!("s{n}"), SettingKind::Boolean { default: true }, "");
        }
        assert!(draft.finish().is_err());
    }

    /// Regression: bidirectional controls and invisible characters reached whoever displayed a description.
    #[test]
    fn what_is_not_seen_is_in_no_line_of_a_description() {
        let mut draft = named("p");
        draft.version("1.\u{200b}0\u{202e}");
        draft.about("keeps\u{2066} all\u{e0041}");
        draft.declare("x", SettingKind::Boolean { default: true }, "so\u{200d} be it\u{feff}");
        let description = draft.finish().expect("a good one");
        assert_eq!((description.version.as_str(), description.about.as_str()), ("1.0", "keeps all"));
        assert_eq!(description.settings[0].help, "so be it");
    }

    #[test]
    fn foreign_lines_cannot_move_the_cursor() {
        let mut draft = named("p");
        draft.about("a\u{1b}[2Jb\nc");
        assert_eq!(draft.finish().expect("a good one").about, "a[2Jb c");
    }
}
