//! The archive of one conversation in memory: for offline work, and for tests at a policy author's desk.

use std::{
    collections::HashMap,
    convert::Infallible,
    fmt,
    ops::Range,
    sync::{Mutex, MutexGuard, PoisonError},
};

use pmk_core::{Archive, Archived, Entry, Found};

use crate::{frequencies::Frequencies, query::Query, terms::terms_of_message};

/// How soon repetition of a term stops counting, and how much a text's length counts: BM25's usual values, which
/// SQLite uses too.
const K1: f64 = 1.2;
const B: f64 = 0.75;

/// Everything recorded in one conversation, oldest first. Record each message once, with the id that it has in
/// transcripts, when the turn is over:
///
/// ```
/// use std::sync::Arc;
/// use pmk_core::{Archive, Entry, Message, Transcript};
/// use pmk_search::MemoryArchive;
///
/// let archive = Arc::new(MemoryArchive::default());
/// archive.record(Entry::new(1, Message::user("The launch is on Friday.")));
/// archive.record(Entry::new(2, Message::assistant("Noted.")));
/// assert_eq!(archive.search("when do we launch?", 5, &|_| true)[0].id, 1);
///
/// // Of the two only the second is still in the window; a policy may have the first shown again.
/// let window = vec![Entry::new(2, Message::assistant("Noted.")), Entry::new(3, Message::user("when is it?"))];
/// let transcript = Transcript::new(window, 1, "").with_archive(archive);
/// assert!(transcript.archive().is_some());
/// ```
///
/// What is recorded costs nothing until somebody searches; then what is new is indexed, and that alone.
#[derive(Default)]
pub struct MemoryArchive {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    messages: Vec<Archived>,
    /// How many terms each message that is indexed has; those after it are not indexed yet.
    lengths: Vec<u32>,
    total_length: u64,
    /// How many messages have terms.
    texts: u64,
    postings: HashMap<String, Vec<Posting>>,
}

/// A message that has a term, and how often.
#[derive(Clone, Copy)]
struct Posting {
    number: u32,
    count: u32,
}

impl MemoryArchive {
    /// An archive that holds these already.
    pub fn of<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Self {
        let archive = MemoryArchive::default();
        entries.into_iter().for_each(|entry| archive.record(entry.clone()));
        archive
    }

    /// Records a message, as it was said: what stands in its place does not count.
    pub fn record(&self, entry: Entry) {
        let message = entry.original.unwrap_or(entry.message);
        self.lock().messages.push(Archived { id: entry.id, message });
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for MemoryArchive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryArchive").field("messages", &self.lock().messages.len()).finish_non_exhaustive()
    }
}

impl Archive for MemoryArchive {
    fn len(&self) -> u32 {
        u32::try_from(self.lock().messages.len()).unwrap_or(u32::MAX)
    }

    fn read(&self, numbers: Range<u32>) -> Vec<Archived> {
        let inner = self.lock();
        let end = (numbers.end as usize).min(inner.messages.len());
        inner.messages[(numbers.start as usize).min(end)..end].to_vec()
    }

    fn search(&self, query: &str, max: usize, wanted: &dyn Fn(i64) -> bool) -> Vec<Found> {
        let mut inner = self.lock();
        inner.index();
        let ranked = inner.ranked(&Query::new(query)).into_iter();
        let found = ranked.map(|number| Found { number, id: inner.messages[number as usize].id });
        found.filter(|found| wanted(found.id)).take(max).collect()
    }
}

impl Inner {
    /// Indexes what is new.
    fn index(&mut self) {
        for number in self.lengths.len()..self.messages.len() {
            let terms = terms_of_message(&self.messages[number].message);
            // One more than it has: the store counts its texts by a term that is in each.
            let length = if terms.is_empty() { 0 } else { u32::try_from(terms.len()).unwrap_or(u32::MAX - 1) + 1 };
            self.lengths.push(length);
            self.total_length += u64::from(length);
            self.texts += u64::from(length > 0);
            let number = u32::try_from(number).unwrap_or(u32::MAX);
            for term in terms {
                let postings = self.postings.entry(term).or_default();
                match postings.last_mut() {
                    Some(posting) if posting.number == number => posting.count += 1,
                    _ => postings.push(Posting { number, count: 1 }),
                }
            }
        }
    }

    /// The messages that have a telling term of the question, best first, ties the newer first.
    fn ranked(&self, query: &Query) -> Vec<u32> {
        let postings = |term: &str| self.postings.get(term).map_or(&[][..], Vec::as_slice);
        let Ok(frequencies) =
            Frequencies::count(query, self.texts, |term| Ok::<_, Infallible>(postings(term).len() as u64));
        let average = self.total_length as f64 / self.texts.max(1) as f64;
        let mut scores: HashMap<u32, f64> = HashMap::new();
        for term in frequencies.telling_terms() {
            let rarity = rarity(frequencies.documents(term), self.texts);
            for Posting { number, count } in postings(term) {
                let (count, length) = (f64::from(*count), f64::from(self.lengths[*number as usize]));
                let score = rarity * count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * length / average));
                *scores.entry(*number).or_default() += score;
            }
        }
        let mut ranked: Vec<(u32, f64)> = scores.into_iter().collect();
        ranked.sort_unstable_by(|(a, x), (b, y)| y.total_cmp(x).then(b.cmp(a)));
        ranked.into_iter().map(|(number, _)| number).collect()
    }
}

/// BM25's inverse document frequency, never negative.
fn rarity(documents: u64, total: u64) -> f64 {
    let (documents, total) = (documents as f64, total as f64);
    // The logarithm may differ in its last digit from machine to machine; what is ranked by it may not.
    let rarity = ((total - documents + 0.5) / (documents + 0.5)).ln();
    (rarity * 1_048_576.0).round().max(1.0) / 1_048_576.0
}

#[cfg(test)]
mod tests {
    use pmk_core::{Message, Origin, Role};

    use super::*;

    fn archive(texts: &[&str]) -> MemoryArchive {
        let entries: Vec<Entry> = (10..).zip(texts).map(|(id, text)| Entry::new(id, Message::user(*text))).collect();
        MemoryArchive::of(&entries)
    }

    fn found(archive: &MemoryArchive, query: &str, max: usize, wanted: &dyn Fn(i64) -> bool) -> Vec<u32> {
        archive.search(query, max, wanted).into_iter().map(|found| found.number).collect()
    }

    #[test]
    fn the_rarer_word_wins_and_of_equals_the_newer() {
        let archive = archive(&["budget erp", "budget", "margin budget", "budget", "lunch"]);
        assert_eq!(found(&archive, "the margin of the budget", 3, &|_| true), [2, 3, 1]);
        assert_eq!(found(&archive, "什麼", 3, &|_| true), Vec::<u32>::new());
    }

    #[test]
    fn what_is_not_wanted_makes_room_for_the_next() {
        let archive = archive(&["預算", "預算", "預算"]);
        assert_eq!(found(&archive, "預算", 1, &|id| id < 12), [1]);
    }

    #[test]
    fn what_was_recorded_since_is_found_at_once() {
        let archive = archive(&["預算會議"]);
        assert_eq!(found(&archive, "預算", 9, &|_| true), [0]);
        archive.record(Entry::new(99, Message::assistant("預算改到週五")));
        archive.record(Entry::new(100, Message::text(Role::User, Origin::Summary, "預算")));
        assert_eq!(archive.search("預算", 9, &|_| true).len(), 2, "a summary is nobody's words");
        assert_eq!((archive.len(), archive.read(1..9).len(), archive.read(1..2)[0].id), (3, 2, 99));
    }
}
