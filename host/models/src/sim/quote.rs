//! Finds the sentence that best matches a question.
//!
//! One pass over the prompt marks for each sentence which terms of the question it contains, and counts each term. Then
//! the weight of a sentence is the sum of those of its terms; a rare term weighs more than a common one. Integer
//! arithmetic only, so that every machine chooses the same sentence.

use std::collections::HashMap;

use super::terms::{each_term, each_term_and_lead, is_stop_word, is_wide};

/// The maximum number of terms of a question; each is a bit of a mask.
const MAX_TERMS: usize = 64;

/// The newest of the sentences that share the most with the question, if that is at least half of the question's
/// weight. Questions are not answers, so they are never chosen.
///
/// `may_answer` says which sentences are eligible.
pub fn best_sentence<'a>(
    question: &str,
    may_answer: impl Fn(&str) -> bool,
    sources: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let mut terms: HashMap<String, usize> = HashMap::new();
    each_term(question, |term| {
        let next = terms.len();
        if next < MAX_TERMS && !is_stop_word(term) && !terms.contains_key(term) {
            terms.insert(term.to_owned(), next);
        }
    });
    if terms.is_empty() {
        return None;
    }
    // A term with a digit identifies one of several things: part 2 is not part 29.
    let which = terms.iter().filter(|(term, _)| term.bytes().any(|byte| byte.is_ascii_digit()));
    let which: u64 = which.map(|(_, bit)| 1 << bit).sum();
    let is_alone = |term: &String| term.chars().all(is_wide) && term.chars().count() == 1;
    let has_one_alone = terms.keys().any(is_alone);
    let mut sentences = 0u64;
    let mut holding = [0u64; MAX_TERMS];
    let mut candidates: Vec<(u64, &str)> = Vec::new();
    for sentence in sources.flat_map(Sentences) {
        sentences += 1;
        let mut mask = 0u64;
        let mark = |term: &str| {
            if let Some(bit) = terms.get(term) {
                mask |= 1 << bit;
            }
        };
        if has_one_alone {
            each_term_and_lead(sentence, mark)
        } else {
            each_term(sentence, mark)
        }
        if mask != 0 && mask & which == which && !asks(sentence) && may_answer(sentence) {
            bits(mask).for_each(|bit| holding[bit] += 1);
            candidates.push((mask, sentence));
        }
    }
    let weight = |bit: usize| u64::from(1 + ((sentences + 1) / (holding[bit] + 1)).max(1).ilog2());
    let wanted: u64 = (0..terms.len()).map(weight).sum();
    candidates
        .into_iter()
        .map(|(mask, sentence)| (bits(mask).map(weight).sum::<u64>(), sentence))
        .filter(|(found, _)| found * 2 >= wanted)
        // The last of equals, which is the newest.
        .max_by_key(|(found, _)| *found)
        .map(|(_, sentence)| sentence)
}

fn bits(mask: u64) -> impl Iterator<Item = usize> {
    (0..MAX_TERMS).filter(move |bit| mask >> bit & 1 == 1)
}

/// Characters that may follow the end of a sentence and still belong to it.
const CLOSERS: &[char] = &['」', '』', '”', '"', '’', '\'', ')', '）', ']', '】', '*', '_', '`'];

/// Whether a sentence is a question or a request.
pub fn asks(sentence: &str) -> bool {
    let lower: String = sentence.chars().take(16).flat_map(char::to_lowercase).collect();
    let starts = ["what ", "who ", "when ", "where ", "which ", "why ", "how ", "tell me", "請問", "請告訴", "告訴我"];
    sentence.trim_end_matches(CLOSERS).ends_with(['?', '？', '嗎', '呢'])
        || starts.iter().any(|start| lower.starts_with(start))
}

/// The sentences of a text: they end with a line, with `。！？!?`, or with a full stop before a space.
struct Sentences<'a>(&'a str);

impl<'a> Iterator for Sentences<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        loop {
            if self.0.is_empty() {
                return None;
            }
            let (sentence, rest) = self.0.split_at(sentence_end(self.0));
            self.0 = rest;
            let sentence = sentence.trim();
            if !sentence.is_empty() {
                return Some(sentence);
            }
        }
    }
}

fn sentence_end(text: &str) -> usize {
    for (at, c) in text.char_indices() {
        let end = at + c.len_utf8();
        match c {
            '\n' => return end,
            '。' | '！' | '？' | '!' | '?' | '.' => {
                let rest = &text[end..];
                let after = rest.trim_start_matches(CLOSERS);
                if !matches!(c, '!' | '?' | '.') || after.is_empty() || after.starts_with(char::is_whitespace) {
                    return text.len() - after.len();
                }
            }
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn best<'a>(question: &str, sources: impl Iterator<Item = &'a str>) -> Option<&'a str> {
        best_sentence(question, |_| true, sources)
    }

    #[test]
    fn what_a_question_has_alone_begins_what_answers_it() {
        let said = ["我叫小安。", "花園裡有狗。"];
        assert_eq!(best("我叫什麼？", said.into_iter()), Some(said[0]));
        assert_eq!(best("鑰匙在哪裡？", said.into_iter()), None);
    }

    #[test]
    fn sentences_of_both_languages() {
        let text = "v0.11.1 shipped (at last.) Good!\n\n他說：「完成了。」真的？是的";
        let expected = ["v0.11.1 shipped (at last.)", "Good!", "他說：「完成了。」", "真的？", "是的"];
        assert_eq!(Sentences(text).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn questions_ask() {
        for asking in ["Is it red?", "他好嗎", "(真的？)", "Tell me the code.", "請問預算"] {
            assert!(asks(asking), "{asking}");
        }
        assert!(!asks("It is red."));
    }

    #[test]
    fn a_rare_term_outweighs_common_ones() {
        let facts: Vec<String> = (0..50).map(|n| format!("The launch code of rocket {n} is {}.", 1000 + n)).collect();
        let sources = || facts.iter().map(String::as_str);
        assert_eq!(best("launch code of rocket 17", sources()), Some("The launch code of rocket 17 is 1017."));
        assert_eq!(best("launch code of rocket 77", sources()), None);
    }

    #[test]
    fn the_newest_of_equals() {
        let sources = ["The key is under the mat.", "The key is under the stone."];
        assert_eq!(best("Where is the key?", sources.into_iter()), Some(sources[1]));
    }

    proptest! {
        #[test]
        fn a_quote_is_part_of_what_was_said(question in "(\\PC|key |預算){0,20}", said in "(\\PC|key |預算|[.。?\n]){0,60}") {
            if let Some(sentence) = best(&question, std::iter::once(said.as_str())) {
                prop_assert!(said.contains(sentence) && !sentence.is_empty());
            }
            let sentences: Vec<&str> = Sentences(&said).collect();
            let squeezed = |text: &str| text.split_whitespace().collect::<String>();
            prop_assert_eq!(squeezed(&sentences.concat()), squeezed(&said));
        }
    }
}
