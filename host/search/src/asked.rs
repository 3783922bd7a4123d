//! A question to a collection of short texts that were written to be found: more forgiving than a
//! [`Query`](crate::Query), which finds passages in long texts.
//!
//! Chinese is queried by every pair of neighbouring characters: people do not split words where a dictionary does, and
//! the two scripts are split differently. Pairs with a character of a function word are left out, unless the two may be
//! a word that the dictionary does not know (`请款`).

use std::collections::HashSet;

use crate::{
    everyday::{begins_words, ends_words, is_everyday, says_nothing},
    script::fold,
    terms::{Piece, each_part, pieces, segments, whole_identifier},
};

/// Of a longer message, only the terms of its beginning and of its end are used: what is asked comes before or after
/// the rest, and with more terms it would share some with everything.
const MAX_TERMS: usize = 64;

/// The number of them that are of the beginning.
const MAX_FIRST: usize = 32;

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
    /// Whether it counts if no text contains it: not if people use it whatever they ask about, or if it may be no word.
    pub(crate) is_missed: bool,
}

/// A question, split into terms. Each term occurs once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Asked {
    terms: Vec<Term>,
}

impl Asked {
    /// Splits any text; nothing in it has a special meaning.
    pub fn new(text: &str) -> Self {
        let text = fold(text);
        let pieces: Vec<Piece<'_>> = pieces(&text).collect();
        let terms = || pieces.iter().flat_map(terms_of);
        let mut asked = Terms::default();
        asked.push_up_to(MAX_FIRST, terms());
        // With fewer, these were all.
        if asked.list.len() == MAX_FIRST {
            asked.push_up_to(MAX_TERMS, terms().rev());
        }
        Asked { terms: asked.list }
    }

    /// The terms.
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
    fn push_up_to(&mut self, max: usize, mut terms: impl Iterator<Item = Term>) {
        while self.list.len() < max
            && let Some(term) = terms.next()
        {
            if self.seen.insert(term.text.clone()) {
                self.list.push(term);
            }
        }
    }
}

impl Term {
    fn new(text: String, weight: f64) -> Self {
        let is_everyday = is_everyday(&text);
        let weight = if is_everyday { weight * EVERYDAY } else { weight };
        Term { text, weight, is_name: false, is_missed: !is_everyday }
    }

    fn name(text: String) -> Self {
        Term { text, weight: NAME, is_name: true, is_missed: true }
    }

    /// A pair with a function word that may be one word.
    fn guess(text: String) -> Self {
        let weight = if is_everyday(&text) { EVERYDAY } else { 1.0 };
        Term { text, weight, is_name: false, is_missed: false }
    }
}

/// The terms of a piece in the order in which they end, each as often as it occurs.
fn terms_of(piece: &Piece<'_>) -> Vec<Term> {
    match piece {
        Piece::Word(word) => terms_of_word(word),
        Piece::Wide(run) => terms_of_run(run),
    }
}

fn terms_of_word(word: &str) -> Vec<Term> {
    let whole = whole_identifier(word);
    let of_part = if whole.is_some() { PART } else { 1.0 };
    let mut terms: Vec<Term> = whole.into_iter().map(Term::name).collect();
    each_part(word, |part| terms.push(Term::new(part, of_part)));
    terms
}

fn terms_of_run(run: &str) -> Vec<Term> {
    let words: Vec<&str> = segments(run).collect();
    let speaks: Vec<bool> = words.iter().map(|word| !says_nothing(word)).collect();
    let is_single = |at: usize| words[at].chars().nth(1).is_none();
    let (mut terms, mut before) = (Vec::new(), None);
    for (second, word) in words.iter().enumerate() {
        if speaks[second] && is_single(second) {
            terms.push(Term::new((*word).to_owned(), if words.len() == 1 { 1.0 } else { SINGLE }));
        }
        for c in word.chars() {
            let Some((c_before, first)) = before.replace((c, second)) else { continue };
            let pair = String::from_iter([c_before, c]);
            match (speaks[first], speaks[second]) {
                (true, true) => {
                    let is_piece = first == second && word.chars().nth(2).is_some();
                    terms.push(Term::new(pair, if is_piece { PIECE } else { 1.0 }));
                }
                (false, true) if begins_words(words[first]) && is_single(second) => terms.push(Term::guess(pair)),
                (true, false) if ends_words(word) && is_single(first) => terms.push(Term::guess(pair)),
                _ => {}
            }
        }
    }
    terms
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

    /// Regression: what the message began with was all that was searched for.
    #[test]
    fn a_question_at_the_end_of_a_long_message_was_not_asked() {
        let context: String = (0..500).map(|n| format!("word{n}, ")).collect();
        let long = words(&format!("資料庫備份。{context}發票作廢？"));
        for word in ["资料", "备份", "发票", "作废"] {
            assert!(long.iter().any(|term| term == word), "{word} is not in {long:?}");
        }
    }

    /// Regression: of a run without punctuation only the beginning was searched for, however long it was.
    #[test]
    fn a_question_at_the_end_of_a_long_run_was_not_asked() {
        let context = "昨天下午開完會以後大家一起去看了一場棒球比分咬得很緊第九局才逆轉回家的路上下起大雨捷運擠滿了剛散場的球迷\
                       車站外面排隊等計程車的人龍繞過兩條街手上的爆米花都濕掉了乾脆走路回去路邊攤的滷味倒是意外好吃\
                       這張發票是隔壁桌的阿伯昨晚請大家喝汽水的時候親手交給我的但是上面的抬頭寫錯了所以想問";
        let question = "簽名錯的發票怎麼作廢";
        assert_eq!(context.chars().chain(question.chars()).count(), 150);
        let long = words(&format!("{context}{question}"));
        assert_eq!(long.len(), MAX_TERMS);
        assert!(long.contains(&"棒球".to_owned()));
        // `發票` also occurs before the last terms.
        for term in words(question) {
            assert!(long.contains(&term), "{term} is not in {long:?}");
        }
    }

    /// Regression: the dictionary splits these words, of which one half is a function word.
    #[test]
    fn a_word_with_half_a_function_word_was_not_asked_for() {
        for word in ["請款", "下單", "對帳", "問卷", "後端", "過帳", "帳號", "稅後", "買家"] {
            assert_eq!(words(&format!("怎麼{word}？")).last(), Some(&fold(word)));
        }
        assert_eq!(words("簽的單"), ["签", "单"]);
    }

    #[test]
    fn a_long_text_without_punctuation_is_split_as_a_short_one_is() {
        let terms = |times: usize| Asked::new(&"資料庫備份".repeat(times)).terms().to_vec();
        assert!((1..=MAX_TERMS).contains(&terms(3).len()));
        assert_eq!(terms(2_000), terms(3));
    }
}
