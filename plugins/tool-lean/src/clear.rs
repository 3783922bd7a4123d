//! Which results are cleared.

use pmk_policy_sdk::Row;

/// About what a cleared result costs: the host's notice, the first and the last line.
const DIGEST_TOKENS: u64 = 200;

/// Tells the results that may be cleared from the newest, which stay. Rows are shown to it newest first.
pub struct Results {
    /// How many of the newest are still to come.
    newest: u32,
}

impl Results {
    /// The newest so many stay.
    pub fn keeping(newest: u32) -> Self {
        Results { newest }
    }

    /// What clearing this message saves, about; nothing for what is no result, is one of the newest, or would not at
    /// least halve: cleared results stay as they are.
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
