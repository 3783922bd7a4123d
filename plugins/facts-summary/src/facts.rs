//! The facts that a sentence states.

use std::collections::BTreeSet;

const DECIDED: &str =
    "決定 決議 定案 同意 採用 就用 確定 說好 拍板 decided agreed let's chose chosen will go settled approved final";
const CORRECTED: &str = "更正 改成 改為 改到 改用 修正 其實 應該是 不是 抱歉 actually correction instead rather meant changed moved wrong sorry";
const DATES: &str = "月 號 週 周 星期 禮拜 季 明天 後天 年底 monday tuesday wednesday thursday friday saturday sunday january february march \
    april june july august september october november december tomorrow today deadline week quarter";

/// The kind of fact that a sentence states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Decision,
    Correction,
    /// A number or a date.
    Figure,
}

/// The kind of fact that a sentence states, if any. A question states none.
pub fn kind(sentence: &str) -> Option<Kind> {
    if is_question(sentence) {
        return None;
    }
    let lower = sentence.to_lowercase();
    let says = |list: &str| list.split_whitespace().any(|word| has_word(&lower, word));
    let has_figure = lower.bytes().any(|byte| byte.is_ascii_digit());
    if says(CORRECTED) {
        Some(Kind::Correction)
    } else if says(DECIDED) {
        Some(Kind::Decision)
    } else if has_figure || says(DATES) && lower.split_whitespace().count() > 2 {
        Some(Kind::Figure)
    } else {
        None
    }
}

/// Whether it is a question.
pub fn is_question(sentence: &str) -> bool {
    sentence.trim_end().ends_with(['?', '？', '嗎', '呢'])
}

/// Whether an older sentence has the same subject as a newer one, which then replaces it.
pub fn is_outdated_by(older: &BTreeSet<String>, newer: &BTreeSet<String>) -> bool {
    let smaller = older.len().min(newer.len());
    smaller > 0 && older.intersection(newer).count() * 5 >= smaller * 3
}

/// Whether a text contains a word: English ones as whole words, Chinese ones anywhere.
fn has_word(text: &str, word: &str) -> bool {
    if !word.is_ascii() {
        return text.contains(word);
    }
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '\'').any(|part| part == word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::subjects;

    #[test]
    fn sentences_settle_what_they_say() {
        for (sentence, expected) in [
            ("We agreed on PostgreSQL.", Some(Kind::Decision)),
            ("就用方案 B。", Some(Kind::Decision)),
            ("Actually, the launch moved to Monday.", Some(Kind::Correction)),
            ("上線改到週五。", Some(Kind::Correction)),
            ("The budget is 40,000.", Some(Kind::Figure)),
            ("預算是 40,000 元。", Some(Kind::Figure)),
            ("When is the launch on the 5th?", None),
            ("預算是 40,000 元嗎", None),
            ("Nice work.", None),
        ] {
            assert_eq!(kind(sentence), expected, "{sentence}");
        }
    }

    #[test]
    fn the_newer_of_two_about_one_thing_holds() {
        let is_outdated_by = |older: &str, newer: &str| super::is_outdated_by(&subjects(older), &subjects(newer));
        assert!(is_outdated_by("The launch is on Friday.", "Actually, the launch is on Monday."));
        assert!(is_outdated_by("上線日是 5 月 3 日。", "更正：上線日是 5 月 9 日。"));
        assert!(!is_outdated_by("The launch is on Friday.", "The budget is 40,000."));
    }
}
