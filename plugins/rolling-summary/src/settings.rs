//! What an operator may change.

use pmk_policy_sdk::{Description, IntegerSetting};

/// A share of the hard limit.
pub struct Percent(IntegerSetting);

impl Percent {
    /// So many tokens of the limit.
    pub fn of(&self, limit: u64) -> u64 {
        let percent = u128::try_from(self.0.value()).unwrap_or(100);
        u64::try_from(u128::from(limit) * percent / 100).unwrap_or(limit)
    }
}

/// Early enough that the summary itself still fits (seed 001 names 70 %).
pub const COMPACT_AT: Percent = Percent(IntegerSetting::new(
    "compact-at",
    70,
    1..=100,
    "percent of the hard limit from which on older turns are summed up",
));

/// What is still being talked about stays word for word.
pub const KEEP: Percent = Percent(IntegerSetting::new(
    "keep",
    30,
    0..=99,
    "percent of the hard limit that the newest turns may take up as they are",
));

/// Declares them all.
pub fn declare(description: &Description) {
    COMPACT_AT.0.declare(description);
    KEEP.0.declare(description);
}
