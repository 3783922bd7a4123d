//! Cuts within one line: after a sentence, after a word, between two graphemes.

use std::ops::Range;

use pmk_core::text::head_bytes;

/// The longest label of a link, code span or emphasis that is kept whole.
const MAX_SPAN_BYTES: usize = 500;
/// The longest address.
const MAX_ADDRESS_BYTES: usize = 2_000;
/// The longest name of an emoji.
const MAX_EMOJI_BYTES: usize = 64;

/// Returns the best place to cut `text`, which is at most one line, at or before `limit`; 0 if the text
/// begins with something that must not be cut and extends beyond the limit. In code, only words and
/// graphemes matter.
pub(super) fn best_cut(text: &str, limit: usize, prose: bool) -> usize {
    let whole = if prose { unbroken(text) } else { Vec::new() };
    let inside = |at: usize| {
        let next = whole.partition_point(|range| range.end <= at);
        whole.get(next).filter(|range| range.start < at)
    };
    let limit = inside(limit).map_or(limit, |range| range.start);
    if limit == 0 {
        return 0;
    }
    let (mut sentence, mut word) = (None, None);
    let mut ended = None;
    for (at, c) in text[..limit].char_indices() {
        ended = match c {
            '。' | '！' | '？' | '…' | '；' => Some(End::Anywhere),
            '.' | '!' | '?' | ';' => Some(End::BeforeSpace),
            '」' | '』' | '”' | '’' | '）' | '》' | ')' | '"' | '\'' | '*' | '_' => ended,
            _ => None,
        };
        let end = at + c.len_utf8();
        let next = text[end..].chars().next();
        if end < limit / 2 || inside(end).is_some() || next.is_some_and(goes_with_what_is_before) {
            continue;
        }
        let spaced = next.is_none_or(char::is_whitespace);
        if ended.is_some_and(|how| prose && (how == End::Anywhere || spaced)) {
            sentence = Some(end);
        }
        if spaced || c.is_whitespace() || (prose && matches!(c, '，' | '、' | '：')) {
            word = Some(end);
        }
    }
    sentence.or(word).unwrap_or_else(|| {
        let whole_graphemes = head_bytes(text, limit).len();
        match inside(whole_graphemes) {
            _ if whole_graphemes == 0 => limit,
            Some(range) if range.start > 0 => range.start,
            _ => whole_graphemes,
        }
    })
}

/// Where a mark may end a sentence.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Anywhere,
    /// `1.5` and `a.b` are not two sentences.
    BeforeSpace,
}

/// Returns whether a line should not begin with this mark.
fn goes_with_what_is_before(c: char) -> bool {
    matches!(c, '。' | '！' | '？' | '…' | '；' | '，' | '、' | '：' | '」' | '』' | '”' | '’' | '）' | '》')
}

/// Returns what must not be cut: links, mentions, addresses, names of emoji, code spans and short
/// emphasis. The ranges are ascending and disjoint.
fn unbroken(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let len = match c {
            '[' | '!' => link(rest),
            '<' => enclosed(rest, "<", ">", MAX_ADDRESS_BYTES),
            '`' => {
                let run = &rest[..rest.len() - rest.trim_start_matches('`').len()];
                enclosed(rest, run, run, MAX_SPAN_BYTES)
            }
            '*' => enclosed(rest, "**", "**", MAX_SPAN_BYTES),
            '~' => enclosed(rest, "~~", "~~", MAX_SPAN_BYTES),
            ':' => emoji(rest),
            'h' => address(rest),
            _ => None,
        };
        if let Some(len) = len {
            found.push(at..at + len);
        }
        at += len.unwrap_or(c.len_utf8());
    }
    found
}

/// Returns the length of a text between two marks, including the marks.
fn enclosed(text: &str, open: &str, close: &str, max_bytes: usize) -> Option<usize> {
    let inner = text.strip_prefix(open)?;
    let inner = &inner[..inner.floor_char_boundary(max_bytes)];
    let len = inner.find(close).filter(|len| *len > 0)?;
    Some(open.len() + len + close.len())
}

/// Returns the length of `[label](address)` or `![label](address)`.
fn link(text: &str) -> Option<usize> {
    let bracket = text.strip_prefix('!').unwrap_or(text);
    let label = balanced(bracket, '[', ']', MAX_SPAN_BYTES)?;
    let address = balanced(&bracket[label..], '(', ')', MAX_ADDRESS_BYTES)?;
    Some(text.len() - bracket.len() + label + address)
}

/// Returns the length of the text from the first character, which opens something, to where it is
/// closed.
fn balanced(text: &str, open: char, close: char, max_bytes: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (at, c) in text.char_indices().take_while(|(at, _)| *at < max_bytes) {
        if c == open {
            depth += 1;
        } else if c == close {
            depth = depth.checked_sub(1)?;
        }
        if depth == 0 {
            return (at > 0).then_some(at + c.len_utf8());
        }
    }
    None
}

/// Returns the length of `:name:`.
fn emoji(text: &str) -> Option<usize> {
    let name = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-' | b'+');
    let len = text.bytes().skip(1).take(MAX_EMOJI_BYTES).take_while(name).count();
    (len > 0 && text[1 + len..].starts_with(':')).then_some(len + 2)
}

/// Returns the length of an address that stands by itself.
fn address(text: &str) -> Option<usize> {
    (text.starts_with("http://") || text.starts_with("https://"))
        .then(|| text.bytes().take(MAX_ADDRESS_BYTES).take_while(u8::is_ascii_graphic).count())
}
