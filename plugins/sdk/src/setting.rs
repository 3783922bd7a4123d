//! Settings: declared once as a constant, which describes the setting and reads the operator's value.

use std::ops::RangeInclusive;

use crate::{Description, Incoming, origin, platform};

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
    /// Creates a setting with its name, default, allowed values, and a line of help.
    pub const fn new(name: &'static str, default: i64, range: RangeInclusive<i64>, help: &'static str) -> Self {
        IntegerSetting { name, default, range, help }
    }

    /// Declares the setting; for [`Policy::describe`](crate::Policy::describe).
    pub fn declare(&self, description: &Description) {
        description.setting_integer(self.name, self.default, *self.range.start(), *self.range.end(), self.help);
    }

    /// The operator's value, or the default.
    pub fn value(&self) -> i64 {
        platform::setting_integer(self.name).unwrap_or(self.default)
    }

    /// The value of a setting that counts something: messages, characters.
    pub fn count(&self) -> u32 {
        u32::try_from(self.value()).unwrap_or(u32::MAX)
    }

    /// The value as a percentage of a number of tokens.
    pub fn percent_of(&self, tokens: u64) -> u64 {
        let percent = u128::try_from(self.value()).unwrap_or(100);
        u64::try_from(u128::from(tokens) * percent / 100).unwrap_or(tokens)
    }
}

/// The caps of large messages by their kind, in characters: four [integer settings](IntegerSetting), for which a policy
/// gives the defaults.
///
/// ```
/// use pmk_policy_sdk::{CapSettings, CapVerdict, Description, Incoming};
///
/// const CAPS: CapSettings =
///     CapSettings { seed: 30_000, mra_result: 40_000, tool_result: 20_000, attachment: 40_000 };
///
/// fn describe(description: &Description) {
///     CAPS.declare(description);
/// }
///
/// fn cap(incoming: &Incoming, verdict: &CapVerdict) {
///     verdict.shorten(CAPS.of(incoming), 0);
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct CapSettings {
    /// `seed-cap`.
    pub seed: i64,
    /// `mra-result-cap`.
    pub mra_result: i64,
    /// `tool-result-cap`, also used for any other kind.
    pub tool_result: i64,
    /// `attachment-cap`.
    pub attachment: i64,
}

impl CapSettings {
    /// Declares the settings; for [`Policy::describe`](crate::Policy::describe).
    pub fn declare(&self, description: &Description) {
        for kind in [origin::SEED, origin::MRA_RESULT, origin::TOOL_RESULT, origin::ATTACHMENT] {
            self.setting(kind).declare(description);
        }
    }

    /// The operator's cap for a message of this kind, in characters.
    pub fn of(&self, incoming: &Incoming) -> u32 {
        self.setting(incoming.kind()).count()
    }

    fn setting(&self, kind: u8) -> IntegerSetting {
        let (name, default, help) = match kind {
            origin::SEED => ("seed-cap", self.seed, "characters of the seed that are stored"),
            origin::MRA_RESULT => ("mra-result-cap", self.mra_result, "characters of an mra result that are stored"),
            origin::ATTACHMENT => ("attachment-cap", self.attachment, "characters of an attached file that are stored"),
            _ => ("tool-result-cap", self.tool_result, "characters of a tool result that are stored"),
        };
        IntegerSetting::new(name, default, 1..=i64::from(u32::MAX), help)
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
    /// Creates a setting with its name, default and a line of help.
    pub const fn new(name: &'static str, default: bool, help: &'static str) -> Self {
        BooleanSetting { name, default, help }
    }

    /// Declares the setting; for [`Policy::describe`](crate::Policy::describe).
    pub fn declare(&self, description: &Description) {
        description.setting_boolean(self.name, self.default, self.help);
    }

    /// The operator's value, or the default.
    pub fn value(&self) -> bool {
        platform::setting_boolean(self.name).unwrap_or(self.default)
    }
}

/// The language in which a policy writes for the model, `en` or `zh-TW`. The host passes the gateway's own language to
/// every policy that declares it, unless the operator sets another.
pub const LANGUAGE: TextSetting = TextSetting::new(
    "language",
    "en",
    "of what is written for the model, en or zh-TW; the gateway's own where not set",
);

/// A text setting of at most 2,000 characters, used like an [`IntegerSetting`].
#[derive(Clone, Debug)]
pub struct TextSetting {
    name: &'static str,
    default: &'static str,
    help: &'static str,
}

impl TextSetting {
    /// Creates a setting with its name, default and a line of help.
    pub const fn new(name: &'static str, default: &'static str, help: &'static str) -> Self {
        TextSetting { name, default, help }
    }

    /// Declares the setting; for [`Policy::describe`](crate::Policy::describe).
    pub fn declare(&self, description: &Description) {
        description.setting_text(self.name, self.default, self.help);
    }

    /// The operator's value, or the default.
    pub fn value(&self) -> String {
        platform::setting_text(self.name).unwrap_or_else(|| self.default.to_owned())
    }

    /// Returns whichever of the two texts is in the language of [`LANGUAGE`].
    pub fn pick(&self, english: &'static str, chinese: &'static str) -> &'static str {
        if self.value().eq_ignore_ascii_case("zh-TW") { chinese } else { english }
    }
}
