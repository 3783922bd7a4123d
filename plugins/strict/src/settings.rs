//! The three tunables of seed 000 §4, with the defaults of v0.11.1.

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

/// Declares them all.
pub fn declare(description: &Description) {
    for setting in [MAX_SESSION_TOKENS, SEED_CAP, MRA_RESULT_CAP] {
        setting.declare(description);
    }
}
