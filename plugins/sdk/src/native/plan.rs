//! The available tokens, and the edits of a policy.

use std::{cell::RefCell, rc::Rc, sync::Arc};

use pmk_core::replace::Reduction;

use super::transcript::{Draft, Transcript};

/// The available tokens.
#[derive(Clone, Debug)]
pub struct Budget {
    pub(crate) limit: u64,
    pub(crate) window: u64,
    pub(crate) marker_tokens: u32,
    pub(crate) recall_tokens: u32,
    pub(crate) phase: u8,
    pub(crate) seed_may_go: bool,
}

impl Budget {
    /// The hard limit in tokens. A request above it is never sent.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// The model's whole window in tokens.
    pub fn window(&self) -> u64 {
        self.window
    }

    /// What the host's own marker costs at most. Words of the policy's own may cost more; [`Plan::tokens`] counts them.
    pub fn marker_tokens(&self) -> u32 {
        self.marker_tokens
    }

    /// The token cost of a recall block in addition to its quotes.
    pub fn recall_tokens(&self) -> u32 {
        self.recall_tokens
    }

    /// The model call that this is for: a [phase](crate::phase).
    pub fn phase(&self) -> u8 {
        self.phase
    }

    /// Whether the operator allows the seed pair to be removed.
    pub fn seed_may_go(&self) -> bool {
        self.seed_may_go
    }
}

/// The edits to make. An empty plan sends everything unchanged.
///
/// Edits are only recorded here, and judged together once the decision has returned, so no method fails.
#[derive(Debug)]
pub struct Plan {
    transcript: Arc<pmk_core::Transcript>,
    draft: Rc<RefCell<Draft>>,
}

impl Plan {
    /// The plan of a decision about this transcript. Searches of the transcript take the edits so far into account.
    pub(crate) fn of(transcript: &Transcript) -> Self {
        Plan { transcript: Arc::clone(&transcript.inner), draft: Rc::clone(&transcript.draft) }
    }

    pub(crate) fn into_edits(self) -> pmk_core::Plan {
        std::mem::take(&mut self.draft.borrow_mut().plan)
    }

    /// Removes messages `start..end` from the request: whole turns, the part between the seed and the first turn, or,
    /// if one turn by itself exceeds the hard limit, whole tool groups within it.
    pub fn remove(&self, start: u32, end: u32) {
        self.draft.borrow_mut().plan.remove(&self.transcript, start, end);
    }

    /// Shortens each text and tool result of one message to its first `head` and last `tail` characters, with the
    /// host's notice in between.
    pub fn shorten(&self, index: u32, head: u32, tail: u32) {
        self.draft.borrow_mut().plan.replace(&self.transcript, index, Reduction::Shorten { head, tail });
    }

    /// Replaces each text and tool result of one message by a digest (size, SHA-256, first and last line).
    pub fn digest(&self, index: u32) {
        self.draft.borrow_mut().plan.replace(&self.transcript, index, Reduction::Digest);
    }

    /// Sets the policy's own text for the marker, at most 300 characters, with `{turns}` in place of the number.
    pub fn marker(&self, text: &str) {
        self.draft.borrow_mut().plan.set_marker(text.to_owned());
    }

    /// The cost of the request with the edits so far, marker and recall block included.
    pub fn tokens(&self) -> u64 {
        self.draft.borrow().plan.tokens(&self.transcript)
    }

    /// Asks the host to have the model summarize messages `start..end` before the call. They must be whole turns
    /// between the seed and the most recent turn. If the summary fails, the rest of the plan still applies.
    pub fn compact(&self, start: u32, end: u32) {
        self.draft.borrow_mut().plan.compact(start, end);
    }

    /// Shows an archived message again, its first `max_chars` characters. All recalled messages are quoted in one block
    /// just before the new message.
    pub fn recall(&self, number: u32, max_chars: u32) {
        let Draft { plan, lookup } = &mut *self.draft.borrow_mut();
        lookup.recall(&self.transcript, plan, number, max_chars);
    }

    /// Discards every edit, recall and the marker's text.
    pub fn clear(&self) {
        self.draft.borrow_mut().plan.clear();
    }
}
