//! Chooses the results to clear.

use pmk_policy_sdk::Row;

/// The approximate cost of a cleared result: the host's notice, the first and the last line.
const DIGEST_TOKENS: u64 = 200;

/// Separates the results that may be cleared from the newest, which stay. It must be given the rows newest first.
pub struct Results {
    /// How many of the newest are still to come.
    newest: u32,
}

impl Results {
    /// Keeps this many of the newest results.
    pub fn keeping(newest: u32) -> Self {
        Results { newest }
    }

    /// The approximate saving by clearing this message; 0 if it is not a result, is one of the newest, or would not be
    /// at least halved, so that results cleared before stay as they are.
    pub fn saving(&mut self, row: &Row) -> u64 {
        if !row.is_result() {
            return 0;
        }
        if self.newest > 0 {
            self.newest -= 1;
            return 0;
        }
        let tokens = u64::from(row.tokens);
        if tokens >= 2 * DIGEST_TOKENS { tokens - DIGEST_TOKENS } else { 0 }
    }
}
