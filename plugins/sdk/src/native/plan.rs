//! The room there is, and the edits a policy makes.

use std::{cell::RefCell, sync::Arc};

use pmk_core::replace::Reduction;

/// How much room there is.
#[derive(Clone, Debug)]
pub struct Budget {
    pub(crate) limit: u64,
    pub(crate) window: u64,
    pub(crate) marker_tokens: u32,
    pub(crate) phase: u8,
    pub(crate) seed_may_go: bool,
}

impl Budget {
    /// The hard limit in tokens. A plan that leaves more is never sent.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// The model's whole window in tokens.
    pub fn window(&self) -> u64 {
        self.window
    }

    /// What a marker costs.
    pub fn marker_tokens(&self) -> u32 {
        self.marker_tokens
    }

    /// Which call this is for: a [phase](crate::phase).
    pub fn phase(&self) -> u8 {
        self.phase
    }

    /// Whether the operator allows the seed pair to be removed.
    pub fn seed_may_go(&self) -> bool {
        self.seed_may_go
    }
}

/// The edits to make. An empty plan sends everything as it is.
///
/// Edits are only noted here and judged together once the decision has returned, so no method fails.
#[derive(Debug)]
pub struct Plan {
    transcript: Arc<pmk_core::Transcript>,
    edits: RefCell<pmk_core::Plan>,
}

impl Plan {
    pub(crate) fn new(transcript: Arc<pmk_core::Transcript>) -> Self {
        Plan { transcript, edits: RefCell::default() }
    }

    pub(crate) fn into_edits(self) -> pmk_core::Plan {
        self.edits.into_inner()
    }

    /// Takes messages `start..end` out of the request: whole turns, the part between the seed and the first turn, or,
    /// where one turn alone exceeds the hard limit, whole tool groups inside it.
    pub fn remove(&self, start: u32, end: u32) {
        self.edits.borrow_mut().remove(&self.transcript, start, end);
    }

    /// Shortens each text and tool result of one message to its first `head` and last `tail` characters, with the
    /// host's notice in between.
    pub fn shorten(&self, index: u32, head: u32, tail: u32) {
        self.edits.borrow_mut().replace(&self.transcript, index, Reduction::Shorten { head, tail });
    }

    /// Puts a digest (size, SHA-256, first and last line) in place of each text and tool result of one message.
    pub fn digest(&self, index: u32) {
        self.edits.borrow_mut().replace(&self.transcript, index, Reduction::Digest);
    }

    /// Own words for the marker, at most 300 characters, with `{turns}` where the number belongs.
    pub fn marker(&self, text: &str) {
        self.edits.borrow_mut().set_marker(text.to_owned());
    }

    /// What the request would cost if the edits so far were carried out, marker included.
    pub fn tokens(&self) -> u64 {
        self.edits.borrow().tokens(&self.transcript)
    }

    /// Asks the host to have the model sum up messages `start..end`, whole turns between the seed and the most
    /// recent turn, before the call. The rest of the plan holds where that fails.
    pub fn compact(&self, start: u32, end: u32) {
        self.edits.borrow_mut().compact(start, end);
    }

    /// Takes back every edit and the marker's words.
    pub fn clear(&self) {
        self.edits.borrow_mut().clear();
    }
}
