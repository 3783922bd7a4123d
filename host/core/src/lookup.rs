//! One decision's use of the archive: bounded, and remembered.

use std::{
    collections::{BTreeSet, HashMap},
    ops::Range,
};

use crate::{
    archive::Archived,
    message::Block,
    plan::Plan,
    recall::{MAX_QUOTE_CHARS, Quote},
    text,
    transcript::Transcript,
};

/// Searches that a decision may make; a further one finds nothing.
pub const MAX_SEARCHES: u32 = 8;

/// What one search finds at most.
pub const MAX_FOUND: u32 = 200;

/// The most characters of a query that are looked at.
const MAX_QUERY_CHARS: usize = 4_000;

/// What one look at the columns covers at most, in messages, and all looks of a decision together.
const MAX_RANGE: u32 = 200;
const MAX_READ: usize = 2_000;

/// What it takes to cut a byte at graphemes and count it in tokens.
const QUOTED_BYTE: u64 = 20;

/// What a decision has asked of the archive.
#[derive(Clone, Debug, Default)]
pub struct Lookup {
    searches: u32,
    texts_read: u32,
    found: BTreeSet<i64>,
    read: HashMap<u32, Archived>,
    /// What quoting those costs whose cost was asked for.
    costs: HashMap<u32, u32>,
    work: u64,
}

impl Lookup {
    /// The numbers of archived messages that speak of what the query does, best first: what is not in the
    /// request, or will not be by the edits so far.
    pub fn search(&mut self, transcript: &Transcript, plan: &Plan, query: &str, max: u32) -> Vec<u32> {
        let Some(archive) = transcript.archive() else { return Vec::new() };
        if self.searches >= MAX_SEARCHES {
            return Vec::new();
        }
        self.searches += 1;
        let absent = Absent::new(transcript, plan);
        let query = text::head(query, MAX_QUERY_CHARS);
        let found = archive.search(query, max.min(MAX_FOUND) as usize, &|id| absent.has(id));
        self.found.extend(found.iter().map(|found| found.id));
        found.into_iter().map(|found| found.number).collect()
    }

    /// What quoting each of these messages whole would add to a block; 0 where it cannot be quoted, because it is in
    /// the request or nothing that was said.
    pub fn tokens(&mut self, transcript: &Transcript, plan: &Plan, start: u32, end: u32) -> Vec<u32> {
        let numbers = self.range(transcript, start, end);
        let absent = Absent::new(transcript, plan);
        let costs = |number| match self.read.get(&number) {
            Some(archived) if absent.has(archived.id) => *self
                .costs
                .entry(number)
                .or_insert_with(|| Quote::of(number, archived, MAX_QUOTE_CHARS).map_or(0, |quote| quote.tokens)),
            _ => 0,
        };
        numbers.map(costs).collect()
    }

    /// The origin code of each of these messages.
    pub fn origins(&mut self, transcript: &Transcript, start: u32, end: u32) -> Vec<u8> {
        let numbers = self.range(transcript, start, end);
        numbers.map(|number| self.read.get(&number).map_or(0, |archived| archived.message.origin.code())).collect()
    }

    /// Up to `max` characters of one message from character `start` on.
    pub fn text(&mut self, transcript: &Transcript, number: u32, start: u32, max: u32) -> String {
        self.texts_read = self.texts_read.saturating_add(1);
        let Some(archived) = self.look_at(transcript, number) else { return String::new() };
        text::slice(&archived.message.plain_text(), start as usize, max as usize).to_owned()
    }

    /// Notes in the plan that a message is to be shown again, its first `max_chars` characters.
    pub fn recall(&mut self, transcript: &Transcript, plan: &mut Plan, number: u32, max_chars: u32) {
        let archived = self.look_at(transcript, number);
        let quote = archived.and_then(|archived| Quote::of(number, archived, max_chars));
        plan.recall(number, quote);
    }

    /// How many searches there were.
    pub fn searches(&self) -> u32 {
        self.searches
    }

    /// How often the text of an archived message was read.
    pub fn texts_read(&self) -> u32 {
        self.texts_read
    }

    /// The ids of everything that was found, ascending.
    pub fn found(&self) -> impl Iterator<Item = i64> + '_ {
        self.found.iter().copied()
    }

    /// What all this took, about, in nanoseconds; counted, not measured, so that it is the same everywhere.
    pub fn work(&self) -> u64 {
        self.work
    }

    /// The range cut to what is there and allowed, and fetched.
    fn range(&mut self, transcript: &Transcript, start: u32, end: u32) -> Range<u32> {
        let end = end.min(transcript.archived()).min(start.saturating_add(MAX_RANGE));
        let numbers = start.min(end)..end;
        self.fetch(transcript, numbers.clone());
        numbers
    }

    /// The message of that number, about to be read as a whole.
    fn look_at(&mut self, transcript: &Transcript, number: u32) -> Option<&Archived> {
        self.fetch(transcript, number..number.saturating_add(1));
        let archived = self.read.get(&number)?;
        self.work = self.work.saturating_add(work(archived));
        Some(archived)
    }

    /// Brings what of these is not here yet.
    fn fetch(&mut self, transcript: &Transcript, numbers: Range<u32>) {
        let Some(archive) = transcript.archive() else { return };
        let missing = |number: &u32| !self.read.contains_key(number);
        let (Some(first), Some(last)) = (numbers.clone().find(missing), numbers.rev().find(missing)) else { return };
        if self.read.len() + (last - first) as usize >= MAX_READ {
            return;
        }
        for (number, archived) in (first..).zip(archive.read(first..last.saturating_add(1))) {
            self.work = self.work.saturating_add(work(&archived));
            self.read.insert(number, archived);
        }
    }
}

/// Bringing a message takes its length, quoting it more of what is quoted at most.
fn work(archived: &Archived) -> u64 {
    let bytes = archived.message.blocks.iter().filter_map(Block::content).map(str::len).sum::<usize>() as u64;
    bytes + QUOTED_BYTE * bytes.min(4 * u64::from(MAX_QUOTE_CHARS))
}

/// What the request will not hold by the edits so far.
struct Absent<'a> {
    transcript: &'a Transcript,
    /// Ranges that go, ascending and apart.
    removed: Vec<Range<u32>>,
}

impl<'a> Absent<'a> {
    fn new(transcript: &'a Transcript, plan: &Plan) -> Self {
        Absent { transcript, removed: plan.removed() }
    }

    fn has(&self, id: i64) -> bool {
        let Some(index) = self.transcript.index_of(id) else { return true };
        let before = self.removed.partition_point(|range| range.start <= index);
        before > 0 && index < self.removed[before - 1].end
    }
}
