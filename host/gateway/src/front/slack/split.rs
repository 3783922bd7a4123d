//! Cutting a reply into messages that Slack takes.
//!
//! `chat.update` refuses a text of more than 4,000 bytes of UTF-8, counted after escaping. Parts of at
//! most [`MAX_PART_BYTES`] stay below that with some room.

use pmk_core::text;

use super::mrkdwn::escaped_len;

/// The largest part, in bytes of UTF-8 after escaping.
pub(super) const MAX_PART_BYTES: usize = 3_900;

/// Cuts `reply` into parts that take at most `max_bytes` once they are escaped.
///
/// A cut falls at a line end; where there is none in the latter half of a part, at a space or behind
/// Chinese punctuation; where there is none either, between two graphemes. Only a grapheme that is too
/// large for a part of its own is torn apart. White space at a cut, and at both ends of the reply, is
/// left out, except for the indentation of a part's first line. No part is empty, so a reply of nothing
/// but white space has no parts.
pub(super) fn split(reply: &str, max_bytes: usize) -> Vec<String> {
    let mut parts = Vec::new();
    let mut rest = without_blank_lines(reply.trim_end());
    while !rest.is_empty() {
        let fits = fitting(rest, max_bytes);
        let cut = if fits == rest.len() { fits } else { best_cut(rest, fits) };
        let part = rest[..cut].trim_end();
        if !part.is_empty() {
            parts.push(part.to_owned());
        }
        rest = without_blank_lines(&rest[cut..]);
    }
    parts
}

/// How many bytes of `text` fit into `max_bytes` once escaped; at least one character.
fn fitting(text: &str, max_bytes: usize) -> usize {
    let mut escaped = 0;
    for (at, c) in text.char_indices() {
        escaped += escaped_len(c);
        if escaped > max_bytes {
            return if at == 0 { c.len_utf8() } else { at };
        }
    }
    text.len()
}

/// The best place to cut at or before `fits`, which lies within `text`.
fn best_cut(text: &str, fits: usize) -> usize {
    let (part, next) = text.split_at(fits);
    let good = |&at: &usize| at >= fits / 2 && text::head_bytes(text, at).len() == at;
    // A line end or a space just behind the part costs it nothing, for it is left out.
    let line_end = || if next.starts_with(['\r', '\n']) { Some(fits) } else { part.rfind('\n').map(|at| at + 1) };
    let word_end = || match next.starts_with(char::is_whitespace) {
        true => Some(fits),
        false => part.char_indices().rfind(|&(_, c)| ends_a_word(c)).map(|(at, c)| at + c.len_utf8()),
    };
    line_end().filter(good).or_else(|| word_end().filter(good)).unwrap_or_else(|| {
        match text::head_bytes(text, fits).len() {
            0 => fits,
            grapheme_end => grapheme_end,
        }
    })
}

fn ends_a_word(c: char) -> bool {
    c.is_whitespace() || matches!(c, '，' | '。' | '；' | '：' | '！' | '？' | '、')
}

/// The text from its first line that is not blank.
fn without_blank_lines(text: &str) -> &str {
    let ink = text.len() - text.trim_start().len();
    &text[text[..ink].rfind('\n').map_or(0, |at| at + 1)..]
}

#[cfg(test)]
mod tests {
    use pmk_core::text::head_bytes;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_short_reply_is_one_part() {
        assert_eq!(split("hello", 10), ["hello"]);
        assert_eq!(split("\n  indented\n\n", 20), ["  indented"]);
    }

    #[test]
    fn nothing_to_say_has_no_parts() {
        assert!(split("", 10).is_empty());
        assert!(split(" \n\t ", 10).is_empty());
    }

    #[test]
    fn lines_are_kept_whole() {
        assert_eq!(split("one two\nthree four\nfive", 12), ["one two", "three four", "five"]);
        assert_eq!(split("one\n    code\nend", 9), ["one", "    code", "end"]);
    }

    #[test]
    fn words_are_kept_whole_where_lines_are_too_long() {
        assert_eq!(split("one two three four", 9), ["one two", "three", "four"]);
        assert_eq!(split("早安，世界您好", 15), ["早安，", "世界您好"]);
    }

    #[test]
    fn escaping_counts() {
        assert_eq!(split("&&&&", 10), ["&&", "&&"]);
        assert_eq!(split("<b>x", 9), ["<b>", "x"]);
    }

    #[test]
    fn a_grapheme_larger_than_a_part_is_torn_apart() {
        let zalgo = format!("e{}", "\u{301}".repeat(10));
        assert_eq!(split(&zalgo, 5).concat(), zalgo);
    }

    proptest! {
        #[test]
        fn parts_are_the_reply(reply in "(\\PC|[ \n<>&]|\r\n|👨‍👩‍👧|e\u{301}|中|。){0,200}", max in 5usize..60) {
            let parts = split(&reply, max);
            let mut rest = reply.as_str();
            for part in &parts {
                prop_assert!(!part.trim().is_empty());
                prop_assert!(part.chars().map(escaped_len).sum::<usize>() <= max);
                let gap = rest.find(part.as_str());
                prop_assert!(gap.is_some(), "{part:?} is not part of {rest:?}");
                let gap = gap.unwrap_or_default();
                prop_assert!(rest[..gap].trim().is_empty(), "{:?} was left out", &rest[..gap]);
                rest = &rest[gap + part.len()..];
            }
            prop_assert!(rest.trim().is_empty(), "{rest:?} was left out");
        }

        #[test]
        fn graphemes_that_fit_are_whole(reply in "(👨‍👩‍👧|e\u{301}|中|a){0,80}", max in 18usize..60) {
            let mut at = 0;
            for part in split(&reply, max) {
                at += part.len();
                prop_assert_eq!(head_bytes(&reply, at).len(), at);
            }
            prop_assert_eq!(at, reply.len());
        }

        #[test]
        fn no_part_but_the_last_is_wastefully_small(reply in "[a-z]{1,5}([ \n][a-z]{1,5}){0,80}", max in 10usize..60) {
            let parts = split(&reply, max);
            for part in &parts[..parts.len() - 1] {
                prop_assert!(part.len() + 1 >= max / 2, "{part:?}");
            }
        }
    }
}
