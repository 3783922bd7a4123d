//! Plans: what a policy answers. Edits by message index, never a rewritten history.

use std::{collections::HashSet, ops::Range, sync::Arc};

use crate::{
    language::Language,
    marker::Marker,
    message::{self, Message},
    recall::{self, Quote},
    replace::{self, Reduction},
    tokens,
    transcript::Transcript,
    words::{self, Words},
};

/// One edit, as the policy asked for it.
#[derive(Clone, Debug)]
pub enum Edit {
    /// Messages `start..end` leave the request.
    Remove {
        /// The first of them.
        start: u32,
        /// The first that stays.
        end: u32,
    },
    /// A message is reduced. `result` is `None` when it would not get cheaper, or when there is no such message.
    Replace {
        /// Its place in the transcript.
        index: u32,
        /// What the policy asked for.
        reduction: Reduction,
        /// What it comes to.
        result: Option<Replaced>,
    },
}

/// A message as it stands after a reduction.
#[derive(Clone, Debug)]
pub struct Replaced {
    /// Its place in the transcript.
    pub index: u32,
    /// Of the same role and origin.
    pub message: Arc<Message>,
    /// What it costs now, by the estimate.
    pub tokens: u32,
    /// Characters of its texts and tool results.
    pub chars_before: u32,
    /// The same, reduced.
    pub chars_after: u32,
}

/// What a plan has too many of. It holds no more of them than it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excess {
    /// There may be twice as many as messages, and a few.
    Edits,
    /// Messages to be shown again.
    Recalls,
}

/// Edits, and what the request would cost with them.
///
/// Every edit is accepted here, sensible or not; the [guard](crate::guard) judges them together. An edit
/// costs no more than the text it reads, and no text is read twice, however many edits there are.
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
    /// The plan that sends everything.
    pub fn new() -> Self {
        Plan::default()
    }

    /// Takes messages `start..end` out.
    pub fn remove(&mut self, transcript: &Transcript, start: u32, end: u32) {
        if !self.has_room(transcript) {
            return;
        }
        let (from, to) = (start as usize, end as usize);
        if from < to && to <= transcript.len() {
            // Markers are the host's: what they cost is settled in `tokens`.
            let tokens = transcript.tokens_in(from, to) - transcript.marker_tokens_in(from, to);
            self.removed_tokens = self.removed_tokens.saturating_add(tokens);
            self.removed_turns = self.removed_turns.saturating_add(transcript.turns_in(from, to) as u32);
        }
        self.edits.push(Edit::Remove { start, end });
    }

    /// Shortens a message, or leaves only its digest. A marker stays as it is.
    pub fn replace(&mut self, transcript: &Transcript, index: u32, reduction: Reduction) {
        if !self.has_room(transcript) {
            return;
        }
        // A second edit of a message refuses the plan, so there is nothing to work out for it.
        let fresh = (index as usize) < transcript.len() && self.replaced.insert(index);
        let result = if fresh { reduce(transcript, index, reduction) } else { None };
        if let Some(replaced) = &result {
            self.saved_tokens += u64::from(transcript.tokens()[index as usize] - replaced.tokens);
        }
        self.edits.push(Edit::Replace { index, reduction, result });
    }

    /// The policy's own words for the marker; the last ones count.
    pub fn set_marker(&mut self, text: impl Into<String>) {
        let text = text.into();
        self.words = if Marker::is_template(&text) { Words::Good(text) } else { Words::Bad };
    }

    /// Asks for a summary in place of messages `start..end`; the last call counts.
    pub fn compact(&mut self, start: u32, end: u32) {
        self.compaction = Some((start, end));
    }

    /// What is to be summed up, where the policy asks for it.
    pub fn compaction(&self) -> Option<(u32, u32)> {
        self.compaction
    }

    /// Shows an archived message again; `quote` is `None` where there is none of that number, or nothing to quote.
    pub fn recall(&mut self, number: u32, quote: Option<Quote>) {
        if self.recalls.len() >= recall::MAX_QUOTES {
            self.excess = self.excess.or(Some(Excess::Recalls));
            return;
        }
        self.recalled_tokens += quote.as_ref().map_or(0, |quote| u64::from(quote.tokens));
        self.recalls.push((number, quote));
    }

    /// What is to be shown again, in the order in which it was asked for.
    pub fn recalls(&self) -> &[(u32, Option<Quote>)] {
        &self.recalls
    }

    /// What leaves the request, as ranges that are ascending and apart.
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

    /// Takes back every edit, the marker's words, and what was to be shown again.
    pub fn clear(&mut self) {
        *self = Plan::new();
    }

    /// The edits, in the order they were made.
    pub fn edits(&self) -> &[Edit] {
        &self.edits
    }

    /// The policy's own words for the marker, where it gave some.
    pub fn words(&self) -> &Words {
        &self.words
    }

    /// What the policy asked for more of than any sensible plan has.
    pub fn excess(&self) -> Option<Excess> {
        self.excess
    }

    /// What the request would cost with these edits, marker and recall block included. Exact for a plan that the
    /// guard accepts.
    pub fn tokens(&self, transcript: &Transcript) -> u64 {
        let len = transcript.len();
        (transcript.tokens_in(0, len) - transcript.marker_tokens_in(0, len))
            .saturating_sub(self.removed_tokens)
            .saturating_sub(self.saved_tokens)
            .saturating_add(words::marker_tokens(transcript, self.removed_turns, &self.words))
            .saturating_add(self.recall_tokens(transcript.language()))
            .saturating_sub(self.replaced_recall(transcript))
    }

    /// What the recall block costs.
    fn recall_tokens(&self, language: Language) -> u64 {
        if self.recalls.is_empty() { 0 } else { u64::from(recall::frame_tokens(language)) + self.recalled_tokens }
    }

    /// What the block saves that stands already: a new one takes its place, unless it goes anyhow.
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

/// Reduces one message, counted on its original; `None` when that makes it no cheaper than it stands.
fn reduce(transcript: &Transcript, index: u32, reduction: Reduction) -> Option<Replaced> {
    let entry = transcript.get(index).filter(|_| !transcript.is_marker(index as usize))?;
    let source = entry.source();
    let blocks =
        replace::blocks(&source.blocks, reduction, source.origin.name(), &entry.shown_id(), transcript.language())?;
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
