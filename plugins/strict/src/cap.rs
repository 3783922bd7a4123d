//! Caps at write time (seed 000 §1.3, seed 004): the head stays, the host's notice says what was cut.

use pmk_policy_sdk::{Cap, CapVerdict, Incoming, origin};

use crate::{Strict, settings};

impl Cap for Strict {
    fn cap(incoming: &Incoming, verdict: &CapVerdict) {
        let cap = match incoming.kind() {
            origin::SEED => settings::SEED_CAP,
            origin::MRA_RESULT => settings::MRA_RESULT_CAP,
            origin::ATTACHMENT => settings::ATTACHMENT_CAP,
            _ => settings::TOOL_RESULT_CAP,
        };
        verdict.shorten(u32::try_from(cap.value()).unwrap_or(u32::MAX), 0);
    }
}
