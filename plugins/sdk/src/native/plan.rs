//! The room there is, and the edits a policy makes.

use std::{cell::RefCell, rc::Rc, sync::Arc};

use pmk_core::{Language, recall, replace::Reduction};

use super::transcript::{Draft, Transcript};

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

    /// What a recall block costs beside what it quotes.
    pub fn recall_tokens(&self) -> u32 {
        recall::frame_tokens(Language::default())
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
    draft: Rc<RefCell<Draft>>,
}

impl Plan {
    /// The plan of a decision about this transcript, which sees the edits as they are made.
    pub(crate) fn of(transcript: &Transcript) -> Self {
        Plan { transcript: Arc::clone(&transcript.inner), draft: Rc::clone(&transcript.draft) }
    }

    pub(crate) fn into_edits(self) -> pmk_core::Plan {
        std::mem::take(&mut self.draft.borrow_mut().plan)
    }

    /// Takes messages `start..end` out of the request: whole turns, the part between the seed and the first turn, or,
    /// where one turn alone exceeds the hard limit, whole tool groups inside it.
    pub fn remove(&self, start: u32, end: u32) {
        self.draft.borrow_mut().plan.remove(&self.transcript, start, end);
    }

    /// Shortens each text and tool result of one message to its first `head` and last `tail` characters, with the
    /// host's notice in between.
    pub fn shorten(&self, index: u32, head: u32, tail: u32) {
        self.draft.borrow_mut().plan.replace(&self.transcript, index, Reduction::Shorten { head, tail });
    }

    /// Puts a digest (size, SHA-256, first and last line) in place of each text and tool result of one message.
    pub fn digest(&self, index: u32) {
        self.draft.borrow_mut().plan.replace(&self.transcript, index, Reduction::Digest);
    }

    /// Own words for the marker, at most 300 characters, with `{turns}` where the number belongs.
    pub fn marker(&self, text: &str) {
        self.draft.borrow_mut().plan.set_marker(text.to_owned());
    }

    /// What the request would cost if the edits so far were carried out, marker and recall
    /// block included.
    pub fn tokens(&self) -> u64 {
        self.draft.borrow().plan.tokens(&self.transcript)
    }

    /// Asks the host to have the model sum up messages `start..end`, whole turns between the seed and the most
    /// recent turn, before the call. The rest of the plan holds where that fails.
    pub fn compact(&self, start: u32, end: u32) {
        self.draft.borrow_mut().plan.compact(start, end);
    }

    /// Shows an archived message again, its first `max_chars` characters, quoted with all others that are recalled in
    /// one block just before the new message.
    pub fn recall(&self, number: u32, max_chars: u32) {
        let Draft { plan, lookup } = &mut *self.draft.borrow_mut();
        lookup.recall(&self.transcript, plan, number, max_chars);
    }

    /// Takes back every edit, recall and the marker's words.
    pub fn clear(&self) {
        self.draft.borrow_mut().plan.clear();
    }
}
