//! Slack's rules for counting and parsing text.

/// The length in bytes of UTF-8 after escaping `&`, `<` and `>`. Existing escapes, and control sequences in angle
/// brackets, count as they are.
pub(super) fn escaped_bytes(text: &str) -> usize {
    let mut bytes = 0;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let known =
            ["&amp;", "&lt;", "&gt;"].iter().find(|entity| rest.starts_with(**entity)).map(|entity| entity.len());
        let (taken, counted) = match (known, c) {
            (Some(len), _) => (len, len),
            (None, '<') => control_sequence(rest).map_or((1, 4), |sequence| (sequence.len(), sequence.len())),
            (None, '>') => (1, 4),
            (None, '&') => (1, 5),
            (None, other) => (other.len_utf8(), other.len_utf8()),
        };
        bytes += counted;
        rest = &rest[taken..];
    }
    bytes
}

/// The mentions in a text that would notify someone: a user, a group, or everybody.
pub(super) fn mentions(text: &str) -> Vec<&str> {
    let starts = text.match_indices('<').map(|(at, _)| at);
    starts
        .filter_map(|at| control_sequence(&text[at..]))
        .filter(|found| found.strip_prefix("<@").is_some_and(is_of_an_id) || found.starts_with("<!"))
        .collect()
}

/// Whether an id stands before the end of a sequence, or before its label. Ids have no small letters.
fn is_of_an_id(rest: &str) -> bool {
    let id = rest.split(['|', '>']).next().unwrap_or_default();
    !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
}

/// The control sequence `<…>` at the start of a text.
fn control_sequence(text: &str) -> Option<&str> {
    let end = text.find('>')?;
    let sequence = &text[..=end];
    let inner = &text[1..end];
    let controls = inner.starts_with(['@', '#', '!']) || inner.contains("://") || inner.starts_with("mailto:");
    (controls && !inner.contains('\n')).then_some(sequence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_after_escaping() {
        for (text, bytes) in [
            ("abc", 3),
            ("中文", 6),
            ("a & b", 9),
            ("a &amp; b", 9),
            ("1 < 2 > 1", 15),
            ("&lt;@U1&gt;", 11),
            ("<@U1> hi", 8),
            ("<https://a.b|c>", 15),
        ] {
            assert_eq!(escaped_bytes(text), bytes, "{text}");
        }
    }

    #[test]
    fn mentions_are_seen() {
        assert_eq!(mentions("hi <@U1> and <!channel>, see <https://a.b>"), ["<@U1>", "<!channel>"]);
        assert!(mentions("hi &lt;@U1&gt; 1 < 2 > @here List<@NotNull String>").is_empty());
    }
}
