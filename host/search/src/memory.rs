//! The archive of one conversation in memory: for offline use, and for the tests of policy authors.

use std::{
    collections::HashMap,
    convert::Infallible,
    fmt,
    ops::Range,
    sync::{Mutex, MutexGuard, PoisonError},
};

use pmk_core::{Archive, Archived, Entry, Found, Matches};

use crate::{
    frequencies::Frequencies,
    query::Query,
    ranking::{Posting, Ranking},
    terms::terms_of_message,
};

/// Everything recorded in one conversation, oldest first. Record each message once, with its id in transcripts, when
/// the turn is over:
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
/// Recording costs nothing until the first search, which indexes the new messages only.
#[derive(Default)]
pub struct MemoryArchive {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    messages: Vec<Archived>,
    /// The number of terms of each indexed message; later messages are not indexed yet.
    lengths: Vec<u32>,
    total_length: u64,
    /// The number of messages that have terms.
    texts: u64,
    /// For each term, the messages that contain it, and how often.
    postings: HashMap<String, Vec<(u32, u32)>>,
}

impl MemoryArchive {
    /// Creates an archive of these entries.
    pub fn of<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Self {
        let archive = MemoryArchive::default();
        entries.into_iter().for_each(|entry| archive.record(entry.clone()));
        archive
    }

    /// Records a message as it was originally; what replaces it in the window does not count.
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

    fn read(&self, numbers: Range<u32>) -> Vec<(u32, Archived)> {
        let inner = self.lock();
        let end = (numbers.end as usize).min(inner.messages.len());
        let messages = &inner.messages[(numbers.start as usize).min(end)..end];
        (numbers.start..).zip(messages.iter().cloned()).collect()
    }

    fn look_for(&self, query: &str, max: usize, wanted: &dyn Fn(i64) -> bool) -> Matches {
        let mut inner = self.lock();
        inner.index();
        let query = Query::new(query);
        let (ranked, matches) = inner.ranked(&query);
        let found = ranked.into_iter().map(|number| Found { number, id: inner.messages[number as usize].id });
        let found = found.filter(|found| wanted(found.id)).take(max).collect();
        Matches { found, ..matches }
    }
}

impl Inner {
    /// Indexes new messages.
    fn index(&mut self) {
        for number in self.lengths.len()..self.messages.len() {
            let terms = terms_of_message(&self.messages[number].message);
            let length = u32::try_from(terms.len()).unwrap_or(u32::MAX);
            self.lengths.push(length);
            self.total_length += u64::from(length);
            self.texts += u64::from(length > 0);
            let number = u32::try_from(number).unwrap_or(u32::MAX);
            for term in terms {
                let postings = self.postings.entry(term).or_default();
                match postings.last_mut() {
                    Some((last, count)) if *last == number => *count += 1,
                    _ => postings.push((number, 1)),
                }
            }
        }
    }

    /// The messages that contain a distinguishing term of the question, best first, of equals the newer first, and the
    /// work.
    fn ranked(&self, query: &Query) -> (Vec<u32>, Matches) {
        let postings = |term: &str| self.postings.get(term).map_or(&[][..], Vec::as_slice);
        let Ok(frequencies) =
            Frequencies::count(query, self.texts, |term| Ok::<_, Infallible>(postings(term).len() as u64));
        let mut ranking = Ranking::of(self.texts, self.total_length);
        for term in frequencies.telling_terms() {
            let posting = |&(number, count): &(u32, u32)| {
                let length = self.lengths[number as usize];
                Posting { id: i64::from(number), count, length }
            };
            ranking.add(&postings(term).iter().map(posting).collect::<Vec<_>>());
        }
        let took = ranking.took(query, &frequencies);
        (ranking.best_first().into_iter().filter_map(|number| u32::try_from(number).ok()).collect(), took)
    }
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
        assert_eq!((archive.len(), archive.read(1..9).len(), archive.read(1..2)[0].1.id), (3, 2, 99));
    }
}
