//! Plans: a policy's answer. Edits by message index, never a rewritten history.

use std::{collections::HashSet, ops::Range, sync::Arc};

use crate::{
    language::Language,
    marker::Marker,
    message::{self, Block, Message},
    recall::{self, Quote},
    replace::{self, Reduction},
    tokens,
    transcript::{Entry, Transcript},
    words::{self, Words},
};

/// One edit, as the policy asked for it.
#[derive(Clone, Debug)]
pub enum Edit {
    /// Messages `start..end` are removed from the request.
    Remove {
        /// The first message removed.
        start: u32,
        /// The first message that stays.
        end: u32,
    },
    /// A message is reduced. `result` is `None` when that would not make it cheaper, or when the message does not
    /// exist.
    Replace {
        /// Its index in the transcript.
        index: u32,
        /// What the policy asked for.
        reduction: Reduction,
        /// The result.
        result: Option<Replaced>,
    },
}

/// A message after a reduction.
#[derive(Clone, Debug)]
pub struct Replaced {
    /// Its index in the transcript.
    pub index: u32,
    /// What was done to it.
    pub reduction: Reduction,
    /// With the same role and origin.
    pub message: Arc<Message>,
    /// Its new token estimate.
    pub tokens: u32,
    /// Characters of its texts and tool results before.
    pub chars_before: u32,
    /// The same, after the reduction.
    pub chars_after: u32,
}

/// What a plan has too many of. The plan stores only as many as are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excess {
    /// More edits than twice the number of messages plus a small constant.
    Edits,
    /// More messages to be shown again than [`recall::MAX_QUOTES`].
    Recalls,
}

/// A policy's edits, and the cost of the request with them.
///
/// Every edit is accepted here, valid or not; the [guard](crate::guard) judges them together. An edit costs no more
/// than the text it reads, and no text is read twice, however many edits there are.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    edits: Vec<Edit>,
    words: Words,
    excess: Option<Excess>,
    replaced: HashSet<u32>,
    removed_tokens: u64,
    removed_turns: u32,
    saved_tokens: u64,
    compaction: Option<(u32, u32)>,
    recalls: Vec<(u32, Option<Quote>)>,
    recalled_tokens: u64,
}

impl Plan {
    /// The empty plan, which sends everything.
    pub fn new() -> Self {
        Plan::default()
    }

    /// Removes messages `start..end`.
    pub fn remove(&mut self, transcript: &Transcript, start: u32, end: u32) {
        if !self.has_room(transcript) {
            return;
        }
        let (from, to) = (start as usize, end as usize);
        if from < to && to <= transcript.len() {
            // Markers are the host's; `tokens` accounts for them.
            let tokens = transcript.tokens_in(from, to) - transcript.marker_tokens_in(from, to);
            self.removed_tokens = self.removed_tokens.saturating_add(tokens);
            self.removed_turns = self.removed_turns.saturating_add(transcript.turns_in(from, to) as u32);
        }
        self.edits.push(Edit::Remove { start, end });
    }

    /// Shortens a message, or keeps only its digest. A marker stays as it is.
    pub fn replace(&mut self, transcript: &Transcript, index: u32, reduction: Reduction) {
        if !self.has_room(transcript) {
            return;
        }
        // A second edit of a message makes the guard reject the plan, so its result is not computed.
        let fresh = (index as usize) < transcript.len() && self.replaced.insert(index);
        let result = if fresh { reduce(transcript, index, reduction) } else { None };
        if let Some(replaced) = &result {
            self.saved_tokens += u64::from(transcript.tokens()[index as usize] - replaced.tokens);
        }
        self.edits.push(Edit::Replace { index, reduction, result });
    }

    /// Sets the policy's own marker template; the last one counts.
    pub fn set_marker(&mut self, text: impl Into<String>) {
        let text = text.into();
        self.words = if Marker::is_template(&text) { Words::Good(text) } else { Words::Bad };
    }

    /// Asks for a summary in place of messages `start..end`; the last call counts.
    pub fn compact(&mut self, start: u32, end: u32) {
        self.compaction = Some((start, end));
    }

    /// The range to be summarized, if the policy asked for that.
    pub fn compaction(&self) -> Option<(u32, u32)> {
        self.compaction
    }

    /// Shows an archived message again; `quote` is `None` where the number does not exist or there is nothing to quote.
    pub fn recall(&mut self, number: u32, quote: Option<Quote>) {
        if self.recalls.len() >= recall::MAX_QUOTES {
            self.excess = self.excess.or(Some(Excess::Recalls));
            return;
        }
        self.recalled_tokens += quote.as_ref().map_or(0, |quote| u64::from(quote.tokens));
        self.recalls.push((number, quote));
    }

    /// The messages to be shown again, in the order in which they were requested.
    pub fn recalls(&self) -> &[(u32, Option<Quote>)] {
        &self.recalls
    }

    /// The removed ranges, ascending and disjoint.
    pub fn removed(&self) -> Vec<Range<u32>> {
        let removed = |edit: &Edit| match *edit {
            Edit::Remove { start, end } if start < end => Some(start..end),
            _ => None,
        };
        let mut ranges: Vec<Range<u32>> = self.edits.iter().filter_map(removed).collect();
        ranges.sort_unstable_by_key(|range| range.start);
        ranges.dedup_by(|next, range| {
            let joins = next.start <= range.end;
            if joins {
                range.end = range.end.max(next.end);
            }
            joins
        });
        ranges
    }

    /// Discards every edit, the marker template, and the recalls.
    pub fn clear(&mut self) {
        *self = Plan::new();
    }

    /// The edits, in the order they were made.
    pub fn edits(&self) -> &[Edit] {
        &self.edits
    }

    /// The policy's marker template, if it set one.
    pub fn words(&self) -> &Words {
        &self.words
    }

    /// What the policy requested more of than is allowed.
    pub fn excess(&self) -> Option<Excess> {
        self.excess
    }

    /// The cost of the request with these edits, marker and recall block included. Exact for a plan that the guard
    /// accepts.
    pub fn tokens(&self, transcript: &Transcript) -> u64 {
        let len = transcript.len();
        (transcript.tokens_in(0, len) - transcript.marker_tokens_in(0, len))
            .saturating_sub(self.removed_tokens)
            .saturating_sub(self.saved_tokens)
            .saturating_add(words::marker_tokens(transcript, self.removed_turns, &self.words))
            .saturating_add(self.recall_tokens(transcript.language()))
            .saturating_sub(self.replaced_recall(transcript))
    }

    /// The cost of the recall block.
    fn recall_tokens(&self, language: Language) -> u64 {
        if self.recalls.is_empty() { 0 } else { u64::from(recall::frame_tokens(language)) + self.recalled_tokens }
    }

    /// The cost of a recall block that is already in the request: a new one replaces it, unless it is removed anyway.
    fn replaced_recall(&self, transcript: &Transcript) -> u64 {
        if self.recalls.is_empty() || transcript.standing_recalls().next().is_none() {
            return 0;
        }
        let removed = self.removed();
        let goes = |at: usize| removed.iter().any(|range| range.contains(&(at as u32)));
        let stays = transcript.standing_recalls().filter(|&at| !goes(at));
        stays.map(|at| u64::from(transcript.tokens()[at])).sum()
    }

    fn has_room(&mut self, transcript: &Transcript) -> bool {
        if self.edits.len() >= transcript.len() * 2 + 16 {
            self.excess = self.excess.or(Some(Excess::Edits));
        }
        self.excess.is_none()
    }
}

/// Reduces one message, starting from its original; `None` when that makes it no cheaper than it is now.
fn reduce(transcript: &Transcript, index: u32, reduction: Reduction) -> Option<Replaced> {
    let entry = transcript.get(index).filter(|_| !transcript.is_marker(index as usize))?;
    let (source, language) = (entry.source(), transcript.language());
    let mut blocks = replace::blocks(&source.blocks, reduction, source.origin.name(), &entry.shown_id(), language)?;
    leave_out_hidden(&mut blocks, entry, language);
    let tokens = tokens::blocks(&blocks);
    if tokens >= entry.tokens {
        return None;
    }
    let chars_after = u32::try_from(message::chars(&blocks)).unwrap_or(u32::MAX);
    Some(Replaced {
        index,
        reduction,
        message: Arc::new(Message { role: source.role, origin: source.origin, blocks }),
        tokens,
        chars_before: entry.chars,
        chars_after,
    })
}

/// Keeps an image of the original that is no longer shown as the text that it has become: the model's server may have
/// refused it.
fn leave_out_hidden(blocks: &mut [Block], entry: &Entry, language: Language) {
    let (source, standing) = (entry.source(), &entry.message);
    let is_in_place = source.blocks.len() == standing.blocks.len();
    for (at, (block, original)) in blocks.iter_mut().zip(&source.blocks).enumerate() {
        let Block::Image(image) = original else { continue };
        if standing.images().any(|shown| shown == image) {
            continue;
        }
        let text = standing.blocks.get(at).filter(|block| is_in_place && matches!(block, Block::Text { .. }));
        *block = text.cloned().unwrap_or_else(|| Block::Text { text: image.digest(&entry.shown_id(), language) });
    }
}
