//! What an operator may change.

use pmk_policy_sdk::{CapSettings, Description, IntegerSetting, LANGUAGE};

/// The longest text that the contract can name, in characters.
const MAX_CHARS: i64 = u32::MAX as i64;

/// A bound below the hard limit; `PMK_MAX_SESSION_TOKENS` of specification 000 §4.
pub const MAX_SESSION_TOKENS: IntegerSetting =
    IntegerSetting::new("max-session-tokens", 0, 0..=i64::MAX, "own bound in tokens, below the hard limit; 0 for none");

/// How far a prune goes. Pruning by a third at once keeps the prefix, and with it the provider's cache, for many turns.
pub const LOW_WATER: IntegerSetting =
    IntegerSetting::new("low-water", 70, 1..=100, "percent of the bound that a prune goes down to");

/// Results that the model is most likely still working with.
pub const KEEP_RESULTS: IntegerSetting =
    IntegerSetting::new("keep-results", 3, 0..=1_000, "newest tool and mra results that are shrunk last");

/// What stays of a result that is shrunk: the start, where most tools say what they did, …
pub const RESULT_HEAD: IntegerSetting =
    IntegerSetting::new("result-head", 800, 0..=MAX_CHARS, "characters at the start of a shrunk result that stay");

/// … and the end, where errors and totals stand.
pub const RESULT_TAIL: IntegerSetting =
    IntegerSetting::new("result-tail", 400, 0..=MAX_CHARS, "characters at the end of a shrunk result that stay");

/// The seed's and an mra result's are pmk 0.12's numbers, for models called directly: 0.11.1 halved them for the
/// overhead of an SDK (specification 000 §cause-2) that the gateway measures and takes off the hard limit instead. A tool result
/// has less than an answer of `mra`, which is written to be read: raw output is mostly noise, and comes in numbers. An
/// attached file has as much: a person chose to attach it.
pub const CAPS: CapSettings = CapSettings { seed: 30_000, mra_result: 40_000, tool_result: 30_000, attachment: 40_000 };

/// A log of megabytes says little by its start and end; the archive has it, and the digest names it.
pub const DIGEST_ABOVE: IntegerSetting = IntegerSetting::new(
    "digest-above",
    0,
    0..=MAX_CHARS,
    "characters above which a tool or mra result stands only as a digest; 0 for never",
);

/// Declares them all.
pub fn declare(description: &Description) {
    for setting in [MAX_SESSION_TOKENS, LOW_WATER, KEEP_RESULTS, RESULT_HEAD, RESULT_TAIL] {
        setting.declare(description);
    }
    CAPS.declare(description);
    DIGEST_ABOVE.declare(description);
    LANGUAGE.declare(description);
}
