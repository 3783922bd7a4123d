//! Settings: declared once as a constant, used to describe the policy and to read the operator's value.

use std::ops::RangeInclusive;

use crate::{Description, platform};

/// An integer setting.
///
/// ```
/// use pmk_policy_sdk::{Description, IntegerSetting};
///
/// const KEEP_TURNS: IntegerSetting = IntegerSetting::new("keep-turns", 10, 1..=1_000, "turns that always stay");
///
/// fn describe(description: &Description) {
///     KEEP_TURNS.declare(description);
/// }
///
/// fn keep_turns() -> i64 {
///     KEEP_TURNS.value()
/// }
/// ```
#[derive(Clone, Debug)]
pub struct IntegerSetting {
    name: &'static str,
    default: i64,
    range: RangeInclusive<i64>,
    help: &'static str,
}

impl IntegerSetting {
    /// Names it, with its default, the values it may have, and a line of help.
    pub const fn new(name: &'static str, default: i64, range: RangeInclusive<i64>, help: &'static str) -> Self {
        IntegerSetting { name, default, range, help }
    }

    /// Declares it; for [`Policy::describe`](crate::Policy::describe).
    pub fn declare(&self, description: &Description) {
        description.setting_integer(self.name, self.default, *self.range.start(), *self.range.end(), self.help);
    }

    /// The operator's value, else the default.
    pub fn value(&self) -> i64 {
        platform::setting_integer(self.name).unwrap_or(self.default)
    }
}

/// A boolean setting, used like an [`IntegerSetting`].
#[derive(Clone, Debug)]
pub struct BooleanSetting {
    name: &'static str,
    default: bool,
    help: &'static str,
}

impl BooleanSetting {
    /// Names it, with its default and a line of help.
    pub const fn new(name: &'static str, default: bool, help: &'static str) -> Self {
        BooleanSetting { name, default, help }
    }

    /// Declares it; for [`Policy::describe`](crate::Policy::describe).
    pub fn declare(&self, description: &Description) {
        description.setting_boolean(self.name, self.default, self.help);
    }

    /// The operator's value, else the default.
    pub fn value(&self) -> bool {
        platform::setting_boolean(self.name).unwrap_or(self.default)
    }
}

/// A text setting of at most 2,000 characters, used like an [`IntegerSetting`].
#[derive(Clone, Debug)]
pub struct TextSetting {
    name: &'static str,
    default: &'static str,
    help: &'static str,
}

impl TextSetting {
    /// Names it, with its default and a line of help.
    pub const fn new(name: &'static str, default: &'static str, help: &'static str) -> Self {
        TextSetting { name, default, help }
    }

    /// Declares it; for [`Policy::describe`](crate::Policy::describe).
    pub fn declare(&self, description: &Description) {
        description.setting_text(self.name, self.default, self.help);
    }

    /// The operator's value, else the default.
    pub fn value(&self) -> String {
        platform::setting_text(self.name).unwrap_or_else(|| self.default.to_owned())
    }
}
