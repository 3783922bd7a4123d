//! What an operator may change.

use pmk_policy_sdk::{Description, IntegerSetting};

/// Early enough that the summary itself still fits (specification 001 §8 names 70 %).
pub const COMPACT_AT: IntegerSetting =
    IntegerSetting::new("compact-at", 70, 1..=100, "percent of the hard limit from which on older turns are summed up");

/// What is still being talked about stays word for word.
pub const KEEP: IntegerSetting =
    IntegerSetting::new("keep", 30, 0..=99, "percent of the hard limit that the newest turns may take up as they are");

/// Declares them all.
pub fn declare(description: &Description) {
    COMPACT_AT.declare(description);
    KEEP.declare(description);
}
