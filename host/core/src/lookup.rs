//! A decision's access to the archive, limited and cached.

use std::{
    collections::{BTreeSet, HashMap},
    mem,
    ops::Range,
};

use crate::{
    archive::{Archived, Matches},
    message::Block,
    plan::Plan,
    recall::{MAX_QUOTE_CHARS, Quote},
    text,
    transcript::Transcript,
};

/// The most searches per decision; further ones find nothing.
pub const MAX_SEARCHES: u32 = 8;

/// The most results per search.
pub const MAX_FOUND: u32 = 200;

/// The most characters of a query that are used.
const MAX_QUERY_CHARS: usize = 4_000;

/// The most messages that one column query covers, and that all column queries of a decision cover together.
const MAX_RANGE: u32 = 200;
const MAX_READ: usize = 2_000;

/// The work that a decision's archive queries caused. It is counted, not measured, so that it is the same wherever the
/// archive is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// How often the archive was asked for messages. A number that does not exist counts as well.
    pub reads: u64,
    /// Messages that were returned.
    pub messages: u64,
    /// Rows of columns that were returned.
    pub rows: u64,
    /// Bytes that were read, tool calls included.
    pub bytes: u64,
    /// Bytes that were, or may be, cut at grapheme boundaries and counted in tokens.
    pub quoted_bytes: u64,
    /// Searches.
    pub searches: u64,
    /// Messages whose lengths were read for the searches.
    pub lengths: u64,
    /// Messages in the searched archive, summed over the searches.
    pub searched: u64,
    /// Terms that were looked up.
    pub terms: u64,
    /// Messages that contain each of those terms, summed over the terms.
    pub documents: u64,
    /// Occurrences that were read of the terms that are rare enough to rank messages.
    pub places: u64,
}

/// The archive queries of one decision.
#[derive(Clone, Debug, Default)]
pub struct Lookup {
    searches: u32,
    texts_read: u32,
    found: BTreeSet<i64>,
    read: HashMap<u32, Archived>,
    /// Costs of quoting, for the messages whose cost was queried.
    costs: HashMap<u32, u32>,
    work: Work,
}

impl Lookup {
    /// Searches the archive, best match first: the numbers of matching messages that are not in the request, or will
    /// not be after the edits so far.
    pub fn search(&mut self, transcript: &Transcript, plan: &Plan, query: &str, max: u32) -> Vec<u32> {
        let Some(archive) = transcript.archive() else { return Vec::new() };
        if self.searches >= MAX_SEARCHES {
            return Vec::new();
        }
        self.searches += 1;
        self.work.searches += 1;
        self.work.searched += u64::from(archive.len());
        if self.searches == 1 {
            self.work.lengths += u64::from(archive.len());
        }
        let absent = Absent::new(transcript, plan);
        let query = text::head(query, MAX_QUERY_CHARS);
        let Matches { found, terms, documents, places } =
            archive.look_for(query, max.min(MAX_FOUND) as usize, &|id| absent.has(id));
        self.work.terms += terms;
        self.work.documents += documents;
        self.work.places += places;
        self.found.extend(found.iter().map(|found| found.id));
        found.into_iter().map(|found| found.number).collect()
    }

    /// What quoting each of these messages in full would add to a recall block; 0 where it cannot be quoted, because it
    /// is in the request or is not quotable.
    pub fn tokens(&mut self, transcript: &Transcript, plan: &Plan, start: u32, end: u32) -> Vec<u32> {
        let numbers = self.range(transcript, start, end);
        let (absent, language) = (Absent::new(transcript, plan), transcript.language());
        let costs = |number| match self.read.get(&number) {
            Some(archived) if absent.has(archived.id) => *self.costs.entry(number).or_insert_with(|| {
                Quote::of(number, archived, MAX_QUOTE_CHARS, language).map_or(0, |quote| quote.tokens)
            }),
            _ => 0,
        };
        numbers.map(costs).collect()
    }

    /// The origin code of each of these messages.
    pub fn origins(&mut self, transcript: &Transcript, start: u32, end: u32) -> Vec<u8> {
        let numbers = self.range(transcript, start, end);
        numbers.map(|number| self.read.get(&number).map_or(0, |archived| archived.message.origin.code())).collect()
    }

    /// Up to `max` characters of one message, from character `start` on.
    pub fn text(&mut self, transcript: &Transcript, number: u32, start: u32, max: u32) -> String {
        self.texts_read = self.texts_read.saturating_add(1);
        let Some(archived) = self.look_at(transcript, number) else { return String::new() };
        text::slice(&archived.message.plain_text(), start as usize, max as usize).to_owned()
    }

    /// Adds to the plan that a message is shown again, its first `max_chars` characters.
    pub fn recall(&mut self, transcript: &Transcript, plan: &mut Plan, number: u32, max_chars: u32) {
        let archived = self.look_at(transcript, number);
        let quote = archived.and_then(|archived| Quote::of(number, &archived, max_chars, transcript.language()));
        plan.recall(number, quote);
    }

    /// How many searches were made.
    pub fn searches(&self) -> u32 {
        self.searches
    }

    /// How often the text of an archived message was read.
    pub fn texts_read(&self) -> u32 {
        self.texts_read
    }

    /// The ids of all messages found, ascending.
    pub fn found(&self) -> impl Iterator<Item = i64> + '_ {
        self.found.iter().copied()
    }

    /// The work since this was last called; resets the counts.
    pub fn take_work(&mut self) -> Work {
        mem::take(&mut self.work)
    }

    /// Limits the range to what exists and is allowed, and fetches it.
    fn range(&mut self, transcript: &Transcript, start: u32, end: u32) -> Range<u32> {
        let end = end.min(transcript.archived()).min(start.saturating_add(MAX_RANGE));
        let numbers = start.min(end)..end;
        self.work.rows += numbers.len() as u64;
        let missing = |number: &u32| !self.read.contains_key(number);
        if let (Some(first), Some(last)) = (numbers.clone().find(missing), numbers.clone().rev().find(missing)) {
            let has_room = self.read.len() + ((last - first) as usize) < MAX_READ;
            let fetched = self.fetch(transcript, first..last + 1, has_room);
            self.read.extend(fetched);
        }
        numbers
    }

    /// Fetches the message with this number to be read in full.
    fn look_at(&mut self, transcript: &Transcript, number: u32) -> Option<Archived> {
        // `u32::MAX` is no valid number, and the range below must not overflow; no message has `u32::MAX - 1` either.
        let number = number.min(u32::MAX - 1);
        let cached = self.read.get(&number).cloned();
        let archived = cached.or_else(|| {
            let (_, fetched) = self.fetch(transcript, number..number + 1, true).pop()?;
            if self.read.len() < MAX_READ {
                self.read.insert(number, fetched.clone());
            }
            Some(fetched)
        })?;
        self.work.add(&archived);
        Some(archived)
    }

    /// Fetches these messages if they are `allowed`. It counts as a read whether there are any or not.
    fn fetch(&mut self, transcript: &Transcript, numbers: Range<u32>, allowed: bool) -> Vec<(u32, Archived)> {
        self.work.reads += 1;
        let Some(archive) = transcript.archive().filter(|archive| allowed && numbers.start < archive.len()) else {
            return Vec::new();
        };
        let fetched = archive.read(numbers);
        self.work.messages += fetched.len() as u64;
        fetched.iter().for_each(|(_, archived)| self.work.add(archived));
        fetched
    }
}

impl Work {
    /// Caches a message and counts the work: its length for fetching it, at most the quotable part for quoting it.
    fn add(&mut self, archived: &Archived) {
        let blocks = &archived.message.blocks;
        let bytes = blocks.iter().filter_map(Block::content).map(str::len).sum::<usize>() as u64;
        self.bytes += blocks.iter().map(Block::bytes).sum::<u64>();
        self.quoted_bytes += bytes.min(4 * u64::from(MAX_QUOTE_CHARS));
    }
}

/// The messages that the request will not contain after the edits so far.
struct Absent<'a> {
    transcript: &'a Transcript,
    /// Removed ranges, ascending and disjoint.
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

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    };

    use super::*;
    use crate::{archive::Archive, message::Message};

    /// An archive of two messages that counts how often it is read.
    #[derive(Debug, Default)]
    struct Asked(AtomicU64);

    impl Archive for Asked {
        fn len(&self) -> u32 {
            2
        }

        fn read(&self, numbers: Range<u32>) -> Vec<(u32, Archived)> {
            self.0.fetch_add(1, Ordering::Relaxed);
            let message = Arc::new(Message::user("budget"));
            let archived = |number| (number, Archived { id: i64::from(number), message: Arc::clone(&message) });
            (numbers.start..numbers.end.min(2)).map(archived).collect()
        }

        fn look_for(&self, _: &str, _: usize, _: &dyn Fn(i64) -> bool) -> Matches {
            Matches { found: vec![], terms: 3, documents: 5, places: 7 }
        }
    }

    /// Regression: a number that does not exist was almost free and was read from the store each time.
    #[test]
    fn a_number_that_nobody_has_costs_a_read_and_makes_none() {
        let asked = Arc::new(Asked::default());
        let transcript = Transcript::of_messages([Message::user("new")]).with_archive(asked.clone());
        let mut lookup = Lookup::default();
        let mut plan = Plan::new();
        for number in [2, 3, u32::MAX] {
            assert_eq!(lookup.text(&transcript, number, 0, 9), "");
            lookup.recall(&transcript, &mut plan, number, 9);
            assert_eq!(lookup.take_work(), Work { reads: 2, ..Work::default() }, "{number}");
        }
        assert_eq!(asked.0.load(Ordering::Relaxed), 0);
        assert_eq!(lookup.text(&transcript, 1, 0, 9), "budget");
        let work = lookup.take_work();
        assert_eq!((work.reads, work.messages, asked.0.load(Ordering::Relaxed)), (1, 1, 1));
    }

    /// An archive of so many messages.
    #[derive(Debug)]
    struct Many(u32);

    impl Archive for Many {
        fn len(&self) -> u32 {
            self.0
        }

        fn read(&self, numbers: Range<u32>) -> Vec<(u32, Archived)> {
            let archived = |number| Archived { id: 1_000 + i64::from(number), message: Arc::new(Message::user("old")) };
            (numbers.start..numbers.end.min(self.0)).map(|number| (number, archived(number))).collect()
        }

        fn look_for(&self, _: &str, _: usize, _: &dyn Fn(i64) -> bool) -> Matches {
            Matches::default()
        }
    }

    /// Regression: a message that the columns had not covered could then be neither read nor recalled, and a recall of
    /// it refused the plan.
    #[test]
    fn whatever_columns_were_read_a_single_message_can_be_read_and_recalled() {
        let transcript = Transcript::of_messages([Message::user("new")]).with_archive(Arc::new(Many(3_000)));
        let (mut lookup, mut plan) = (Lookup::default(), Plan::new());
        let given: Vec<u32> =
            (0..3_000).step_by(200).flat_map(|start| lookup.tokens(&transcript, &plan, start, start + 200)).collect();
        assert_eq!(given.iter().filter(|&&tokens| tokens > 0).count(), MAX_READ);
        assert_eq!(lookup.text(&transcript, 2_999, 0, 9), "old");
        lookup.recall(&transcript, &mut plan, 2_998, 9);
        assert!(plan.recalls()[0].1.is_some());
    }

    #[test]
    fn what_a_search_takes_is_counted_and_the_lengths_once() {
        let transcript = Transcript::of_messages([Message::user("new")]).with_archive(Arc::new(Asked::default()));
        let (mut lookup, plan) = (Lookup::default(), Plan::new());
        lookup.search(&transcript, &plan, "budget", 9);
        let first = Work { searches: 1, lengths: 2, searched: 2, terms: 3, documents: 5, places: 7, ..Work::default() };
        assert_eq!(lookup.take_work(), first);
        lookup.search(&transcript, &plan, "budget", 9);
        assert_eq!(lookup.take_work(), Work { lengths: 0, ..first });
        (2..9).for_each(|_| drop(lookup.search(&transcript, &plan, "budget", 9)));
        assert_eq!(lookup.take_work().searches, u64::from(MAX_SEARCHES) - 2);
    }
}
