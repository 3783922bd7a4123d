//! The three settings of specification 000 §4, with the defaults of v0.11.1, and the caps of specification 004
//! §advice-3.

use pmk_policy_sdk::{CapSettings, Description, IntegerSetting};

/// The number of tokens above which a session is pruned.
pub const MAX_SESSION_TOKENS: IntegerSetting =
    IntegerSetting::new("max-session-tokens", 25_000, 1..=i64::MAX, "tokens above which a session is pruned");

/// How much of a large message is stored. Specification 004: 400,000 characters of a tool result are reduced to between
/// 20,000 and 50,000; attachments are stored, and sent, in the same way.
pub const CAPS: CapSettings = CapSettings { seed: 12_000, mra_result: 16_000, tool_result: 30_000, attachment: 30_000 };

/// Declares all settings.
pub fn declare(description: &Description) {
    MAX_SESSION_TOKENS.declare(description);
    CAPS.declare(description);
}
