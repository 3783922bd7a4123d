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

/// A sentence with more subjects is about more than the only one of another.
const ABOUT_ONE: usize = 4;

/// Whether an older sentence has the same subject as a newer one of this kind, which then replaces it. A correction may
/// also say why.
pub fn is_outdated_by(older: &Subjects, newer: &Subjects, kind: Kind) -> bool {
    let (smaller, larger) = (older.count().min(newer.count()), older.count().max(newer.count()));
    let may_be_longer = kind == Kind::Correction && older.count() == 1;
    let is_alike = smaller > 1 && older.common(newer) * 5 >= smaller * 3
        || smaller == 1 && (larger <= ABOUT_ONE || may_be_longer) && older.common(newer) == 1;
    is_alike && !older.is_another(newer)
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

    fn is_outdated_by(older: &str, newer: &str) -> bool {
        super::is_outdated_by(&Subjects::of(older), &Subjects::of(newer), kind(newer).expect("a fact"))
    }

    #[test]
    fn the_newer_of_two_about_one_thing_holds() {
        assert!(is_outdated_by("The launch is on Friday.", "Actually, the launch is on Monday."));
        assert!(is_outdated_by("上線日是 5 月 3 日。", "更正：上線日是 5 月 9 日。"));
        assert!(is_outdated_by("Release 2.3 ships on Friday.", "Release 2.3 ships on Monday."));
        assert!(!is_outdated_by("The launch is on Friday.", "The budget is 40,000."));
    }

    /// Regression: a correction that said a little more was taken for one of something else.
    #[test]
    fn a_correction_that_says_why_replaces_what_it_corrects() {
        for newer in [
            "Sorry, the launch actually moved to next Monday.",
            "Correction: the launch was moved to Monday because QA needs more time.",
        ] {
            assert!(is_outdated_by("The launch is on Friday.", newer), "{newer}");
        }
    }

    /// Regression: only a quarter was told from the figure in a name.
    #[test]
    fn dates_amounts_and_people_are_not_told_apart_as_names_are() {
        for (older, newer) in [
            ("The launch is in Q3.", "The launch is in Q4."),
            ("The launch is in H1.", "The launch is in H2."),
            ("The launch is in W23.", "The launch is in W25."),
            ("The launch is in CW23.", "The launch is in CW25."),
            ("The launch is in FY26.", "The launch is in FY27."),
            ("上線在第 2 季。", "上線在第 3 季。"),
            ("上線在第2週。", "上線在第3週。"),
            ("上線在第 2 天。", "上線在第 3 天。"),
            ("The budget is USD40,000.", "The budget is USD50,000."),
            ("The budget is NTD 40,000.", "The budget is NTD50,000."),
            ("The launch is on Friday, <@U0123ABC>.", "The launch is on Monday, <@U0456DEF7>."),
            ("@U0123ABC4 the launch is on Friday.", "@U0456DEF the launch is on Monday."),
        ] {
            assert!(is_outdated_by(older, newer), "{older} {newer}");
        }
        assert!(!is_outdated_by("<@U0123ABC> ships v1 on Friday.", "<@U0123ABC> ships v2 on Monday."));
    }

    /// Regression: words that every sentence has, and days, were taken for what both are about.
    #[test]
    fn what_is_said_of_something_else_outdated_a_fact() {
        for (older, newer) in [
            ("Release 2.3 ships on Friday.", "Release 2.4 ships on Monday."),
            ("v1 ends in May.", "v2 ends in June."),
            ("PMK-17 is due on Friday.", "PMK-18 is due on Monday."),
            ("第 2 期週五上線。", "第 3 期週一上線。"),
            ("The launch is on Friday.", "The review is on Friday."),
            ("The design was approved today.", "The contract was approved today."),
            ("上線改到週五。", "審查改到週五。"),
            ("The launch is on Friday.", "We will mail all customers the launch video on Monday."),
        ] {
            assert!(!is_outdated_by(older, newer), "{older} {newer}");
        }
    }
}
