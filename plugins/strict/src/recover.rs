//! One retry with the minimum, then a message to the user (specification 000 §2.2).

use pmk_policy_sdk::{Overflow, Recover, Recovery, rung};

use crate::Strict;

impl Recover for Strict {
    fn recover(overflow: &Overflow, recovery: &Recovery) {
        recovery.climb(overflow, &[rung::TRIM]);
    }
}
