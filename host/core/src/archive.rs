//! The archive of a conversation: everything said in it before the current turn, to be searched and read.

use std::{fmt, ops::Range, sync::Arc};

use crate::message::{Message, Origin};

/// Everything recorded in one conversation before the current turn. Messages have numbers in the order in which
/// they were recorded, from 0; what still is in the window is among them.
///
/// An archive that cannot be read says so in the log and has nothing: nobody goes without an answer for it.
pub trait Archive: fmt::Debug + Send + Sync {
    /// How many messages there are.
    fn len(&self) -> u32;

    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The messages of these numbers, as far as there are such.
    fn read(&self, numbers: Range<u32>) -> Vec<Archived>;

    /// At most `max` messages that speak of what the query does, best first, ties the newer first; of those
    /// alone whose ids are `wanted`. The same messages give the same answer, and the same count of what it took.
    fn look_for(&self, query: &str, max: usize, wanted: &dyn Fn(i64) -> bool) -> Matches;

    /// The same, for who does not count.
    fn search(&self, query: &str, max: usize, wanted: &dyn Fn(i64) -> bool) -> Vec<Found> {
        self.look_for(query, max, wanted).found
    }
}

/// What a search found, and what it took to find it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matches {
    /// The best first.
    pub found: Vec<Found>,
    /// How many terms of the query were looked up.
    pub terms: u64,
    /// How many messages have each of those, all together: to say how rare a term is, all are counted that have it.
    pub documents: u64,
    /// How many places were read where one of those stands that tell messages apart.
    pub places: u64,
}

/// Where a message is that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its number in the archive.
    pub number: u32,
    /// Its id.
    pub id: i64,
}

/// A message of the archive, as it was said.
#[derive(Clone, Debug, PartialEq)]
pub struct Archived {
    /// Its id, as transcripts have it.
    pub id: i64,
    /// The message.
    pub message: Arc<Message>,
}

/// Whether a message can be found and quoted: somebody said it or a tool found it, and there is something in it.
pub fn is_quotable(message: &Message) -> bool {
    let said = matches!(
        message.origin,
        Origin::User | Origin::Assistant | Origin::MraResult | Origin::ToolResult | Origin::Attachment
    );
    said && message.blocks.iter().any(|block| block.content().is_some_and(|content| !content.trim().is_empty()))
}
