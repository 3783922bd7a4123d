//! The facts that a sentence states.

use crate::words::{Subjects, has_letter};

/// The kind of fact that a sentence states, the strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Correction,
    Decision,
    /// A number or a date.
    Figure,
}

/// The kind of fact that a sentence states, if any. A question states none.
pub fn kind(sentence: &str) -> Option<Kind> {
    if is_question(sentence) {
        return None;
    }
    let lower = sentence.to_ascii_lowercase();
    let english = if has_letter(&lower) { lower.as_str() } else { "" };
    let words = english.split(|c: char| !c.is_ascii_alphanumeric() && c != '\'');
    let chinese = lower.char_indices().filter(|(_, c)| !c.is_ascii());
    let signs = words.filter_map(of_word).chain(chinese.filter_map(|(at, _)| of_beginning(&lower[at..])));
    match signs.min() {
        Some(Kind::Figure) if lower.split_whitespace().nth(2).is_some() => Some(Kind::Figure),
        None | Some(Kind::Figure) => lower.bytes().any(|byte| byte.is_ascii_digit()).then_some(Kind::Figure),
        stated => stated,
    }
}

/// What an English word in lower case is a sign of.
fn of_word(word: &str) -> Option<Kind> {
    match word {
        "actually" | "correction" | "instead" | "rather" | "meant" | "changed" | "moved" | "wrong" | "sorry" => {
            Some(Kind::Correction)
        }
        "decided" | "agreed" | "let's" | "chose" | "chosen" | "will" | "go" | "settled" | "approved" | "final" => {
            Some(Kind::Decision)
        }
        "monday" | "tuesday" | "wednesday" | "thursday" | "friday" | "saturday" | "sunday" | "january" | "february"
        | "march" | "april" | "june" | "july" | "august" | "september" | "october" | "november" | "december"
        | "tomorrow" | "today" | "deadline" | "week" | "quarter" => Some(Kind::Figure),
        _ => None,
    }
}

/// What the beginning of a Chinese text is a sign of. It is asked at each character, so it looks at no more than it has
/// to.
fn of_beginning(text: &str) -> Option<Kind> {
    let mut chars = text.chars();
    match (chars.next()?, chars.next().unwrap_or_default()) {
        ('更' | '修', '正') | ('改', '成' | '為' | '到' | '用') | ('其', '實') | ('不', '是') | ('抱', '歉') => {
            Some(Kind::Correction)
        }
        ('應', '該') if chars.next() == Some('是') => Some(Kind::Correction),
        ('決', '定' | '議')
        | ('定', '案')
        | ('同', '意')
        | ('採' | '就', '用')
        | ('確', '定')
        | ('說', '好')
        | ('拍', '板') => Some(Kind::Decision),
        ('月' | '號' | '週' | '周' | '季', _) | ('星', '期') | ('禮', '拜') | ('明' | '後', '天') | ('年', '底') => {
            Some(Kind::Figure)
        }
        _ => None,
    }
}

/// Whether it is a question.
pub fn is_question(sentence: &str) -> bool {
    sentence.trim_end().ends_with(['?', '？', '嗎', '呢'])
}

/// Whether an older sentence has the same subject as a newer one, which then replaces it.
pub fn is_outdated_by(older: &Subjects, newer: &Subjects) -> bool {
    let smaller = older.count().min(newer.count());
    smaller > 0 && older.common(newer) * 5 >= smaller * 3
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let is_outdated_by =
            |older: &str, newer: &str| super::is_outdated_by(&Subjects::of(older), &Subjects::of(newer));
        assert!(is_outdated_by("The launch is on Friday.", "Actually, the launch is on Monday."));
        assert!(is_outdated_by("上線日是 5 月 3 日。", "更正：上線日是 5 月 9 日。"));
        assert!(!is_outdated_by("The launch is on Friday.", "The budget is 40,000."));
    }
}
