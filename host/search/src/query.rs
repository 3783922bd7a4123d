//! Splits a question into the terms that are searched for.

use std::collections::HashSet;

use crate::{
    stop_words::is_stop_word,
    terms::{Piece, bigrams, each_part, normalize, pieces, segments, shorten, whole_identifier},
};

/// Only the first units of a longer question are used: it was pasted, and its subject is mentioned early or often.
const MAX_UNITS: usize = 48;

/// The same limit for words with many parts: each part is looked up, which takes time however short the text is.
const MAX_TERMS: usize = 256;

/// One word of a question. It counts once, however many terms it has.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Unit {
    /// The word as a whole, if it also has parts: an identifier, or a Chinese word of three or more characters.
    pub whole: Option<String>,
    /// The terms for its parts, which are weaker evidence than the whole.
    pub parts: Vec<String>,
    /// Whether it is an identifier in code or a path.
    pub identifier: bool,
}

impl Unit {
    /// All terms of the word.
    pub fn terms(&self) -> impl Iterator<Item = &str> {
        self.whole.iter().chain(&self.parts).map(String::as_str)
    }
}

/// A question, split into words. Stop words are left out, and each word occurs once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    units: Vec<Unit>,
}

impl Query {
    /// Splits any text; nothing in it has a special meaning.
    pub fn new(text: &str) -> Self {
        let mut units = Units::default();
        for piece in pieces(&normalize(text)) {
            match piece {
                Piece::Word(word) => {
                    let whole = whole_identifier(word);
                    let mut parts = Vec::new();
                    each_part(word, |part| parts.push(part));
                    units.push(Unit { identifier: whole.is_some(), whole, parts });
                }
                Piece::Wide(run) => units.push_run(run),
            }
            if units.list.len() >= MAX_UNITS {
                break;
            }
        }
        units.list.truncate(MAX_UNITS);
        let mut left = MAX_TERMS;
        units.list.retain(|unit| {
            let rest = left.checked_sub(unit.terms().count());
            left = rest.unwrap_or(left);
            rest.is_some()
        });
        Query { units: units.list }
    }

    /// The number of terms of all words.
    pub fn terms(&self) -> usize {
        self.units.iter().map(|unit| unit.terms().count()).sum()
    }

    /// The words, in the order in which they first occur.
    pub fn units(&self) -> &[Unit] {
        &self.units
    }

    /// Whether there are no words.
    pub fn is_empty(&self) -> bool {
        self.units.is_empty()
    }
}

#[derive(Default)]
struct Units {
    list: Vec<Unit>,
    seen: HashSet<Unit>,
}

impl Units {
    fn push(&mut self, unit: Unit) {
        if unit.terms().next().is_some() && self.seen.insert(unit.clone()) {
            self.list.push(unit);
        }
    }

    /// Splits a run of Chinese. Adjacent single characters are a word that the dictionary does not know, often a name:
    /// they are searched for in pairs.
    fn push_run(&mut self, run: &str) {
        let mut unknown = String::new();
        for word in segments(run) {
            if word.chars().nth(1).is_none() && !is_stop_word(word) {
                unknown.push_str(word);
                continue;
            }
            self.push_unknown(&mut unknown);
            if is_stop_word(word) {
                continue;
            }
            match word.chars().count() {
                2 => self.push_wide(None, vec![word.to_owned()]),
                _ => self.push_wide(Some(shorten(word).to_owned()), pairs(shorten(word))),
            }
        }
        self.push_unknown(&mut unknown);
    }

    fn push_unknown(&mut self, unknown: &mut String) {
        let word = std::mem::take(unknown);
        let pairs = pairs(&word);
        if !word.is_empty() {
            self.push_wide(None, if pairs.is_empty() { vec![word] } else { pairs });
        }
    }

    fn push_wide(&mut self, whole: Option<String>, parts: Vec<String>) {
        self.push(Unit { whole, parts, identifier: false });
    }
}

fn pairs(word: &str) -> Vec<String> {
    bigrams(word).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<Vec<String>> {
        Query::new(text).units().iter().map(|unit| unit.terms().map(str::to_owned).collect()).collect()
    }

    #[test]
    fn a_question_is_its_words_without_those_that_say_nothing() {
        assert_eq!(words("部門的廣告預算怎麼分？"), [["部門"], ["廣告"], ["預算"], ["分"]]);
        assert_eq!(words("How is the budget split, and by whom?"), [["budget"], ["split"]]);
        assert!(Query::new("這是什麼？ what is it").is_empty());
    }

    /// Regression: a few words with a thousand parts made the store look up each part.
    #[test]
    fn no_question_asks_for_more_than_can_be_looked_up() {
        let parts = |n: usize| (0..n).map(|part| format!("part{part}")).collect::<Vec<_>>().join(".");
        assert_eq!(Query::new(&parts(5_000)).terms(), 0);
        assert_eq!(Query::new(&format!("budget {} margin", parts(5_000))).units().len(), 2);
        let many = (0..48).map(|at| format!("{}x{at}", parts(20))).collect::<Vec<_>>().join(" ");
        let terms = Query::new(&many).terms();
        assert!((200..=MAX_TERMS).contains(&terms), "{terms}");
    }

    #[test]
    fn a_word_counts_once() {
        assert_eq!(words("各部門"), [["各部門", "各部", "部門"]]);
        assert_eq!(words("預算 預算 budget Budgets"), [["預算"], ["budget"]]);
        assert_eq!(words("sales_performances"), [["salesperform", "sale", "perform"]]);
    }

    #[test]
    fn a_name_the_dictionary_does_not_know_is_asked_for_in_pairs() {
        let asked = words("驫犇鑫");
        assert_eq!(asked, [["驫犇", "犇鑫"]]);
    }

    #[test]
    fn a_pasted_book_is_a_bounded_question() {
        let book: String = (0..5_000).map(|n| format!("word{n} ")).collect();
        assert_eq!(Query::new(&book).units().len(), MAX_UNITS);
    }
}
