//! What an operator may change.

use pmk_policy_sdk::{Description, IntegerSetting, TextSetting};

/// The longest text that the contract can name, in characters.
const MAX_CHARS: i64 = u32::MAX as i64;

/// Documents that open a conversation are sent with every call of it.
pub const SEED_CAP: IntegerSetting =
    IntegerSetting::new("seed-cap", 30_000, 1..=MAX_CHARS, "characters of the seed that are stored");

/// An answer of `mra` is written to be read.
pub const MRA_RESULT_CAP: IntegerSetting =
    IntegerSetting::new("mra-result-cap", 40_000, 1..=MAX_CHARS, "characters of an mra result that are stored");

/// Raw output is mostly noise, and comes in numbers.
pub const TOOL_RESULT_CAP: IntegerSetting =
    IntegerSetting::new("tool-result-cap", 20_000, 1..=MAX_CHARS, "characters of a tool result that are stored");

/// A person chose to attach it.
pub const ATTACHMENT_CAP: IntegerSetting =
    IntegerSetting::new("attachment-cap", 40_000, 1..=MAX_CHARS, "characters of an attached file that are stored");

/// One tool's output is worth more than another's.
pub const BY_NAME: TextSetting = TextSetting::new(
    "by-name",
    "",
    "caps of repositories, tools or files, before those of their kind: `grep=8000 *.log=20000`",
);

/// Declares them all.
pub fn declare(description: &Description) {
    for setting in [SEED_CAP, MRA_RESULT_CAP, TOOL_RESULT_CAP, ATTACHMENT_CAP] {
        setting.declare(description);
    }
    BY_NAME.declare(description);
}

/// The value of a setting that counts characters.
pub fn chars(setting: &IntegerSetting) -> u32 {
    u32::try_from(setting.value()).unwrap_or(u32::MAX)
}
