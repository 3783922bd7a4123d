//! Caps at write time (specification 000 §1.3, 004 §advice-3): the head is kept, and the host's notice says what was
//! cut.

use pmk_policy_sdk::{Cap, CapVerdict, Incoming};

use crate::{Strict, settings};

impl Cap for Strict {
    fn cap(incoming: &Incoming, verdict: &CapVerdict) {
        verdict.shorten(settings::CAPS.of(incoming), 0);
    }
}
