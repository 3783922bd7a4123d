//! An applied plan: the resulting request and its cost in tokens.

use std::ops::Range;

use crate::{
    marker::Marker,
    message::Message,
    plan::Replaced,
    recall::Recall,
    transcript::Transcript,
    verdict::{Rule, Verdict},
    words::{Words, marker_after},
};

/// A plan that has been applied: what the request consists of.
#[derive(Clone, Debug)]
pub struct Applied {
    /// Indexes of the messages that stay, ascending.
    pub kept: Vec<u32>,
    /// Indexes of the messages that are removed, ascending.
    pub removed: Vec<u32>,
    /// Kept messages that were reduced, ascending.
    pub replaced: Vec<Replaced>,
    /// A marker written by this plan, and the index of the message it precedes.
    pub marker: Option<(Marker, u32)>,
    /// Turns dropped by this plan.
    pub turns_dropped: u32,
    /// Turns dropped since the conversation began.
    pub turns_dropped_total: u32,
    /// Tokens of the request with an empty plan.
    pub tokens_before: u64,
    /// Tokens of the request with this plan.
    pub tokens_after: u64,
    /// Rules whose text the guard corrected.
    pub corrected: Vec<Rule>,
    /// Archived messages that are shown again just before the new message.
    pub recall: Option<Recall>,
    /// Messages that the policy wants summarized first. If the summary fails, the rest of this plan applies without it.
    pub compaction: Option<Range<usize>>,
}

impl Applied {
    /// Whether the request differs from that of an empty plan.
    pub fn changes_anything(&self) -> bool {
        self.edits_window() || self.recall.is_some()
    }

    /// Whether it differs in a way that persists after this turn (a recall block does not).
    pub fn edits_window(&self) -> bool {
        !self.removed.is_empty() || !self.replaced.is_empty() || self.marker.is_some()
    }

    /// The messages of the request, in order.
    pub fn messages(&self, transcript: &Transcript) -> Vec<Message> {
        let mut out = Vec::with_capacity(self.kept.len() + 2);
        let mut replaced = self.replaced.iter().peekable();
        let mut marker = self.marker.as_ref();
        for &index in &self.kept {
            if let Some((written, _)) = marker.take_if(|(_, before)| *before <= index) {
                out.push(written.message());
            }
            if transcript.new_message() == Some(index as usize) {
                out.extend(self.recall.iter().map(|recall| (*recall.message).clone()));
            }
            match replaced.next_if(|replaced| replaced.index == index) {
                Some(replaced) => out.push((*replaced.message).clone()),
                None => out.push((*transcript.entries()[index as usize].message).clone()),
            }
        }
        if let Some((written, _)) = marker {
            out.push(written.message());
        }
        out
    }

    /// The verdict on a plan that was applied.
    pub fn verdict(&self) -> Verdict {
        if self.corrected.is_empty() { Verdict::Accepted } else { Verdict::Corrected(self.corrected.clone()) }
    }
}

/// Applies the removal of every message marked in `goes`. Stored markers are never marked: they stay, or a new marker
/// replaces them. Without `words` the request has no marker.
pub(crate) fn carry_out(
    transcript: &Transcript,
    mut goes: Vec<bool>,
    replaced: Vec<Replaced>,
    words: Option<&Words>,
    recall: Option<Recall>,
) -> Applied {
    if recall.is_some() {
        transcript.standing_recalls().for_each(|at| goes[at] = true);
    }
    let turns_dropped = turns_dropped(transcript, &goes);
    let marker = words.and_then(|words| marker_after(transcript, turns_dropped, words));
    let corrected = if marker.is_some() && words == Some(&Words::Bad) { vec![Rule::Marker] } else { vec![] };
    if words.is_none() || marker.is_some() {
        transcript.markers().iter().for_each(|&at| goes[at as usize] = true);
    }
    let (removed, kept): (Vec<u32>, Vec<u32>) = (0..transcript.len() as u32).partition(|&at| goes[at as usize]);
    let after_seed = kept.partition_point(|&at| (at as usize) < transcript.seed_end());
    let before = kept.get(after_seed).copied().unwrap_or(transcript.len() as u32);
    let tokens = transcript.tokens();
    let kept_tokens: u64 = kept.iter().map(|&at| u64::from(tokens[at as usize])).sum();
    let recalled = recall.as_ref().map_or(0, |recall| u64::from(recall.tokens));
    let saved: u64 = replaced.iter().map(|by| u64::from(tokens[by.index as usize] - by.tokens)).sum();
    Applied {
        kept,
        removed,
        replaced,
        turns_dropped,
        turns_dropped_total: transcript.dropped_turns().saturating_add(turns_dropped),
        tokens_before: transcript.total_tokens(),
        tokens_after: kept_tokens - saved + recalled + marker.as_ref().map_or(0, |marker| u64::from(marker.tokens())),
        marker: marker.map(|marker| (marker, before)),
        corrected,
        recall,
        compaction: None,
    }
}

/// How many stored turns lose the message they start with.
pub(crate) fn turns_dropped(transcript: &Transcript, goes: &[bool]) -> u32 {
    let starts = &transcript.structure().turn_starts[..transcript.turns()];
    starts.iter().filter(|&&at| goes[at as usize]).count() as u32
}
