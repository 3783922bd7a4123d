//! A question to a collection of short texts that were written to be found: more forgiving than a
//! [`Query`](crate::Query), which finds passages in long texts.
//!
//! Chinese is queried by every pair of neighbouring characters: people do not split words where a dictionary does, and
//! the two scripts are split differently. Pairs with a character of a function word are left out.

use std::collections::HashSet;

use crate::{
    everyday::{is_everyday, says_nothing},
    script::fold,
    terms::{Piece, each_part, pieces, segments, whole_identifier},
};

/// Only the first terms of a longer message are used: its subject is mentioned early or often.
const MAX_TERMS: usize = 64;

/// The weight of a one-character word: it may be part of a word that the dictionary does not know.
const SINGLE: f64 = 0.6;

/// The weight of a pair that is part of a longer word: `合作` in `光合作用` is about something else.
const PIECE: f64 = 0.7;

/// The weight of an everyday word.
const EVERYDAY: f64 = 0.6;

/// The weight of an identifier: nobody uses one by chance.
const NAME: f64 = 1.5;

/// The weight of a part of an identifier: `sales` in `sales_targets` says little about `sales_performances`.
const PART: f64 = 0.4;

/// One term to search for.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    /// As in the [`folded_terms`](crate::folded_terms) of texts.
    pub text: String,
    /// Its weight, 0 to 1, regardless of how rare it is.
    pub weight: f64,
    /// Whether it is an identifier in code or a path.
    pub(crate) is_name: bool,
    /// Whether people use it whatever they ask about.
    pub(crate) is_everyday: bool,
}

/// A question, split into terms. Each term occurs once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Asked {
    terms: Vec<Term>,
}

impl Asked {
    /// Splits any text; nothing in it has a special meaning.
    pub fn new(text: &str) -> Self {
        let mut asked = Terms::default();
        for piece in pieces(&fold(text)) {
            match piece {
                Piece::Word(word) => asked.push_word(word),
                Piece::Wide(run) => asked.push_run(run),
            }
            if asked.list.len() >= MAX_TERMS {
                break;
            }
        }
        asked.list.truncate(MAX_TERMS);
        Asked { terms: asked.list }
    }

    /// The terms, in the order in which they first occur.
    pub fn terms(&self) -> &[Term] {
        &self.terms
    }

    /// Whether there are no terms.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Replaces each term for which `instead` returns another word: corrects typing errors.
    pub fn corrected(mut self, mut instead: impl FnMut(&str) -> Option<String>) -> Self {
        for term in &mut self.terms {
            if let Some(word) = instead(&term.text) {
                term.text = word;
            }
        }
        self
    }
}

#[derive(Default)]
struct Terms {
    list: Vec<Term>,
    seen: HashSet<String>,
}

impl Terms {
    fn push(&mut self, text: String, weight: f64) {
        let is_everyday = is_everyday(&text);
        let weight = if is_everyday { weight * EVERYDAY } else { weight };
        if self.seen.insert(text.clone()) {
            self.list.push(Term { text, weight, is_name: false, is_everyday });
        }
    }

    fn push_word(&mut self, word: &str) {
        let whole = whole_identifier(word);
        let of_part = if whole.is_some() { PART } else { 1.0 };
        whole.into_iter().for_each(|whole| self.push_name(whole));
        each_part(word, |part| self.push(part, of_part));
    }

    fn push_name(&mut self, name: String) {
        if self.seen.insert(name.clone()) {
            self.list.push(Term { text: name, weight: NAME, is_name: true, is_everyday: false });
        }
    }

    fn push_run(&mut self, run: &str) {
        let mut chars: Vec<(char, Option<usize>)> = Vec::new();
        let mut lengths: Vec<usize> = Vec::new();
        for (at, word) in segments(run).enumerate() {
            let speaks = (!says_nothing(word)).then_some(at);
            chars.extend(word.chars().map(|c| (c, speaks)));
            lengths.push(word.chars().count());
            if speaks.is_some() && word.chars().nth(1).is_none() {
                self.push(word.to_owned(), if run.len() == word.len() { 1.0 } else { SINGLE });
            }
        }
        for pair in chars.windows(2) {
            let (Some(first), Some(second)) = (pair[0].1, pair[1].1) else { continue };
            let is_piece = first == second && lengths[first] > 2;
            self.push(pair.iter().map(|(c, _)| *c).collect(), if is_piece { PIECE } else { 1.0 });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        Asked::new(text).terms().iter().map(|term| term.text.clone()).collect()
    }

    #[test]
    fn a_question_is_asked_by_pairs_and_words_in_one_script() {
        assert_eq!(words("退款"), ["退款"]);
        assert_eq!(words("資料庫 reset"), words("数据库 resets"));
        assert_eq!(words("這是什麼？ what is it"), Vec::<String>::new());
        assert_eq!(words("帳"), ["账"]);
    }

    #[test]
    fn what_says_little_counts_little() {
        let asked = Asked::new("退款怎麼申請");
        let weight = |text: &str| asked.terms().iter().find(|term| term.text == text).map(|term| term.weight);
        assert_eq!((weight("退款"), weight("申请")), (Some(1.0), Some(EVERYDAY)));
        assert_eq!((weight("款怎"), weight("怎么")), (None, None));
    }

    #[test]
    fn a_part_of_a_name_counts_less_than_the_name() {
        let asked = Asked::new("sales_performances");
        let weights: Vec<f64> = asked.terms().iter().map(|term| term.weight).collect();
        assert_eq!(weights, [NAME, PART, PART]);
    }

    #[test]
    fn a_pasted_book_is_a_bounded_question() {
        let book: String = (0..5_000).map(|n| format!("word{n} 第{n}章的內容 ")).collect();
        assert_eq!(Asked::new(&book).terms().len(), MAX_TERMS);
    }

    #[test]
    fn a_long_text_without_punctuation_is_split_as_a_short_one_is() {
        let terms = |times: usize| Asked::new(&"資料庫備份".repeat(times)).terms().to_vec();
        assert!((1..=MAX_TERMS).contains(&terms(3).len()));
        assert_eq!(terms(2_000), terms(3));
    }
}
