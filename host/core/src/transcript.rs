//! What a policy sees: the request as it would be sent with an empty plan, and the columns it may read.

use std::{
    collections::HashMap,
    ops::Range,
    sync::{Arc, OnceLock},
};

pub use crate::structure::flag;
use crate::{
    archive::Archive,
    language::Language,
    marker,
    message::{self, Message, Origin, Role},
    structure::{Structure, starts_turn},
    tokens,
};

/// One message of the live window, or one that the host adds for this call.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The id under which the host stores the original; shown in notices as `m7`.
    pub id: i64,
    /// The message as the model would see it.
    pub message: Arc<Message>,
    /// The message as it was stored, if `message` replaces it.
    pub original: Option<Arc<Message>>,
    /// The stored estimate of `message`.
    pub tokens: u32,
    /// The stored length of `message` in characters.
    pub chars: u32,
}

impl Entry {
    /// Creates an entry and computes its counts.
    pub fn new(id: i64, message: Message) -> Self {
        let tokens = tokens::message(&message);
        let chars = u32::try_from(message::chars(&message.blocks)).unwrap_or(u32::MAX);
        Entry { id, message: Arc::new(message), original: None, tokens, chars }
    }

    /// The same entry with another message in its place.
    pub fn standing(&self, message: Message) -> Entry {
        let original = self.original.as_ref().unwrap_or(&self.message);
        Entry { original: Some(Arc::clone(original)), ..Entry::new(self.id, message) }
    }

    /// The original message.
    pub fn source(&self) -> &Message {
        self.original.as_ref().unwrap_or(&self.message)
    }

    /// The id as notices show it.
    pub fn shown_id(&self) -> String {
        format!("m{}", self.id)
    }
}

impl AsRef<Message> for Entry {
    fn as_ref(&self) -> &Message {
        &self.message
    }
}

/// The messages of one request, oldest first, and their metadata.
///
/// The host ensures that every tool block has its partner, that no message is empty and that a user message comes
/// first; [`repair`](crate::history::repair) does so for a history from outside.
#[derive(Clone, Debug)]
pub struct Transcript {
    entries: Vec<Entry>,
    tokens: Vec<u32>,
    /// `sums[i]` is the cost of the first `i` messages, so that the cost of any range takes two look-ups: a policy may
    /// query as many as it likes.
    sums: Vec<u64>,
    structure: Structure,
    current: usize,
    seed_end: usize,
    /// Where what came with the new message or is shown only for it begins.
    stored_end: usize,
    /// Where what is shown only for it begins.
    shown: usize,
    /// The starts of the parts that are removed as a whole, and the length as the last element.
    bounds: Vec<usize>,
    markers: Vec<u32>,
    /// `marker_sums[i]` is the cost of the first `i` markers.
    marker_sums: Vec<u64>,
    dropped_turns: u32,
    channel: String,
    language: Language,
    archive: Option<Arc<dyn Archive>>,
    /// Index by id, built on the first archive search.
    indexes: OnceLock<HashMap<i64, u32>>,
}

impl Transcript {
    /// Creates a transcript. `current` is where the current turn begins: the index of the new message, or the number of
    /// entries when there is none.
    pub fn new(entries: Vec<Entry>, current: usize, channel: impl Into<String>) -> Self {
        let mut structure = Structure::of(&entries);
        let current = current.min(entries.len());
        let tokens: Vec<u32> = entries.iter().map(|entry| entry.tokens).collect();
        for (at, (entry, flags)) in entries.iter().zip(&mut structure.flags).enumerate() {
            *flags |= if entry.original.is_some() { flag::REPLACED } else { 0 };
            *flags |= if at >= current { flag::STAYS } else { 0 };
        }
        let seed_end = [(Role::User, Origin::Seed), (Role::Assistant, Origin::SeedAck)]
            .into_iter()
            .zip(&entries[..current])
            .take_while(|(wanted, entry)| {
                *wanted == (entry.message.role, entry.message.origin) && !entry.message.has_tools()
            })
            .count();
        let shown = end_without(&entries, seed_end..current, &[Origin::Retrieval, Origin::Recall]);
        let stored_end = match current == entries.len() {
            true => shown,
            false => end_without(&entries, seed_end..shown, &[Origin::Attachment]),
        };
        if stored_end < shown {
            structure.begin_current_turn(stored_end, current);
        }
        let markers: Vec<u32> = structure.markers.iter().copied().filter(|&at| at as usize != current).collect();
        let dropped_turns = markers
            .iter()
            .filter_map(|&at| marker::parse(&entries[at as usize].message.plain_text()))
            .fold(0, u32::saturating_add);
        Transcript {
            sums: running_sums(tokens.iter().copied()),
            marker_sums: running_sums(markers.iter().map(|&at| tokens[at as usize])),
            bounds: bounds(&structure, seed_end, [stored_end, shown, current], entries.len()),
            entries,
            tokens,
            structure,
            current,
            seed_end,
            stored_end,
            shown,
            markers,
            dropped_turns,
            channel: channel.into(),
            language: Language::default(),
            archive: None,
            indexes: OnceLock::new(),
        }
    }

    /// Adds the archive of its conversation.
    pub fn with_archive(mut self, archive: Arc<dyn Archive>) -> Self {
        self.archive = Some(archive);
        self
    }

    /// Sets the language of the host's own texts in it.
    pub fn speaking(mut self, language: Language) -> Self {
        self.language = language;
        self
    }

    /// Sets how many turns earlier prunes have dropped, where the marker's text does not state it.
    pub fn with_dropped_turns(mut self, turns: u32) -> Self {
        self.dropped_turns = turns;
        self
    }

    /// The transcript of a list of messages; if the last one is a user message that starts a turn, it is the new
    /// message.
    pub fn of_messages(messages: impl IntoIterator<Item = Message>) -> Self {
        let entries: Vec<Entry> = messages.into_iter().zip(0..).map(|(message, id)| Entry::new(id, message)).collect();
        let current = match entries.last() {
            Some(last) if starts_turn(&last.message) => entries.len() - 1,
            _ => entries.len(),
        };
        Transcript::new(entries, current, "")
    }

    /// How many messages there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no messages.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The messages, oldest first.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The message at an index.
    pub fn get(&self, index: u32) -> Option<&Entry> {
        self.entries.get(index as usize)
    }

    /// Stored token counts, one per message.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Bits of [`flag`], one byte per message.
    pub fn flags(&self) -> &[u8] {
        &self.structure.flags
    }

    /// Turns, cuts and tool groups.
    pub fn structure(&self) -> &Structure {
        &self.structure
    }

    /// The sum of all token counts.
    pub fn total_tokens(&self) -> u64 {
        self.tokens_in(0, self.entries.len())
    }

    /// The archive of the conversation, if there is one.
    pub fn archive(&self) -> Option<&dyn Archive> {
        self.archive.as_deref()
    }

    /// How many messages the archive holds.
    pub fn archived(&self) -> u32 {
        self.archive().map_or(0, Archive::len)
    }

    /// The index of the stored message with this id, if it is here.
    pub fn index_of(&self, id: i64) -> Option<u32> {
        let indexes = || (0..).zip(&self.entries).map(|(at, entry)| (entry.id, at)).collect();
        self.indexes.get_or_init(indexes).get(&id).copied()
    }

    /// Indexes of the recall blocks that an earlier call of this turn was shown.
    pub(crate) fn standing_recalls(&self) -> impl Iterator<Item = usize> + '_ {
        (self.shown..self.current).filter(|&at| self.entries[at].message.origin == Origin::Recall)
    }

    /// Where the current turn begins; the number of messages when there is no new message.
    pub fn current(&self) -> usize {
        self.current
    }

    /// The index of the new message.
    pub fn new_message(&self) -> Option<usize> {
        (self.current < self.entries.len()).then_some(self.current)
    }

    /// How many messages at the start are the seed and its acknowledgement.
    pub fn seed_end(&self) -> usize {
        self.seed_end
    }

    /// Indexes of stored markers; more than one only in an imported history.
    pub fn markers(&self) -> &[u32] {
        &self.markers
    }

    /// Whether the message at this index is a stored marker.
    pub fn is_marker(&self, index: usize) -> bool {
        self.markers.binary_search_by(|&at| (at as usize).cmp(&index)).is_ok()
    }

    /// How many stored markers are in a range.
    pub(crate) fn markers_in(&self, range: &Range<usize>) -> usize {
        let before = |at: usize| self.markers.partition_point(|&marker| (marker as usize) < at);
        before(range.end) - before(range.start)
    }

    /// Whether the message at this index contains a tool call or a tool result.
    pub(crate) fn is_in_pair(&self, index: usize) -> bool {
        self.structure.flags.get(index).is_some_and(|flags| flags & (flag::TOOL_USE | flag::TOOL_RESULT) != 0)
    }

    /// How many turns earlier prunes have dropped.
    pub fn dropped_turns(&self) -> u32 {
        self.dropped_turns
    }

    /// The channel the new message came from.
    pub fn channel(&self) -> &str {
        &self.channel
    }

    /// The language of the host's own texts in it.
    pub fn language(&self) -> Language {
        self.language
    }

    /// How many stored turns there are, the current one not counted.
    pub fn turns(&self) -> usize {
        self.structure.turn_starts.partition_point(|&at| (at as usize) < self.current)
    }

    /// How many turns start in a range of messages.
    pub fn turns_in(&self, start: usize, end: usize) -> usize {
        let starts = &self.structure.turn_starts;
        starts.partition_point(|&at| (at as usize) < end) - starts.partition_point(|&at| (at as usize) < start)
    }

    /// Legal cuts below `before`, newest first.
    pub fn cuts_before(&self, before: u32) -> impl Iterator<Item = u32> + '_ {
        let cuts = &self.structure.cuts;
        cuts[..cuts.partition_point(|&at| at < before)].iter().rev().copied()
    }

    /// The sum of token counts of a range, limited to the messages that exist.
    pub fn tokens_in(&self, start: usize, end: usize) -> u64 {
        let end = end.min(self.entries.len());
        self.sums[end] - self.sums[start.min(end)]
    }

    /// The sum of token counts of the markers in a range.
    pub(crate) fn marker_tokens_in(&self, start: usize, end: usize) -> u64 {
        let before = |at: usize| self.markers.partition_point(|&marker| (marker as usize) < at);
        self.marker_sums[before(end)] - self.marker_sums[before(start.min(end))]
    }

    /// The parts of the conversation, oldest first: the messages between the seed and the first turn, each
    /// turn, what came with the new message, what the host shows only for it, and the current turn.
    ///
    /// Turns that a tool pair ties together are one part.
    pub fn parts(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        self.bounds.windows(2).map(|bounds| bounds[0]..bounds[1])
    }

    /// Whether a part consists of nothing but what stands before the new message for its sake.
    pub(crate) fn is_beside_new_message(&self, part: &Range<usize>) -> bool {
        self.new_message().is_some_and(|new| self.stored_end <= part.start && part.end <= new)
    }

    /// The start of the part that contains the new message; the number of messages when there is none.
    pub fn current_part(&self) -> usize {
        self.part_of(self.current)
    }

    /// The start of the part that contains the most recent stored turn; without stored turns as
    /// [`shown_part`](Transcript::shown_part).
    pub fn last_turn(&self) -> usize {
        match self.turns() {
            0 => self.shown_part(),
            turns => self.part_of(self.structure.turn_starts[turns - 1] as usize),
        }
    }

    /// The start of what came with the new message or is shown only for it; if there is neither, that of the current
    /// turn.
    pub fn shown_part(&self) -> usize {
        self.part_of(self.stored_end)
    }

    fn part_of(&self, at: usize) -> usize {
        self.bounds[self.bounds.partition_point(|&bound| bound <= at).saturating_sub(1)]
    }

    /// The role and origin codes of one message.
    pub fn codes(&self, index: usize) -> (u8, u8) {
        let message = &self.entries[index].message;
        (message.role.code(), message.origin.code())
    }
}

fn bounds(structure: &Structure, seed_end: usize, ends: [usize; 3], len: usize) -> Vec<usize> {
    let cuts = structure.cuts.iter().map(|&at| at as usize).filter(|&at| seed_end < at && at < ends[0]);
    let ends = ends.into_iter().filter(|&at| seed_end < at && !structure.is_straddled(at));
    let mut bounds: Vec<usize> = [seed_end].into_iter().chain(cuts).chain(ends).chain([len]).collect();
    bounds.dedup();
    bounds
}

/// The end of a range without the messages of these origins at its end.
fn end_without(entries: &[Entry], range: Range<usize>, origins: &[Origin]) -> usize {
    let is_of_them = |entry: &&Entry| origins.contains(&entry.message.origin);
    range.end - entries[range].iter().rev().take_while(is_of_them).count()
}

/// The sums of the first 0, 1, 2 … counts.
fn running_sums(counts: impl ExactSizeIterator<Item = u32>) -> Vec<u64> {
    let mut sums = Vec::with_capacity(counts.len() + 1);
    let mut sum = 0;
    sums.push(sum);
    sums.extend(counts.map(|count| {
        sum += u64::from(count);
        sum
    }));
    sums
}
