//! Names and identifiers, and the common subjects of two sentences.

use std::collections::BTreeSet;

/// Capitalised English words that are not names.
const NOT_NAMES: &str = "I The A An This That It We You They He She If When What Why How Who Where Yes No Please Ok OK Thanks And But So Then \
    Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February March April May June July August September October \
    November December";

/// Titles that follow a name in Chinese.
const TITLES: [&str; 10] = ["經理", "主任", "協理", "副理", "總監", "小姐", "先生", "姐", "哥", "经理"];

/// Names of code and files: with `_`, `::`, an inner full stop or slash, or in camel case.
pub fn identifiers(text: &str) -> Vec<String> {
    let part_of_one = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/' | ':' | '-');
    let pieces = text.split(|c: char| !part_of_one(c)).map(|piece| piece.trim_matches(['.', ':', '-', '/']));
    pieces.filter(|piece| is_identifier(piece)).map(str::to_owned).collect()
}

fn is_identifier(piece: &str) -> bool {
    let has_letter = piece.chars().any(|c| c.is_ascii_alphabetic());
    let hump = piece.as_bytes().windows(2).any(|two| two[0].is_ascii_lowercase() && two[1].is_ascii_uppercase());
    let point = piece.split('.').all(|part| part.chars().count() > 1) && piece.contains('.');
    let is_address = piece.contains("//");
    has_letter && !is_address && (piece.contains(['_', '/']) || piece.contains("::") || hump || point)
}

/// People: `@somebody`, `<@U1>`, capitalised words within an English sentence, a Chinese name with its title.
pub fn names(sentence: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (at, word) in sentence.split_whitespace().enumerate() {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        let capital = bare.chars().next().is_some_and(|c| c.is_ascii_uppercase());
        let is_word = bare.len() > 1 && bare.chars().skip(1).all(|c| c.is_ascii_lowercase());
        if word.starts_with('@') || word.starts_with("<@") {
            names.push(word.trim_end_matches([',', '.', '?', '!', ':']).to_owned());
        } else if at > 0 && capital && is_word && !NOT_NAMES.split_whitespace().any(|not| not == bare) {
            names.push(bare.to_owned());
        }
    }
    names.extend(TITLES.iter().filter_map(|title| chinese_name(sentence, title)));
    names
}

/// The one or two characters before a title, and the title.
fn chinese_name(sentence: &str, title: &str) -> Option<String> {
    let before = &sentence[..sentence.find(title)?];
    let family: String = before.chars().next_back().filter(|c| SURNAMES.contains(*c))?.to_string();
    Some(family + title)
}

/// The most common family names.
const SURNAMES: &str =
    "陳林黃張李王吳劉蔡楊許鄭謝郭洪曾邱廖賴周徐蘇葉莊呂江何蕭羅高简潘朱簡鍾游彭詹胡施沈余趙盧梁顏柯孫魏翁戴范宋方鄧";

/// The subjects of a sentence: its words and pairs of Chinese characters, without figures.
pub fn subjects(sentence: &str) -> BTreeSet<String> {
    let mut subjects = BTreeSet::new();
    for word in sentence.split(|c: char| !c.is_alphanumeric()) {
        let chars: Vec<char> = word.chars().collect();
        if word.is_ascii() {
            if chars.len() > 2 && !word.bytes().any(|byte| byte.is_ascii_digit()) {
                subjects.insert(word.to_lowercase());
            }
            continue;
        }
        let pairs = chars.windows(2).filter(|pair| pair.iter().all(|c| !c.is_ascii()));
        subjects.extend(pairs.map(|pair| pair.iter().collect()));
    }
    subjects
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_identifiers_are_told_from_words() {
        let text = "Ask Priya or @lin about `sales_performances` in app/models/budget.rb, v1.5 and BudgetWorker; not e.g. this.";
        assert_eq!(names(text), ["Priya", "@lin"]);
        assert_eq!(identifiers(text), ["sales_performances", "app/models/budget.rb", "BudgetWorker"]);
        assert_eq!(names("請找財務王副理簽核"), ["王副理"]);
        assert_eq!(names("The launch is on Friday"), Vec::<String>::new());
    }
}
