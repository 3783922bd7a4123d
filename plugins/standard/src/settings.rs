//! What an operator may change.

use pmk_policy_sdk::{Description, IntegerSetting};

/// The longest text that the contract can name, in characters.
const MAX_CHARS: i64 = u32::MAX as i64;

/// A bound below the hard limit; seed 000's `PMK_MAX_SESSION_TOKENS`.
pub const MAX_SESSION_TOKENS: IntegerSetting =
    IntegerSetting::new("max-session-tokens", 0, 0..=i64::MAX, "own bound in tokens, below the hard limit; 0 for none");

/// How far a prune goes. Pruning by a third at once keeps the prefix, and with it the provider's cache, for many turns.
pub const LOW_WATER: IntegerSetting =
    IntegerSetting::new("low-water", 70, 1..=100, "percent of the bound that a prune goes down to");

/// Seed 001's wish: sum up before the window is full rather than recover after. Off, because it costs a model call.
pub const COMPACT_AT: IntegerSetting = IntegerSetting::new(
    "compact-at",
    0,
    0..=100,
    "percent of the hard limit from which on the model sums up the older half; 0 for never",
);

/// Results that the model is most likely still working with.
pub const KEEP_RESULTS: IntegerSetting =
    IntegerSetting::new("keep-results", 3, 0..=1_000, "newest tool and mra results that are shrunk last");

/// What stays of a result that is shrunk: the start, where most tools say what they did, …
pub const RESULT_HEAD: IntegerSetting =
    IntegerSetting::new("result-head", 800, 0..=MAX_CHARS, "characters at the start of a shrunk result that stay");

/// … and the end, where errors and totals stand.
pub const RESULT_TAIL: IntegerSetting =
    IntegerSetting::new("result-tail", 400, 0..=MAX_CHARS, "characters at the end of a shrunk result that stay");

/// pmk 0.12's number, for models called directly: 0.11.1 halved it for the overhead of an SDK (seed 000, cause 2)
/// that the gateway measures and takes off the hard limit instead.
pub const SEED_CAP: IntegerSetting =
    IntegerSetting::new("seed-cap", 30_000, 1..=MAX_CHARS, "characters of the seed that are stored");

/// pmk 0.12's number, as for the seed.
pub const MRA_RESULT_CAP: IntegerSetting =
    IntegerSetting::new("mra-result-cap", 40_000, 1..=MAX_CHARS, "characters of an mra result that are stored");

/// Less than an answer of `mra`, which is written to be read: raw output is mostly noise, and comes in numbers.
pub const TOOL_RESULT_CAP: IntegerSetting =
    IntegerSetting::new("tool-result-cap", 30_000, 1..=MAX_CHARS, "characters of a tool result that are stored");

/// A log of megabytes says little by its start and end; the archive has it, and the digest names it.
pub const DIGEST_ABOVE: IntegerSetting = IntegerSetting::new(
    "digest-above",
    0,
    0..=MAX_CHARS,
    "characters above which a tool or mra result stands only as a digest; 0 for never",
);

/// As much as of an mra result: a person chose to attach it.
pub const ATTACHMENT_CAP: IntegerSetting =
    IntegerSetting::new("attachment-cap", 40_000, 1..=MAX_CHARS, "characters of an attached file that are stored");

/// Declares them all.
pub fn declare(description: &Description) {
    for setting in [
        MAX_SESSION_TOKENS,
        LOW_WATER,
        COMPACT_AT,
        KEEP_RESULTS,
        RESULT_HEAD,
        RESULT_TAIL,
        SEED_CAP,
        MRA_RESULT_CAP,
        TOOL_RESULT_CAP,
        DIGEST_ABOVE,
        ATTACHMENT_CAP,
    ] {
        setting.declare(description);
    }
}

/// The value of a setting that counts characters.
pub fn chars(setting: &IntegerSetting) -> u32 {
    u32::try_from(setting.value()).unwrap_or(u32::MAX)
}
