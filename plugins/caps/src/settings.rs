//! The operator's settings.

use pmk_policy_sdk::{CapSettings, Description, TextSetting};

/// Documents that open a conversation are sent with every call of it; an answer of `mra` is written to be read; raw
/// tool output is mostly noise, and there is much of it; an attached file was chosen by a person.
pub const CAPS: CapSettings = CapSettings { seed: 30_000, mra_result: 40_000, tool_result: 20_000, attachment: 40_000 };

/// The output of one tool is worth more than that of another.
pub const BY_NAME: TextSetting = TextSetting::new(
    "by-name",
    "",
    "caps of repositories, tools or files, before those of their kind: `grep=8000 *.log=20000`",
);

/// Declares all settings.
pub fn declare(description: &Description) {
    CAPS.declare(description);
    BY_NAME.declare(description);
}
