//! The terms of a text: its content words, and pairs of Chinese, Japanese and Korean characters, which have no spaces
//! to split at.

/// Words that occur in every text.
const STOP_WORDS: &[&str] = &[
    "a", "about", "all", "am", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can", "could", "did",
    "do", "does", "for", "from", "had", "has", "have", "he", "her", "his", "how", "i", "if", "in", "is", "it", "its",
    "know", "many", "me", "much", "my", "no", "not", "of", "on", "or", "our", "please", "remember", "s", "say", "she",
    "should", "so", "t", "tell", "that", "the", "their", "them", "there", "they", "this", "to", "us", "was", "we",
    "were", "what", "when", "where", "which", "who", "whose", "why", "will", "with", "would", "you", "your", "樣",
    "裡",
];

/// Characters that are function words, without content of their own.
pub fn is_stop(c: char) -> bool {
    matches!(
        c,
        '的' | '了'
            | '是'
            | '在'
            | '有'
            | '和'
            | '與'
            | '及'
            | '也'
            | '都'
            | '就'
            | '把'
            | '被'
            | '這'
            | '那'
            | '哪'
            | '我'
            | '你'
            | '您'
            | '妳'
            | '他'
            | '她'
            | '它'
            | '們'
            | '請'
            | '問'
            | '什'
            | '甚'
            | '麼'
            | '嗎'
            | '呢'
            | '吧'
            | '啊'
            | '誰'
            | '怎'
            | '為'
            | '何'
            | '多'
            | '少'
            | '幾'
            | '說'
            | '剛'
            | '才'
    )
}

/// Whether it is a Chinese, Japanese or Korean letter.
pub fn is_wide(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}')
}

/// Calls `each` with every term of a text, in order, repeats and [stop words](is_stop_word) included.
pub fn each_term(text: &str, each: impl FnMut(&str)) {
    terms_of(text, false, each);
}

/// As [`each_term`], with the first character of each run of pairs as an additional term: a single character of the
/// question, such as the verb of 「我叫什麼」, begins a run in the answer, 「我叫小安」.
pub fn each_term_and_lead(text: &str, each: impl FnMut(&str)) {
    terms_of(text, true, each);
}

fn terms_of(text: &str, leads: bool, mut each: impl FnMut(&str)) {
    let mut word = String::new();
    let mut wide = WideRun { leads, ..WideRun::default() };
    for c in text.chars() {
        if c.is_ascii() {
            wide.end(&mut each);
            if c.is_ascii_alphanumeric() {
                word.push(c.to_ascii_lowercase());
            } else {
                end_word(&mut word, &mut each);
            }
        } else if is_wide(c) {
            end_word(&mut word, &mut each);
            if is_stop(c) {
                wide.end(&mut each);
            } else {
                wide.push(c, &mut each);
            }
        } else {
            wide.end(&mut each);
            if c.is_alphanumeric() {
                word.extend(c.to_lowercase());
            } else {
                end_word(&mut word, &mut each);
            }
        }
    }
    wide.end(&mut each);
    end_word(&mut word, &mut each);
}

/// The characters since the last one that was not wide: pairs of neighbours, or a single character.
#[derive(Default)]
struct WideRun {
    last: Option<char>,
    paired: bool,
    /// Whether the first of several is a term as well.
    leads: bool,
}

impl WideRun {
    fn push(&mut self, c: char, each: &mut impl FnMut(&str)) {
        if let Some(last) = self.last.replace(c) {
            if !std::mem::replace(&mut self.paired, true) && self.leads {
                each(last.encode_utf8(&mut [0; 4]));
            }
            let mut buffer = [0; 8];
            let first = last.encode_utf8(&mut buffer).len();
            let both = first + c.encode_utf8(&mut buffer[first..]).len();
            each(str::from_utf8(&buffer[..both]).expect("two characters one after the other"));
        }
    }

    fn end(&mut self, each: &mut impl FnMut(&str)) {
        let Some(last) = self.last.take() else { return };
        if !std::mem::take(&mut self.paired) {
            each(last.encode_utf8(&mut [0; 4]));
        }
    }
}

fn end_word(word: &mut String, each: &mut impl FnMut(&str)) {
    if !word.is_empty() {
        each(stem(word));
        word.clear();
    }
}

/// Whether a text has any content words.
pub fn has_content(text: &str) -> bool {
    let mut has = false;
    each_term(text, |term| has |= !is_stop_word(term));
    has
}

/// Whether a term is a word that occurs in every text.
pub fn is_stop_word(term: &str) -> bool {
    STOP_WORDS.binary_search(&term).is_ok()
}

/// A word without the most common English endings.
fn stem(word: &str) -> &str {
    let stem = match word.as_bytes() {
        [.., b'i', b'n', b'g'] => &word[..word.len() - 3],
        [.., b'e', b'd'] => &word[..word.len() - 2],
        [.., b's'] => &word[..word.len() - 1],
        _ => word,
    };
    if stem.len() > 3 { stem } else { word }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str) -> Vec<String> {
        let mut out = Vec::new();
        each_term(text, |term| {
            if !is_stop_word(term) {
                out.push(term.to_owned());
            }
        });
        out
    }

    #[test]
    fn words_and_pairs() {
        assert_eq!(terms("What's the launch code of Rocket-17?"), ["launch", "code", "rocket", "17"]);
        assert_eq!(terms("Deploying, deployed, deploys: status"), ["deploy", "deploy", "deploy", "statu"]);
        assert_eq!(terms("北極星專案的預算是多少？"), ["北極", "極星", "星專", "專案", "預算"]);
        assert_eq!(terms("我的貓叫Momo嗎"), ["貓叫", "momo"]);
        assert_eq!(terms("貓的？"), ["貓"]);
        assert_eq!(terms("𠮷野家 É"), ["𠮷野", "野家", "é"]);
        assert_eq!(terms("是嗎？ Is it?"), Vec::<String>::new());
    }

    #[test]
    fn stop_words_are_in_order() {
        assert!(STOP_WORDS.is_sorted());
    }
}
