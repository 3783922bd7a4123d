//! The archive of a conversation: every message recorded before the current turn, to be searched and read.

use std::{fmt, ops::Range, sync::Arc};

use crate::message::{Message, Origin};

/// Everything recorded in one conversation before the current turn. Messages are numbered from 0 in the order in which
/// they were recorded; those still in the window are included.
///
/// An archive that cannot be read logs the error and behaves as empty, so that the turn is still answered.
pub trait Archive: fmt::Debug + Send + Sync {
    /// The number after the last message's. Numbers may be missing before it: a turn that begins again leaves those of
    /// its earlier attempt unused.
    fn len(&self) -> u32;

    /// Whether the archive is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The messages with these numbers, as far as they exist, each with its number, ascending.
    fn read(&self, numbers: Range<u32>) -> Vec<(u32, Archived)>;

    /// At most `max` messages that match the query and whose ids are `wanted`, best match first; of equal matches, the
    /// newer first. Deterministic: the same messages give the same result and the same counts.
    fn look_for(&self, query: &str, max: usize, wanted: &dyn Fn(i64) -> bool) -> Matches;

    /// As [`look_for`](Archive::look_for), without the counts.
    fn search(&self, query: &str, max: usize, wanted: &dyn Fn(i64) -> bool) -> Vec<Found> {
        self.look_for(query, max, wanted).found
    }
}

/// The result of a search, and how much work it took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matches {
    /// The messages found, best match first.
    pub found: Vec<Found>,
    /// How many terms of the query were looked up.
    pub terms: u64,
    /// How many messages contain each of those terms, summed over the terms: all of them are counted to determine how
    /// rare a term is.
    pub documents: u64,
    /// How many occurrences were read of the terms that are rare enough to rank messages.
    pub places: u64,
}

/// Identifies a message that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its number in the archive.
    pub number: u32,
    /// Its id.
    pub id: i64,
}

/// A message of the archive, as it was recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Archived {
    /// Its id, as in transcripts.
    pub id: i64,
    /// The message.
    pub message: Arc<Message>,
}

/// Whether a message can be found and quoted: a person, the model or a tool produced it, and it is not blank.
pub fn is_quotable(message: &Message) -> bool {
    let said = matches!(
        message.origin,
        Origin::User | Origin::Assistant | Origin::MraResult | Origin::ToolResult | Origin::Attachment
    );
    said && message.blocks.iter().any(|block| block.content().is_some_and(|content| !content.trim().is_empty()))
}
