//! The operator's settings.

use pmk_policy_sdk::{CapSettings, Description, IntegerSetting, LANGUAGE};

/// The longest text that the contract can represent, in characters.
const MAX_CHARS: i64 = u32::MAX as i64;

/// A bound below the hard limit; `PMK_MAX_SESSION_TOKENS` of specification 000 §4.
pub const MAX_SESSION_TOKENS: IntegerSetting =
    IntegerSetting::new("max-session-tokens", 0, 0..=i64::MAX, "own bound in tokens, below the hard limit; 0 for none");

/// How far a prune goes. Pruning by a third at once keeps the prefix, and the provider's cache of it, for many turns.
pub const LOW_WATER: IntegerSetting =
    IntegerSetting::new("low-water", 70, 1..=100, "percent of the bound that a prune goes down to");

/// The results that the model is most likely still working with.
pub const KEEP_RESULTS: IntegerSetting =
    IntegerSetting::new("keep-results", 3, 0..=1_000, "newest tool and mra results that are shrunk last");

/// How much of a shrunk result is kept: the start, where most tools say what they did, …
pub const RESULT_HEAD: IntegerSetting =
    IntegerSetting::new("result-head", 800, 0..=MAX_CHARS, "characters at the start of a shrunk result that stay");

/// … and the end, where errors and totals are.
pub const RESULT_TAIL: IntegerSetting =
    IntegerSetting::new("result-tail", 400, 0..=MAX_CHARS, "characters at the end of a shrunk result that stay");

/// The caps of the seed and of an mra result are those of pmk 0.12, for models called directly: 0.11.1 halved them
/// because of the overhead of an SDK (specification 000 §cause-2), which the gateway measures and subtracts from the
/// hard limit instead. A tool result gets less than an answer of `mra`, which is written to be read: raw output is
/// mostly noise, and there is much of it. An attached file gets as much as an mra result: it was chosen by a person.
pub const CAPS: CapSettings = CapSettings { seed: 30_000, mra_result: 40_000, tool_result: 30_000, attachment: 40_000 };

/// The start and end of a log of megabytes say little; the archive has all of it, and the digest identifies it.
pub const DIGEST_ABOVE: IntegerSetting = IntegerSetting::new(
    "digest-above",
    0,
    0..=MAX_CHARS,
    "characters above which a tool or mra result stands only as a digest; 0 for never",
);

/// Declares all settings.
pub fn declare(description: &Description) {
    for setting in [MAX_SESSION_TOKENS, LOW_WATER, KEEP_RESULTS, RESULT_HEAD, RESULT_TAIL] {
        setting.declare(description);
    }
    CAPS.declare(description);
    DIGEST_ABOVE.declare(description);
    LANGUAGE.declare(description);
}
