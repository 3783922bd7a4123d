//! The three tunables of seed 000 §4, with the defaults of v0.11.1, and the caps that seed 004 asks for.

use pmk_policy_sdk::{Description, IntegerSetting};

/// Above this a session is pruned.
pub const MAX_SESSION_TOKENS: IntegerSetting =
    IntegerSetting::new("max-session-tokens", 25_000, 1..=i64::MAX, "tokens above which a session is pruned");

/// How much of the knowledge-base seed is stored.
pub const SEED_CAP: IntegerSetting =
    IntegerSetting::new("seed-cap", 12_000, 1..=u32::MAX as i64, "characters of the seed that are stored");

/// How much of a code-search result is stored.
pub const MRA_RESULT_CAP: IntegerSetting =
    IntegerSetting::new("mra-result-cap", 16_000, 1..=u32::MAX as i64, "characters of an mra result that are stored");

/// Seed 004: 400,000 characters of a tool result are down to something within 20,000 and 50,000.
pub const TOOL_RESULT_CAP: IntegerSetting =
    IntegerSetting::new("tool-result-cap", 30_000, 1..=u32::MAX as i64, "characters of a tool result that are stored");

/// As much: what is attached is stored, and sent, in the same way.
pub const ATTACHMENT_CAP: IntegerSetting = IntegerSetting::new(
    "attachment-cap",
    30_000,
    1..=u32::MAX as i64,
    "characters of an attached file that are stored",
);

/// Declares them all.
pub fn declare(description: &Description) {
    for setting in [MAX_SESSION_TOKENS, SEED_CAP, MRA_RESULT_CAP, TOOL_RESULT_CAP, ATTACHMENT_CAP] {
        setting.declare(description);
    }
}
