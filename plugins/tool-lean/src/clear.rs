//! Chooses the results to clear.

use pmk_policy_sdk::{Row, Transcript};

/// The approximate cost of a cleared result: the host's notice, the first and the last line.
const DIGEST_TOKENS: u64 = 200;

/// Separates the results that may be cleared from the newest, which stay. It must be given the rows newest first.
pub struct Results<'t> {
    transcript: &'t Transcript,
    /// How many of the newest are still to come.
    newest: u32,
}

impl<'t> Results<'t> {
    /// Keeps this many of the newest results.
    pub fn keeping(newest: u32, transcript: &'t Transcript) -> Self {
        Results { transcript, newest }
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
        let is_halved_by = |digests| tokens >= 2 * digests;
        if !is_halved_by(DIGEST_TOKENS) {
            return 0;
        }
        let digests = DIGEST_TOKENS * self.contents(row.index);
        if is_halved_by(digests) { tokens - digests } else { 0 }
    }

    /// How many results a message may carry, each of which gets a digest of its own: as many as its group has calls.
    fn contents(&self, index: u32) -> u64 {
        let calls =
            self.transcript.groups(index, index + 1).first().map_or(0, |&call| self.transcript.tools(call).len());
        calls.max(1) as u64
    }
}
