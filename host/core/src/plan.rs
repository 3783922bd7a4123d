//! Plans: what a policy answers. Edits by message index, never a rewritten history.

use std::sync::Arc;

use crate::{
    marker::Marker,
    message::{self, Message},
    replace::{self, Reduction},
    tokens,
    transcript::Transcript,
};

/// One edit, as the policy asked for it.
#[derive(Clone, Debug)]
pub enum Edit {
    /// Messages `start..end` leave the request.
    Remove { start: u32, end: u32 },
    /// A message is reduced. `result` is `None` when it would not get cheaper, or when there is no such message.
    Replace { index: u32, reduction: Reduction, result: Option<Replaced> },
}

/// A message as it stands after a reduction.
#[derive(Clone, Debug)]
pub struct Replaced {
    pub index: u32,
    pub message: Arc<Message>,
    pub tokens: u32,
    pub chars_before: u32,
    pub chars_after: u32,
}

/// Edits, and what the request would cost with them.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    edits: Vec<Edit>,
    marker: Option<String>,
    overfull: bool,
    removed_tokens: u64,
    removed_turns: u32,
    saved_tokens: u64,
}

impl Plan {
    /// The plan that sends everything.
    pub fn new() -> Self {
        Plan::default()
    }

    /// Takes messages `start..end` out.
    pub fn remove(&mut self, transcript: &Transcript, start: u32, end: u32) {
        if !self.has_room(transcript) {
            return;
        }
        if start < end && (end as usize) <= transcript.len() {
            let (from, to) = (start as usize, end as usize);
            // Markers are the host's: what they cost is settled in `tokens`.
            let markers: u64 = transcript
                .markers()
                .iter()
                .filter(|&&at| from <= at && at < to)
                .map(|&at| u64::from(transcript.tokens()[at]))
                .sum();
            self.removed_tokens += transcript.tokens_in(from, to) - markers;
            self.removed_turns = self.removed_turns.saturating_add(transcript.turns_in(from, to) as u32);
        }
        self.edits.push(Edit::Remove { start, end });
    }

    /// Shortens a message, or leaves only its digest.
    pub fn replace(&mut self, transcript: &Transcript, index: u32, reduction: Reduction) {
        if !self.has_room(transcript) {
            return;
        }
        let result = reduce(transcript, index, reduction);
        if let Some(replaced) = &result {
            self.saved_tokens += u64::from(transcript.tokens()[index as usize] - replaced.tokens);
        }
        self.edits.push(Edit::Replace { index, reduction, result });
    }

    /// The policy's own words for the marker.
    pub fn set_marker(&mut self, text: String) {
        self.marker = Some(text);
    }

    /// The edits, in the order they were made.
    pub fn edits(&self) -> &[Edit] {
        &self.edits
    }

    /// The policy's own words for the marker.
    pub fn marker(&self) -> Option<&str> {
        self.marker.as_deref()
    }

    /// Whether the policy made more edits than any sensible plan has.
    pub fn is_overfull(&self) -> bool {
        self.overfull
    }

    /// What the request would cost with these edits, marker included. Only exact for a legal plan.
    pub fn tokens(&self, transcript: &Transcript) -> u64 {
        let without = transcript.total_tokens().saturating_sub(self.removed_tokens).saturating_sub(self.saved_tokens);
        match marker_after(transcript, self.removed_turns, self.marker()) {
            MarkerAfter::AsItIs => without,
            MarkerAfter::Written(marker) => {
                without.saturating_sub(marker_tokens(transcript)) + u64::from(marker.tokens())
            }
        }
    }

    fn has_room(&mut self, transcript: &Transcript) -> bool {
        self.overfull |= self.edits.len() >= transcript.len() * 2 + 16;
        !self.overfull
    }
}

/// What becomes of the marker when that many turns more are dropped.
pub(crate) enum MarkerAfter {
    /// Nothing changes.
    AsItIs,
    /// This one takes the place of those that are there.
    Written(Marker),
}

pub(crate) fn marker_after(transcript: &Transcript, removed_turns: u32, words: Option<&str>) -> MarkerAfter {
    if removed_turns == 0 && transcript.markers().len() <= 1 {
        return MarkerAfter::AsItIs;
    }
    let turns = transcript.dropped_turns().saturating_add(removed_turns);
    MarkerAfter::Written(match words {
        Some(words) => Marker::with_template(turns, words).0,
        None => Marker::new(turns),
    })
}

/// What the markers that are there cost.
pub(crate) fn marker_tokens(transcript: &Transcript) -> u64 {
    transcript.markers().iter().map(|&at| u64::from(transcript.tokens()[at])).sum()
}

/// Reduces one message, counted on its original; `None` when that makes it no cheaper than it stands.
fn reduce(transcript: &Transcript, index: u32, reduction: Reduction) -> Option<Replaced> {
    let entry = transcript.get(index)?;
    let source = entry.source();
    let blocks = replace::blocks(&source.blocks, reduction, source.origin.name(), &entry.shown_id())?;
    let tokens = tokens::blocks(&blocks);
    if tokens >= entry.tokens {
        return None;
    }
    let chars_after = u32::try_from(message::chars(&blocks)).unwrap_or(u32::MAX);
    Some(Replaced {
        index,
        message: Arc::new(Message { role: source.role, origin: source.origin, blocks }),
        tokens,
        chars_before: entry.chars,
        chars_after,
    })
}
