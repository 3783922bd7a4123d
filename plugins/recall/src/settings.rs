//! The operator's settings.

use pmk_policy_sdk::{Description, IntegerSetting};

/// The current topic stays as it is; the rest of the room is for matches.
pub const RECENT: IntegerSetting = IntegerSetting::new(
    "recent",
    30,
    1..=90,
    "percent of the hard limit that the newest turns keep when older ones go",
);

/// Until then the prefix stays the same, and with it the provider's cache.
pub const RECENT_MOST: IntegerSetting =
    IntegerSetting::new("recent-most", 45, 1..=95, "percent of it that they may grow to before older ones go");

/// In a large window a block that fills it would cost more than it is worth.
pub const RECALL_MOST: IntegerSetting =
    IntegerSetting::new("recall-most", 8_000, 0..=1_000_000, "tokens that recalled messages may take; 0 for none");

/// An answer needs its question, and a "yes" what was asked.
pub const NEIGHBOURS: IntegerSetting = IntegerSetting::new(
    "neighbours",
    2,
    0..=10,
    "messages before and after the best matches that are quoted with them; half as many with the others",
);

/// Declares all settings.
pub fn declare(description: &Description) {
    for setting in [RECENT, RECENT_MOST, RECALL_MOST, NEIGHBOURS] {
        setting.declare(description);
    }
}
