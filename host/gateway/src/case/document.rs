//! A case as one Markdown file, for teams to keep.
//!
//! Everything in it but the headings is written by others: lines are escaped, and messages are in fences that are
//! longer than any fence in them. So nothing breaks out of its place, and a terminal that shows the file executes none
//! of it.

use std::fmt::Write;

use pmk_core::{
    Language,
    text::{collapse_whitespace, printable},
};
use pmk_system::clock::time;

use super::{Case, CaseMessage, NoteKind};

/// The host's own text in it.
struct Words {
    case: &'static str,
    colon: &'static str,
    channel: &'static str,
    opened: &'static str,
    closed: &'static str,
    open: &'static str,
    by: &'static str,
    hypotheses: &'static str,
    questions: &'static str,
    messages: &'static str,
    none: &'static str,
    people: &'static str,
    comma: &'static str,
    within: &'static str,
}

const ENGLISH: Words = Words {
    case: "Case",
    colon: ": ",
    channel: "Channel: ",
    opened: "Opened: ",
    closed: "Closed: ",
    open: "Still open",
    by: " by ",
    hypotheses: "Hypotheses",
    questions: "Open questions",
    messages: "Messages",
    none: "None.",
    people: "several people",
    comma: ", ",
    within: "in",
};

const CHINESE: Words = Words {
    case: "案件",
    colon: "：",
    channel: "頻道：",
    opened: "開案：",
    closed: "結案：",
    open: "進行中",
    by: "，由 ",
    hypotheses: "假設",
    questions: "待查問題",
    messages: "訊息",
    none: "沒有。",
    people: "好幾個人",
    comma: "，",
    within: "在",
};

/// Returns the file, with headings in that language.
pub fn document(case: &Case, messages: &[CaseMessage], language: Language) -> String {
    let words = match language {
        Language::English => ENGLISH,
        Language::TraditionalChinese => CHINESE,
    };
    let by = |user: Option<&str>| user.map(|user| format!("{}{}", words.by, inline(user))).unwrap_or_default();
    let mut out = format!("# {} {}{}{}\n\n", words.case, case.id, words.colon, inline(&case.title));
    line(&mut out, format_args!("- {}{}", words.channel, inline(&case.channel)));
    line(&mut out, format_args!("- {}{}{}", words.opened, time(case.opened_at_ms), by(case.opened_by.as_deref())));
    match &case.closed {
        Some((at_ms, user)) => {
            line(&mut out, format_args!("- {}{}{}", words.closed, time(*at_ms), by(user.as_deref())));
        }
        None => line(&mut out, format_args!("- {}", words.open)),
    }
    for (kind, heading) in [(NoteKind::Hypothesis, words.hypotheses), (NoteKind::Question, words.questions)] {
        line(&mut out, format_args!("\n## {heading}\n"));
        for kept in case.notes_of(kind) {
            line(&mut out, format_args!("- {} ({})", inline(&kept.note.text), time(kept.at_ms)));
        }
        if case.notes_of(kind).next().is_none() {
            line(&mut out, format_args!("{}", words.none));
        }
    }
    line(&mut out, format_args!("\n## {}\n", words.messages));
    if messages.is_empty() {
        line(&mut out, format_args!("{}", words.none));
    }
    let Words { comma, within, .. } = words;
    for (number, message) in (1..).zip(messages) {
        let who = message.user.as_deref().map_or_else(|| author(message, &words).to_owned(), inline);
        let (at, key) = (time(message.at_ms), inline(&message.key.to_string()));
        line(&mut out, format_args!("### {number}. {who}{comma}{at}{comma}{within} {key}\n"));
        line(&mut out, format_args!("{}\n", fenced(&message.message.plain_text())));
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

/// Writing to a String never fails.
fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = writeln!(out, "{text}");
}

/// Returns the author of a message that is not from a single person.
fn author(message: &CaseMessage, words: &Words) -> &'static str {
    match message.message.role {
        pmk_core::Role::Assistant => "pmk",
        pmk_core::Role::User => words.people,
    }
}

/// Returns text escaped for Markdown, on one line.
fn inline(words: &str) -> String {
    let words = collapse_whitespace(words);
    let words = printable(&words);
    let mut out = String::with_capacity(words.len() + 8);
    let digits = words.chars().take_while(char::is_ascii_digit).count();
    for (at, c) in words.chars().enumerate() {
        let begins_a_list = matches!(c, '-' | '+') && at == 0 || matches!(c, '.' | ')') && at == digits && digits > 0;
        if begins_a_list || "\\`*_{}[]<>#|~&!=".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Returns text unchanged, line by line, in a fence.
fn fenced(words: &str) -> String {
    let words = printable(words.trim_end());
    let longest = words.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}text\n{words}\n{fence}")
}

#[cfg(test)]
mod tests {
    use comrak::{Arena, Options, nodes::NodeValue, parse_document};
    use pmk_core::Message;
    use proptest::prelude::*;

    use super::*;
    use crate::case::testing::case;

    fn message(id: i64, user: Option<&str>, message: Message) -> CaseMessage {
        CaseMessage {
            id,
            key: "slack:channel:C1:17.01".parse().expect("a key"),
            user: user.map(str::to_owned),
            at_ms: 1_760_000_000_000 + id * 1_000,
            message,
        }
    }

    #[test]
    fn a_case_is_one_file() {
        let mut case =
            case("登入失敗 <since May>", &[(NoteKind::Hypothesis, "快取 *過期*"), (NoteKind::Question, "1. 哪一版？")]);
        case.closed = Some((1_760_000_600_000, Some("U2".into())));
        let messages = [
            message(1, Some("U1"), Message::user("為什麼？\n```sh\nls\n```")),
            message(2, None, Message::assistant("因為 **快取**。")),
            message(3, None, Message::user("U1: 真的？\n\nU2: 真的")),
        ];
        insta::assert_snapshot!(document(&case, &messages, Language::English));
        insta::assert_snapshot!("a_case_in_chinese", document(&case, &messages, Language::TraditionalChinese));
    }

    #[test]
    fn an_empty_case_is_one_too() {
        insta::assert_snapshot!(document(&case("t", &[]), &[], Language::English));
    }

    /// Returns the kinds of blocks at the top of a document, and the number of items, links and pieces of HTML
    /// anywhere in it.
    fn shape(markdown: &str) -> (Vec<String>, usize, usize) {
        let arena = Arena::new();
        let root = parse_document(&arena, markdown, &Options::default());
        let name =
            |value: &NodeValue| format!("{value:?}").split(['(', ' ', '{']).next().unwrap_or_default().to_owned();
        let blocks = root.children().map(|node| name(&node.data().value)).collect();
        let count = |is: fn(&NodeValue) -> bool| root.descendants().filter(|node| is(&node.data().value)).count();
        let foreign = count(|value| {
            matches!(
                value,
                NodeValue::HtmlBlock(_) | NodeValue::HtmlInline(_) | NodeValue::Link(_) | NodeValue::Image(_)
            )
        });
        (blocks, count(|value| matches!(value, NodeValue::Item(_))), foreign)
    }

    proptest! {
        #[test]
        fn whatever_people_write_the_file_has_the_same_shape(
            words in prop::collection::vec(
                prop_oneof![
                    Just("\n```\n".to_owned()), Just("~~~".to_owned()), Just("\n# x\n".to_owned()), Just("<!--".to_owned()),
                    Just("[a]: http://x\n".to_owned()), Just("![a](b)".to_owned()), Just("- ".to_owned()),
                    Just("\u{1b}[2J".to_owned()), Just("\r\n===\n".to_owned()), Just("1. ".to_owned()), Just("`".to_owned()),
                    Just("&lt;".to_owned()), Just("\u{2028}".to_owned()), Just("\u{202e}".to_owned()), "\\PC{0,6}",
                ],
                0..12,
            ),
        ) {
            let words = words.concat();
            let file = |title: &str, note: &str, user: &str, said: &str| {
                let mut case = case(title, &[(NoteKind::Hypothesis, note), (NoteKind::Question, note)]);
                case.opened_by = Some(user.to_owned());
                let said = [message(1, Some(user), Message::user(said)), message(2, None, Message::assistant(said))];
                document(&case, &said, Language::English)
            };
            let written = file(&words, &words, &words, &words);
            prop_assert_eq!(shape(&written), shape(&file("t", "n", "U1", "said")), "{}", written);
            prop_assert!(!written.chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
        }
    }
}
