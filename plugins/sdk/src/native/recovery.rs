//! An overflow, and the rung to try next.

use std::cell::Cell;

/// A request that the model refused as too long.
#[derive(Clone, Debug)]
pub struct Overflow {
    pub(crate) phase: u8,
    pub(crate) tried: Vec<u8>,
    pub(crate) available: Vec<u8>,
    pub(crate) observed_tokens: Option<u64>,
    pub(crate) allowed_tokens: Option<u64>,
}

impl Overflow {
    /// The model call that was refused: a [phase](crate::phase).
    pub fn phase(&self) -> u8 {
        self.phase
    }

    /// The [rungs](crate::rung) tried for this model call, in order.
    pub fn tried(&self) -> Vec<u8> {
        self.tried.clone()
    }

    /// The [rungs](crate::rung) that the host can still try now.
    pub fn available(&self) -> Vec<u8> {
        self.available.clone()
    }

    /// Tokens that the provider counted, if it said so.
    pub fn observed_tokens(&self) -> Option<u64> {
        self.observed_tokens
    }

    /// Tokens that the provider allows, if it said so.
    pub fn allowed_tokens(&self) -> Option<u64> {
        self.allowed_tokens
    }
}

/// The rung to try next. The last call counts.
#[derive(Debug, Default)]
pub struct Recovery {
    pub(crate) chosen: Cell<Option<u8>>,
}

impl Recovery {
    /// Chooses a [rung](crate::rung).
    pub fn choose(&self, rung: u8) {
        self.chosen.set(Some(rung));
    }
}
