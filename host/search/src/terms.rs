//! Splits a text into terms, by which it can be found.
//!
//! Full-width and half-width forms are unified, case is folded, English is stemmed. An identifier
//! (`sales_performances`, `salesBudgetPerformance`, `app/models/x.rb`) is found as a whole and by its parts.

use std::{borrow::Cow, cell::RefCell, sync::LazyLock};

use icu_normalizer::ComposingNormalizerBorrowed;
use icu_segmenter::{WordSegmenter, WordSegmenterBorrowed, options::WordBreakInvariantOptions};
use pmk_core::{Message, archive::is_quotable, text};
use rust_stemmers::{Algorithm, Stemmer};

use crate::stop_words::is_stop_word;

/// A longer term is cut, in texts and questions alike: base64 and minified code must not bloat the index.
const LONGEST_TERM_CHARS: usize = 48;

/// How much of one message is indexed.
const LONGEST_TEXT_CHARS: usize = 20_000;

static SEGMENTER: LazyLock<WordSegmenterBorrowed<'static>> =
    LazyLock::new(|| WordSegmenter::new_dictionary(WordBreakInvariantOptions::default()));

/// One piece of a text.
pub(crate) enum Piece<'a> {
    /// Letters and digits, joined by the connectors of identifiers and paths. Case as written.
    Word(&'a str),
    /// Characters of a script that is written without spaces.
    Wide(&'a str),
}

/// All terms of a text, repeated as often as they occur, as the index stores them.
pub fn terms(text: &str) -> Vec<String> {
    let text = normalize(text);
    let mut out = Vec::new();
    for piece in pieces(&text) {
        match piece {
            Piece::Word(word) => {
                if let Some(whole) = whole_identifier(word) {
                    out.push(whole);
                }
                each_part(word, |part| out.push(part));
            }
            Piece::Wide(run) => {
                bigrams(run).for_each(|pair| out.push(pair.to_owned()));
                let run_is_one_character = run.chars().nth(1).is_none();
                for word in segments(run) {
                    match word.chars().count() {
                        1 if run_is_one_character || !is_stop_word(word) => out.push(word.to_owned()),
                        1 | 2 => {}
                        _ => out.push(shorten(word).to_owned()),
                    }
                }
            }
        }
    }
    out
}

/// All terms of a message of a conversation; none if it is not quotable. Only the beginning of a very long text is
/// indexed: otherwise a log of megabytes would make up most of the index.
pub fn terms_of_message(message: &Message) -> Vec<String> {
    if !is_quotable(message) {
        return Vec::new();
    }
    terms(text::head(&message.plain_text(), LONGEST_TEXT_CHARS))
}

/// Normalises a text: full-width forms become half-width, ligatures become letters, decomposed characters are composed.
pub(crate) fn normalize(text: &str) -> Cow<'_, str> {
    const NFKC: ComposingNormalizerBorrowed<'static> = ComposingNormalizerBorrowed::new_nfkc();
    NFKC.normalize(text)
}

/// Splits a normalised text into words and wide runs; everything else separates them.
pub(crate) fn pieces(text: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c| !is_wide(c) && !is_word(c));
        let first = rest.chars().next()?;
        let (piece, after) = if is_wide(first) {
            let end = rest.find(|c| !is_wide(c)).unwrap_or(rest.len());
            (Piece::Wide(&rest[..end]), &rest[end..])
        } else {
            let end = rest.find(|c| !is_word(c) && !is_connector(c)).unwrap_or(rest.len());
            (Piece::Word(rest[..end].trim_end_matches(is_connector)), &rest[end..])
        };
        rest = after;
        Some(piece)
    })
}

/// The identifier as a whole, if it has more than one part. How its parts are joined is a convention:
/// `sales_performances`, `SalesPerformance` and `sales-performance` are the same name.
pub(crate) fn whole_identifier(word: &str) -> Option<String> {
    let compound = word.contains(is_connector) || humps(word).nth(1).is_some();
    compound.then(|| stem(shorten(&lower_case(word).replace(['_', '-'], ""))))
}

/// Calls `found` with the parts of a word or identifier that are not stop words, stemmed.
pub(crate) fn each_part(word: &str, mut found: impl FnMut(String)) {
    let mut say = |part: &str| {
        let lower = lower_case(part);
        if !is_stop_word(&lower) {
            found(stem(shorten(&lower)));
        }
    };
    for part in word.split(is_connector).flat_map(humps) {
        match part.is_ascii() {
            true => say(part),
            false => segments(part).for_each(&mut say),
        }
    }
}

/// Returns the word in lower case, which most words are already.
fn lower_case(word: &str) -> Cow<'_, str> {
    match word.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase()) {
        true => word.into(),
        false => word.to_lowercase().into(),
    }
}

/// The words of a run, by ICU's dictionary; without spaces and punctuation.
pub(crate) fn segments(run: &str) -> impl Iterator<Item = &str> {
    let mut start = 0;
    SEGMENTER.segment_str(run).filter_map(move |end| {
        let word = &run[start..end];
        start = end;
        word.chars().any(|c| is_wide(c) || is_word(c)).then_some(word)
    })
}

/// All pairs of neighbouring characters.
pub(crate) fn bigrams(run: &str) -> impl Iterator<Item = &str> {
    let starts = run.char_indices().map(|(at, _)| at);
    let ends = run.char_indices().map(|(at, c)| at + c.len_utf8()).skip(1);
    starts.zip(ends).map(|(start, end)| &run[start..end])
}

/// Cuts the term to the length that is stored.
pub(crate) fn shorten(term: &str) -> &str {
    term.char_indices().nth(LONGEST_TERM_CHARS).map_or(term, |(at, _)| &term[..at])
}

/// The parts of a camel-case name: `HTTPServerError` is `HTTP`, `Server`, `Error`.
fn humps(word: &str) -> impl Iterator<Item = &str> {
    let mut rest = word;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut chars = rest.char_indices().peekable();
        let mut previous = ' ';
        let end = loop {
            let Some((at, c)) = chars.next() else { break rest.len() };
            let next_is_lower = chars.peek().is_some_and(|&(_, next)| next.is_lowercase());
            let acronym_ends = previous.is_uppercase() && c.is_uppercase() && next_is_lower;
            if at > 0 && ((previous.is_lowercase() && c.is_uppercase()) || acronym_ends) {
                break at;
            }
            previous = c;
        };
        let (hump, after) = rest.split_at(end);
        rest = after;
        Some(hump)
    })
}

fn stem(word: &str) -> String {
    thread_local! {
        static STEMMER: RefCell<Stemmer> = RefCell::new(Stemmer::create(Algorithm::English));
    }
    if word.bytes().all(|b| b.is_ascii_lowercase()) {
        STEMMER.with_borrow(|stemmer| stemmer.stem(word).into_owned())
    } else {
        word.to_owned()
    }
}

/// Whether it is Han, kana, bopomofo or hangul.
pub(crate) fn is_wide(c: char) -> bool {
    matches!(c,
        '\u{3005}'..='\u{3007}' | '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fa}' | '\u{30fc}'..='\u{30ff}'
        | '\u{3105}'..='\u{312f}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3fffd}')
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() && !is_wide(c)
}

/// Whether it joins the parts of identifiers, paths, addresses and versions.
pub(crate) fn is_connector(c: char) -> bool {
    matches!(c, '_' | '.' | '/' | '-' | ':' | '@' | '#')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_two_character_word_is_always_a_term() {
        let found = terms("如何查詢本月各部門廣告預算分配比例？");
        for word in ["查詢", "部門", "廣告", "預算", "分配", "比例", "本月"] {
            assert!(found.iter().any(|term| term == word), "{word} is not in {found:?}");
        }
    }

    #[test]
    fn icu_divides_traditional_chinese_into_words() {
        let words: Vec<&str> = segments("各部門這個月的廣告預算怎麼分").collect();
        assert_eq!(words, ["各部門", "這個", "月", "的", "廣告", "預算", "怎麼", "分"]);
    }

    #[test]
    fn an_identifier_is_found_whole_and_by_its_parts() {
        assert_eq!(terms("sales_performances"), ["salesperform", "sale", "perform"]);
        assert_eq!(terms("salesBudgetPerformance"), ["salesbudgetperform", "sale", "budget", "perform"]);
        assert_eq!(terms("SALES_BUDGET-performance"), terms("salesBudgetPerformance"));
        assert_eq!(terms("`app/models/x.rb`."), ["app/models/x.rb", "app", "model", "x", "rb"]);
        assert_eq!(terms("v1.5.2"), ["v1.5.2", "v1", "5", "2"]);
        assert_eq!(terms("Wi-Fi")[0], terms("wifi")[0]);
        assert_eq!(terms("HTTPServerError"), ["httpservererror", "http", "server", "error"]);
        assert_eq!(terms("Erp::SalesScope"), ["erp::salesscope", "erp", "sale", "scope"]);
    }

    #[test]
    fn forms_of_a_word_meet() {
        assert_eq!(terms("Budgets"), terms("budget"));
        assert_eq!(terms("ｓａｌｅｓ＿ｐｅｒｆｏｒｍａｎｃｅｓ"), terms("sales_performances"));
        assert_eq!(terms("the of and"), Vec::<String>::new());
    }

    #[test]
    fn mixed_text_keeps_both_sides() {
        let found = terms("erp的sales_performances資料表在哪裡");
        for word in ["erp", "salesperform", "perform", "資料"] {
            assert!(found.iter().any(|term| term == word), "{word} is not in {found:?}");
        }
    }

    #[test]
    fn a_lone_character_can_be_found() {
        assert_eq!(terms("帳"), ["帳"]);
    }

    proptest! {
        #[test]
        fn a_term_is_one_token_of_the_index(text in "(\\PC|\"|\\*|\0|\n|İ|中文|NEAR|_|:){0,60}") {
            for term in terms(&text) {
                prop_assert!(!term.is_empty() && term.chars().count() <= LONGEST_TERM_CHARS);
                let fits = |c: char| c.is_ascii_alphanumeric() || is_connector(c) || !(c.is_ascii() || c.is_whitespace());
                prop_assert!(term.chars().all(fits), "{term:?}");
            }
        }
    }
}
