//! Tool and mra results: they make a session large, and are the first to be shrunk.

use pmk_policy_sdk::Row;

use crate::settings;

/// The maximum cost of the host's notice and a message's framing, in tokens.
const NOTICE_TOKENS: u64 = 90;

/// How much of a shrunk result is kept.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub head: u32,
    pub tail: u32,
}

impl Shape {
    /// As set by the operator.
    pub fn of_settings() -> Self {
        Shape { head: settings::RESULT_HEAD.count(), tail: settings::RESULT_TAIL.count() }
    }

    /// The approximate saving by shrinking a message; 0 if it would not at least halve the cost, because then the loss
    /// of information outweighs it.
    pub fn saving(self, row: &Row) -> u64 {
        let (before, after) = (u64::from(row.tokens), self.estimate(row));
        if after <= before / 2 { before - after } else { 0 }
    }

    /// The approximate cost of a message when shrunk; its current cost if that saves nothing.
    pub fn estimate(self, row: &Row) -> u64 {
        (self.without_notice(row) + NOTICE_TOKENS).min(u64::from(row.tokens))
    }

    /// What of a message's cost is left when shrunk, the notice not counted.
    pub fn without_notice(self, row: &Row) -> u64 {
        let stays = u64::from(self.head) + u64::from(self.tail);
        let tokens = u64::from(row.tokens);
        match u64::from(row.chars) {
            chars if chars > stays => tokens * stays / chars,
            _ => tokens,
        }
    }
}
