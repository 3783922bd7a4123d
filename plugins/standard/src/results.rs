//! Tool and mra results: what makes a session large, and the first thing to shrink.

use pmk_policy_sdk::Row;

use crate::settings;

/// What a host's notice and a message's framing cost at most, in tokens.
const NOTICE_TOKENS: u64 = 90;

/// What stays of a result that is shrunk.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub head: u32,
    pub tail: u32,
}

impl Shape {
    /// As the operator wants it.
    pub fn of_settings() -> Self {
        Shape { head: settings::RESULT_HEAD.count(), tail: settings::RESULT_TAIL.count() }
    }

    /// About what shrinking a message saves; nothing where it would not at least halve it, for then more is lost to the
    /// reader than won.
    pub fn saving(self, row: &Row) -> u64 {
        let (before, after) = (u64::from(row.tokens), self.estimate(row));
        if after <= before / 2 { before - after } else { 0 }
    }

    /// What a message will about cost when it is shrunk; its tokens as they are when that saves nothing.
    pub fn estimate(self, row: &Row) -> u64 {
        let stays = u64::from(self.head) + u64::from(self.tail);
        let tokens = u64::from(row.tokens);
        match u64::from(row.chars) {
            chars if chars > stays => (tokens * stays / chars + NOTICE_TOKENS).min(tokens),
            _ => tokens,
        }
    }
}
