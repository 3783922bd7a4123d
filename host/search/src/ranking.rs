//! BM25 over the texts of one collection only: other collections have no influence.

use std::collections::HashMap;

use pmk_core::Matches;

use crate::{frequencies::Frequencies, query::Query};

/// How quickly repeating a term stops counting, and how much a text's length counts: the usual values of BM25.
const K1: f64 = 1.2;
const B: f64 = 0.75;

/// A text that contains a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Posting {
    /// The text's id.
    pub id: i64,
    /// How often it contains the term.
    pub count: u32,
    /// How many terms it has.
    pub length: u32,
}

/// The scores of the texts that contain terms of a question. If the terms are added in the same order, the same texts
/// get the same scores, wherever they are stored.
#[derive(Clone, Debug)]
pub struct Ranking {
    texts: f64,
    average: f64,
    places: u64,
    scores: HashMap<i64, f64>,
}

impl Ranking {
    /// Creates a ranking for this many texts with this many terms in total.
    pub fn of(texts: u64, length: u64) -> Self {
        let average = length as f64 / texts.max(1) as f64;
        Ranking { texts: texts as f64, average: average.max(1.0), places: 0, scores: HashMap::new() }
    }

    /// Adds a term, with the texts that contain it.
    pub fn add(&mut self, postings: &[Posting]) {
        let rarity = self.rarity(postings.len() as f64);
        for Posting { id, count, length } in postings {
            self.places += u64::from(*count);
            let (count, length) = (f64::from(*count), f64::from(*length));
            let score = rarity * count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * length / self.average));
            *self.scores.entry(*id).or_default() += score;
        }
    }

    /// The work of a search whose terms were looked up and added, wherever the texts are stored. `found` is empty.
    pub fn took(&self, query: &Query, frequencies: &Frequencies) -> Matches {
        Matches { found: vec![], terms: query.terms() as u64, documents: frequencies.counted(), places: self.places }
    }

    /// The texts, best first; of equals the one with the larger id first.
    pub fn best_first(self) -> Vec<i64> {
        let mut ranked: Vec<(i64, f64)> = self.scores.into_iter().collect();
        ranked.sort_unstable_by(|(a, x), (b, y)| y.total_cmp(x).then(b.cmp(a)));
        ranked.into_iter().map(|(id, _)| id).collect()
    }

    /// The inverse document frequency, never negative.
    fn rarity(&self, documents: f64) -> f64 {
        // The logarithm may differ in its last digit between machines; the ranking must not.
        let rarity = ((self.texts - documents + 0.5) / (documents + 0.5)).ln();
        (rarity * 1_048_576.0).round().max(1.0) / 1_048_576.0
    }
}
