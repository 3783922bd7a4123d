//! How common the terms of a question are, and which of them distinguish texts.

use std::collections::HashMap;

use crate::query::Query;

/// In a collection of at least this many texts, terms that occur in too many of them are not searched for.
const MIN_COLLECTION_WITH_COMMON_TERMS: u64 = 1_000;

/// A term in more than one of this many texts is common. Reading and ranking its occurrences takes most of a query's
/// time and hardly changes the order of the results.
const COMMON_ONE_IN: u64 = 20;

/// The number of a question's rarest terms that are searched for; more would take time without improving the result.
const MAX_TERMS: usize = 16;

/// How common the terms of one question are in one group of texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frequencies {
    documents: HashMap<String, u64>,
    total: u64,
}

impl Frequencies {
    /// Counts each term of a question once; `total` is the number of texts.
    ///
    /// # Errors
    /// The first error of `documents`.
    pub fn count<E>(query: &Query, total: u64, documents: impl FnMut(&str) -> Result<u64, E>) -> Result<Self, E> {
        Self::of_terms(query.units().iter().flat_map(|unit| unit.terms()), total, documents)
    }

    /// Counts terms from any source.
    ///
    /// # Errors
    /// The first error of `documents`.
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

    /// The number of texts in which a term of the question occurs.
    pub fn documents(&self, term: &str) -> u64 {
        self.documents.get(term).copied().unwrap_or_default()
    }

    /// The sum of these numbers over all terms.
    pub(crate) fn counted(&self) -> u64 {
        self.documents.values().sum()
    }

    /// The number of texts.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// The terms that distinguish texts, rarest first.
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
