//! What a policy sees: the request as it would be sent if nothing were done, with the columns it may
//! read.

use std::sync::Arc;

use crate::{
    marker,
    message::{self, Message, Origin, Role},
    structure::{Structure, starts_turn},
    tokens,
};

/// One message of the live window, or one that the host adds for this call.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Where the host keeps the original; shown in notices as `m7`.
    pub id: i64,
    /// The message as the model would see it.
    pub message: Arc<Message>,
    /// The message as it was stored, when `message` stands in its place.
    pub original: Option<Arc<Message>>,
    /// The stored estimate of `message`.
    pub tokens: u32,
    /// The stored length of `message` in characters.
    pub chars: u32,
}

impl Entry {
    /// An entry whose counts are made on the spot.
    pub fn new(id: i64, message: Message) -> Self {
        let tokens = tokens::message(&message);
        let chars = u32::try_from(message::chars(&message.blocks)).unwrap_or(u32::MAX);
        Entry { id, message: Arc::new(message), original: None, tokens, chars }
    }

    /// The message before anything was done to it.
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

/// The bits of [`Transcript::flags`], as the contract numbers them.
pub mod flag {
    pub const STARTS_TURN: u8 = 1;
    pub const CUT: u8 = 2;
    pub const TOOL_USE: u8 = 4;
    pub const TOOL_RESULT: u8 = 8;
    pub const REPLACED: u8 = 16;
    pub const STAYS: u8 = 32;
}

/// The messages of one request, oldest first, and what is known about them.
///
/// Every tool block has its partner and the first message is a user's:
/// [`repair`](crate::history::repair) sees to that where a history comes from outside.
#[derive(Clone, Debug)]
pub struct Transcript {
    entries: Vec<Entry>,
    tokens: Vec<u32>,
    flags: Vec<u8>,
    structure: Structure,
    total_tokens: u64,
    current: usize,
    seed_end: usize,
    markers: Vec<usize>,
    dropped_turns: u32,
    channel: String,
}

impl Transcript {
    /// Builds the view. `current` is where the current turn begins: the index of the new message, or
    /// the number of entries when there is none.
    pub fn new(entries: Vec<Entry>, current: usize, channel: impl Into<String>) -> Self {
        let structure = Structure::of(&entries);
        let current = current.min(entries.len());
        let tokens: Vec<u32> = entries.iter().map(|entry| entry.tokens).collect();
        let total_tokens = tokens.iter().map(|&t| u64::from(t)).sum();
        let mut flags = vec![0u8; entries.len()];
        for &at in &structure.turn_starts {
            flags[at as usize] |= flag::STARTS_TURN;
        }
        for &at in &structure.cuts {
            flags[at as usize] |= flag::CUT;
        }
        let mut markers = Vec::new();
        let mut dropped_turns = 0u32;
        for (index, entry) in entries.iter().enumerate() {
            for block in &entry.message.blocks {
                match block {
                    message::Block::ToolUse { .. } => flags[index] |= flag::TOOL_USE,
                    message::Block::ToolResult { .. } => flags[index] |= flag::TOOL_RESULT,
                    message::Block::Text { .. } => {}
                }
            }
            if entry.original.is_some() {
                flags[index] |= flag::REPLACED;
            }
            if index >= current {
                flags[index] |= flag::STAYS;
            }
            if entry.message.origin == Origin::Marker {
                markers.push(index);
                dropped_turns = dropped_turns.saturating_add(marker::parse(&entry.message.plain_text()).unwrap_or(0));
            }
        }
        let seed_end = entries
            .iter()
            .take(current)
            .zip([Origin::Seed, Origin::SeedAck])
            .take_while(|(entry, wanted)| entry.message.origin == *wanted)
            .count();
        Transcript {
            entries,
            tokens,
            flags,
            structure,
            total_tokens,
            current,
            seed_end,
            markers,
            dropped_turns,
            channel: channel.into(),
        }
    }

    /// Says how many turns earlier prunes have dropped, where the marker's own words do not tell.
    pub fn with_dropped_turns(mut self, turns: u32) -> Self {
        self.dropped_turns = turns;
        self
    }

    /// The view of a plain list of messages; a last user message that starts a turn is the new one.
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

    /// Whether there is no message at all.
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
        &self.flags
    }

    /// Turns, cuts and tool groups.
    pub fn structure(&self) -> &Structure {
        &self.structure
    }

    /// The sum of all token counts.
    pub fn total_tokens(&self) -> u64 {
        self.total_tokens
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

    /// Indexes of markers; more than one only in an imported history.
    pub fn markers(&self) -> &[usize] {
        &self.markers
    }

    /// Whether the message at this index is a marker.
    pub fn is_marker(&self, index: usize) -> bool {
        self.entries[index].message.origin == Origin::Marker
    }

    /// How many turns earlier prunes have dropped.
    pub fn dropped_turns(&self) -> u32 {
        self.dropped_turns
    }

    /// The channel the new message came from.
    pub fn channel(&self) -> &str {
        &self.channel
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

    /// The sum of token counts of a range, cut to what is there.
    pub fn tokens_in(&self, start: usize, end: usize) -> u64 {
        let end = end.min(self.tokens.len());
        self.tokens[start.min(end)..end].iter().map(|&t| u64::from(t)).sum()
    }

    /// The role and origin codes of one message.
    pub fn codes(&self, index: usize) -> (u8, u8) {
        let message = &self.entries[index].message;
        (message.role.code(), message.origin.code())
    }

    /// Whether the request would start with a user message as things stand.
    pub fn starts_with_user(&self) -> bool {
        self.entries.first().is_none_or(|entry| entry.message.role == Role::User)
    }
}
