//! What an operator may change.

use pmk_policy_sdk::{CapSettings, Description, TextSetting};

/// Documents that open a conversation are sent with every call of it; an answer of `mra` is written to be read; raw
/// output is mostly noise, and comes in numbers; a person chose to attach a file.
pub const CAPS: CapSettings = CapSettings { seed: 30_000, mra_result: 40_000, tool_result: 20_000, attachment: 40_000 };

/// One tool's output is worth more than another's.
pub const BY_NAME: TextSetting = TextSetting::new(
    "by-name",
    "",
    "caps of repositories, tools or files, before those of their kind: `grep=8000 *.log=20000`",
);

/// Declares them all.
pub fn declare(description: &Description) {
    CAPS.declare(description);
    BY_NAME.declare(description);
}
