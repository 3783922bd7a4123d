//! The operator's settings.

use pmk_policy_sdk::{Description, IntegerSetting};

/// Early enough that the summary request itself still fits (specification 001 §8 names 70 %).
pub const COMPACT_AT: IntegerSetting =
    IntegerSetting::new("compact-at", 70, 1..=100, "percent of the hard limit from which on older turns are summed up");

/// The current topic stays verbatim.
pub const KEEP: IntegerSetting =
    IntegerSetting::new("keep", 30, 0..=99, "percent of the hard limit that the newest turns may take up as they are");

/// Declares all settings.
pub fn declare(description: &Description) {
    COMPACT_AT.declare(description);
    KEEP.declare(description);
}
