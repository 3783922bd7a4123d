//! The operator's settings.

use pmk_policy_sdk::{Description, IntegerSetting};

/// Anthropic's context editing starts at 100,000 tokens of a window of 200,000.
pub const CLEAR_AT: IntegerSetting =
    IntegerSetting::new("clear-at", 50, 1..=100, "percent of the hard limit from which on old results are cleared");

/// The results that the model is most likely still working with.
pub const KEEP_RESULTS: IntegerSetting =
    IntegerSetting::new("keep-results", 3, 0..=1_000, "newest tool and mra results that stay whole");

/// Every clearing invalidates the prefix that the provider has cached, so it must be worth that.
pub const CLEAR_AT_LEAST: IntegerSetting = IntegerSetting::new(
    "clear-at-least",
    5,
    0..=100,
    "percent of the hard limit that a clearing must save, while everything still fits",
);

/// Turns are removed in one sweep, so that the prefix then stays the same for many turns.
pub const LOW_WATER: IntegerSetting =
    IntegerSetting::new("low-water", 70, 1..=100, "percent of the hard limit that is left when turns go");

/// Declares all settings.
pub fn declare(description: &Description) {
    for setting in [CLEAR_AT, KEEP_RESULTS, CLEAR_AT_LEAST, LOW_WATER] {
        setting.declare(description);
    }
}
