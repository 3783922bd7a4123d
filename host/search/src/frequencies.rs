//! How common the terms of a question are, and which of them tell texts apart.

use std::collections::HashMap;

use crate::query::Query;

/// In a collection of at least this many texts, terms that are in too many of them are not asked for.
const MIN_COLLECTION_WITH_COMMON_TERMS: u64 = 1_000;

/// A term in more than one of so many texts is common. Reading and ranking its occurrences costs
/// most of a query's time and changes the order of what is found hardly at all.
const COMMON_ONE_IN: u64 = 20;

/// The rarest terms of a question that are asked for; the rest adds time, not meaning.
const MAX_TERMS: usize = 16;

/// How common the terms of one question are in one group of texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frequencies {
    documents: HashMap<String, u64>,
    total: u64,
}

impl Frequencies {
    /// Counts each term of a question once; `total` is how many texts there are.
    ///
    /// # Errors
    /// The first that `documents` has.
    pub fn count<E>(query: &Query, total: u64, documents: impl FnMut(&str) -> Result<u64, E>) -> Result<Self, E> {
        Self::of_terms(query.units().iter().flat_map(|unit| unit.terms()), total, documents)
    }

    /// The same for terms, wherever they are from.
    ///
    /// # Errors
    /// The first that `documents` has.
    pub fn of_terms<'a, E>(
        terms: impl Iterator<Item = &'a str>,
        total: u64,
        mut documents: impl FnMut(&str) -> Result<u64, E>,
    ) -> Result<Self, E> {
        let mut counted = HashMap::new();
        for term in terms {
            if !counted.contains_key(term) {
                counted.insert(term.to_owned(), documents(term)?);
            }
        }
        Ok(Frequencies { documents: counted, total })
    }

    /// In how many texts a term of the question occurs.
    pub fn documents(&self, term: &str) -> u64 {
        self.documents.get(term).copied().unwrap_or_default()
    }

    /// In how many texts the terms occur, all together: what was counted.
    pub(crate) fn counted(&self) -> u64 {
        self.documents.values().sum()
    }

    /// How many texts there are.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// The terms that tell texts apart, rarest first.
    pub fn telling_terms(&self) -> Vec<&str> {
        let mut known: Vec<(u64, &str)> = self
            .documents
            .iter()
            .filter(|(_, documents)| **documents > 0)
            .map(|(term, documents)| (*documents, term.as_str()))
            .collect();
        known.sort_unstable();
        if self.total >= MIN_COLLECTION_WITH_COMMON_TERMS {
            let telling = known.partition_point(|(documents, _)| documents * COMMON_ONE_IN <= self.total);
            known.truncate(telling.max(1));
        }
        known.truncate(MAX_TERMS);
        known.into_iter().map(|(_, term)| term).collect()
    }
}
