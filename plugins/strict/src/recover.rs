//! One retry with the minimum, then giving up (specification 000 §2.2). The host still tries smaller requests before it
//! tells the user.

use pmk_policy_sdk::{Overflow, Recover, Recovery, rung};

use crate::Strict;

impl Recover for Strict {
    fn recover(overflow: &Overflow, recovery: &Recovery) {
        recovery.climb(overflow, &[rung::TRIM]);
    }
}
