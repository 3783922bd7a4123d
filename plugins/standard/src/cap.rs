//! Caps at write time: head and tail are kept, and no single message takes more than its share of the window.

use pmk_policy_sdk::{Cap, CapVerdict, Incoming, origin};

use crate::{Standard, settings};

/// One stored message costs at most this part of the hard limit, so that a seed, a result, an answer and a question fit
/// together in the smallest window.
const SHARE_OF_LIMIT: u64 = 4;

impl Cap for Standard {
    fn cap(incoming: &Incoming, verdict: &CapVerdict) {
        let digest_above = settings::DIGEST_ABOVE.count();
        let is_result = matches!(incoming.kind(), origin::MRA_RESULT | origin::TOOL_RESULT);
        if is_result && digest_above > 0 && incoming.chars() > digest_above {
            verdict.digest();
            return;
        }
        let cap = settings::CAPS.of(incoming).min(chars_of_share(incoming));
        if incoming.chars() > cap {
            // Two thirds from the start, where texts state their subject; one from the end, where logs have results.
            let tail = cap / 3;
            verdict.shorten(cap - tail, tail);
        }
    }
}

/// How many characters of this text cost its share of the hard limit.
fn chars_of_share(incoming: &Incoming) -> u32 {
    let share = incoming.limit() / SHARE_OF_LIMIT;
    let tokens = u64::from(incoming.tokens()).max(1);
    let chars = u128::from(incoming.chars()) * u128::from(share) / u128::from(tokens);
    u32::try_from(chars).unwrap_or(u32::MAX)
}
