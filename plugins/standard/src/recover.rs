//! The ladder, mildest rung first.

use pmk_policy_sdk::{Overflow, Recover, Recovery, rung};

use crate::Standard;

/// A trim costs no model call; compaction keeps more than a fresh session does.
const LADDER: [u8; 3] = [rung::TRIM, rung::COMPACT, rung::ROTATE];

impl Recover for Standard {
    fn recover(overflow: &Overflow, recovery: &Recovery) {
        recovery.climb(overflow, &LADDER);
    }
}
