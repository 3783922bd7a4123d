//! Cuts text at grapheme boundaries and makes it safe to display.

use std::borrow::Cow;

use unicode_segmentation::{GraphemeCursor, GraphemeIncomplete};

/// The byte offset of character `n`, or the length when there are fewer.
fn byte_of_char(text: &str, n: usize) -> usize {
    if n >= text.len() {
        return text.len();
    }
    text.char_indices().nth(n).map_or(text.len(), |(at, _)| at)
}

/// Whether there is a grapheme boundary at this byte offset.
fn is_boundary(text: &str, at: usize) -> bool {
    if at == 0 || at == text.len() {
        return true;
    }
    let mut cursor = GraphemeCursor::new(at, text.len(), true);
    match cursor.is_boundary(text, 0) {
        Ok(boundary) => boundary,
        // The whole text is one chunk that starts at 0, so nothing can be missing.
        Err(GraphemeIncomplete::InvalidOffset) => false,
        Err(_) => true,
    }
}

/// The longest prefix of `text` that has at most `max` characters and ends at a grapheme boundary.
pub fn head(text: &str, max: usize) -> &str {
    let mut at = byte_of_char(text, max);
    while !is_boundary(text, at) {
        at = text[..at].char_indices().next_back().map_or(0, |(start, _)| start);
    }
    &text[..at]
}

/// Shortens `text` for display: at most `max` characters, and an ellipsis if there are more. A bracket or quotation
/// mark that is open at the cut is closed, or left out if nothing of its content is left.
pub fn shortened(text: &str, max: usize) -> Cow<'_, str> {
    let mut head = head(text, max);
    if head.len() == text.len() {
        return text.into();
    }
    while let Some(before) = head.strip_suffix(|c: char| closing(c).is_some()) {
        head = before;
    }
    let mut open = Vec::new();
    for c in head.chars() {
        open.extend(closing(c));
        if let Some(at) = open.iter().rposition(|&closes| closes == c) {
            open.truncate(at);
        }
    }
    let closed = open.into_iter().rev();
    format!("{head}…{}", closed.collect::<String>()).into()
}

/// The closing counterpart of a Chinese opening bracket or quotation mark.
const fn closing(c: char) -> Option<char> {
    Some(match c {
        '「' => '」',
        '『' => '』',
        '（' => '）',
        '《' => '》',
        '〈' => '〉',
        '【' => '】',
        '〔' => '〕',
        '“' => '”',
        _ => return None,
    })
}

/// The longest suffix of `text` that has at most `max` characters and starts at a grapheme boundary.
pub fn tail(text: &str, max: usize) -> &str {
    if max == 0 {
        return "";
    }
    let mut at = text.char_indices().rev().nth(max - 1).map_or(0, |(at, _)| at);
    while !is_boundary(text, at) {
        at += text[at..].chars().next().map_or(1, char::len_utf8);
    }
    &text[at..]
}

/// The longest prefix of `text` that has at most `max` bytes and ends at a grapheme boundary.
pub fn head_bytes(text: &str, max: usize) -> &str {
    let mut at = max.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    while !is_boundary(text, at) {
        at = text[..at].char_indices().next_back().map_or(0, |(start, _)| start);
    }
    &text[..at]
}

/// Up to `max` characters, from character `start` on.
pub fn slice(text: &str, start: usize, max: usize) -> &str {
    let rest = &text[byte_of_char(text, start)..];
    &rest[..byte_of_char(rest, max)]
}

/// The lines of a text, split at every character that may be taken for a line end.
pub fn lines(text: &str) -> impl Iterator<Item = &str> {
    let ends_line = |c: char| matches!(c, '\n'..='\r' | '\u{85}' | '\u{2028}' | '\u{2029}');
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let Some(end) = text.find(ends_line) else { return rest.take() };
        let ending =
            if text[end..].starts_with("\r\n") { 2 } else { text[end..].chars().next().map_or(1, char::len_utf8) };
        rest = Some(&text[end + ending..]);
        Some(&text[..end])
    })
}

/// The text, safe for a terminal or a page: control characters, which could control a terminal, and invisible
/// characters, which change what is shown, are replaced; line feeds and tabs stay.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.char_indices().any(|(at, c)| is_hidden(text, at, c)) {
        return text.into();
    }
    text.char_indices().map(|(at, c)| if is_hidden(text, at, c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// JSON, safe for a terminal: the characters that [`printable`] replaces are escaped, so that a parser finds the same
/// texts. In JSON such characters occur only within strings.
pub fn printable_json(json: &str) -> Cow<'_, str> {
    if !json.char_indices().any(|(at, c)| is_hidden(json, at, c)) {
        return json.into();
    }
    let mut shown = String::with_capacity(json.len() + 64);
    for (at, c) in json.char_indices() {
        if is_hidden(json, at, c) {
            let units = c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect::<String>();
            shown.push_str(&units);
        } else {
            shown.push(c);
        }
    }
    shown.into()
}

/// Whether this character controls a terminal or is invisible.
fn is_hidden(text: &str, at: usize, c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        JOINER | NON_JOINER => !is_spelling(text, at, c),
        c => c.is_control() || is_unseen(c),
    }
}

/// Text from outside as it goes into a request or a record: invisible characters are removed, whatever their purpose,
/// and everything that may be taken for a line end becomes a line feed. These stay: tabs, joiners between two emoji,
/// joiners and non-joiners between letters of scripts that need them, and one variation selector after the character it
/// applies to (a sequence of selectors could carry hidden text).
pub fn plain(text: &str) -> Cow<'_, str> {
    let ends_line = |c: char| matches!(c, '\u{b}' | '\u{c}' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}');
    let unseen = |at: usize, c: char| match c {
        '\n' | '\t' => false,
        JOINER | NON_JOINER => !is_spelling(text, at, c),
        c if is_selector(c) => text[..at].chars().next_back().is_none_or(|c| is_selector(c) || c.is_whitespace()),
        c => c.is_control() || is_unseen(c),
    };
    if !text.char_indices().any(|(at, c)| unseen(at, c)) {
        return text.into();
    }
    let mut plain = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        match c {
            '\r' if text[at + 1..].starts_with('\n') => {}
            c if ends_line(c) => plain.push('\n'),
            c if unseen(at, c) => {}
            c => plain.push(c),
        }
    }
    plain.into()
}

/// As [`plain`], on one line.
pub fn plain_line(text: &str) -> String {
    plain(text).replace(['\n', '\t'], " ")
}

/// Whether a character is a variation selector, which selects the form of the character before it.
fn is_selector(c: char) -> bool {
    matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

/// Joins two emoji into one, and in some scripts two letters into one form; the non-joiner keeps letters apart.
const JOINER: char = '\u{200d}';
const NON_JOINER: char = '\u{200c}';

/// Whether a joiner or non-joiner at this position is part of the spelling: between two emoji, where nothing next to it
/// is read as a word, or between two letters of a script that uses it.
fn is_spelling(text: &str, at: usize, c: char) -> bool {
    let is_sign = |c: char| c >= '\u{2190}' && !c.is_alphanumeric() && !is_unseen(c);
    let is_letter = |c: char| matches!(c, '\u{620}'..='\u{8ff}' | '\u{900}'..='\u{dff}' | '\u{1780}'..='\u{17b3}' | '\u{17b6}'..='\u{17d3}');
    let (before, after) = (text[..at].chars().next_back(), text[at + c.len_utf8()..].chars().next());
    before.zip(after).is_some_and(|(before, after)| {
        c == JOINER && is_sign(before) && is_sign(after) || is_letter(before) && is_letter(after)
    })
}

/// Whether a character has no width, or changes the direction of the text around it.
fn is_unseen(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Collapses white space: the words of a text on one line, separated by single spaces.
pub fn collapse_whitespace(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// As [`printable`], on one line.
pub fn one_line(text: &str) -> String {
    printable(text).replace(['\n', '\t'], " ")
}

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use unicode_segmentation::UnicodeSegmentation;

    use super::*;

    const FAMILY: &str = "👨‍👩‍👧";

    #[test]
    fn a_family_is_not_torn_apart() {
        let text = format!("a{FAMILY}b");
        assert_eq!(head(&text, 3), "a");
        assert_eq!(head(&text, 6), format!("a{FAMILY}"));
        assert_eq!(tail(&text, 4), "b");
        assert_eq!(head_bytes(&text, 9), "a");
    }

    #[test]
    fn what_is_shown_in_part_leaves_nothing_open() {
        assert_eq!(shortened("預算「很多」", 6), "預算「很多」");
        assert_eq!(shortened("預算「很多」", 5), "預算「很多…」");
        assert_eq!(shortened("預算「很多」", 3), "預算…");
        assert_eq!(shortened("「預算『很多（的）』」嗎", 6), "「預算『很多…』」");
        assert_eq!(shortened("「預算」『很多』", 5), "「預算」…");
        assert_eq!(shortened("」a“b”c", 4), "」a“b…”");
        assert_eq!(shortened(&format!("a{FAMILY}b"), 3), "a…");
    }

    #[test]
    fn a_terminal_is_told_nothing() {
        assert_eq!(printable("a\tb\n中"), "a\tb\n中");
        assert_eq!(printable("\u{1b}[2Jx\u{9b}y\r"), "\u{fffd}[2Jx\u{fffd}y\u{fffd}");
        assert_eq!(one_line("a\tb\n中\u{7}"), "a b 中\u{fffd}");
        assert_eq!(collapse_whitespace(" a\t b\n\n中 "), "a b 中");
    }

    /// Regression: bidirectional controls and invisible characters between letters were printed unchanged.
    #[test]
    fn nothing_is_printed_that_is_not_seen() {
        for hidden in
            "\u{202a}\u{202e}\u{2066}\u{2069}\u{200e}\u{61c}\u{200b}\u{200c}\u{200d}\u{2060}\u{feff}\u{ad}\u{e0041}"
                .chars()
        {
            assert_eq!(printable(&format!("pay{hidden}pal")), "pay\u{fffd}pal", "{hidden:?}");
        }
        let seen = format!("{FAMILY} ❤️\u{200d}🔥 👩🏽\u{200d}🚀 e\u{301} 한국어 हिन्दी عربي می\u{200c}خواهم 預算");
        assert_eq!(printable(&seen), seen);
        assert_eq!(printable("\u{200d}👨\u{200d}"), "\u{fffd}👨\u{fffd}");
    }

    #[test]
    fn what_is_not_seen_is_left_out_and_what_is_seen_stays() {
        assert_eq!(plain("pay\u{202e}\u{200b}pal\u{1b}[2J\u{e0041}"), "paypal[2J");
        assert_eq!(plain("a\r\nb\rc\u{2028}d\te\n"), "a\nb\nc\nd\te\n");
        let seen = format!("{FAMILY} ❤️\u{200d}🔥 葛\u{e0100}城 e\u{301} हिन्दी 預算 می\u{200c}خواهم क्\u{200d}ष");
        assert_eq!(plain(&seen), seen);
        assert_eq!(plain("a\u{200c}b \u{200c}預\u{200d}算\0"), "ab 預算");
        assert_eq!(plain("x\u{fe01}\u{e0101}\u{e0102}y \u{fe0f}\u{200d}z"), "x\u{fe01}y z");
        assert_eq!(plain_line("a\tb\n\u{200f}c"), "a b c");
    }

    #[test]
    fn a_line_ends_wherever_anybody_may_think_so() {
        assert_eq!(lines("a\r\nb\rc\u{2028}d\n").collect::<Vec<_>>(), ["a", "b", "c", "d", ""]);
        assert_eq!(lines("").collect::<Vec<_>>(), [""]);
    }

    proptest! {
        #[test]
        fn both_ends_are_graphemes_of_the_text(text in "(\\PC|👨‍👩‍👧|e\u{301}|\r\n|中){0,40}", max in 0usize..50) {
            let boundaries: Vec<usize> =
                text.grapheme_indices(true).map(|(at, _)| at).chain([text.len()]).collect();
            let head = head(&text, max);
            prop_assert!(text.starts_with(head) && head.chars().count() <= max);
            prop_assert!(boundaries.contains(&head.len()));
            let tail = tail(&text, max);
            prop_assert!(text.ends_with(tail) && tail.chars().count() <= max);
            prop_assert!(boundaries.contains(&(text.len() - tail.len())));
            prop_assert!(boundaries.contains(&head_bytes(&text, max).len()));
        }
    }
}
