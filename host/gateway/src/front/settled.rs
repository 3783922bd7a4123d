//! The part of an unfinished answer that can be shown.

use super::lines::without_markers;

/// Returns the beginning of an unfinished text that later text cannot change: up to a blank line that is followed by
/// unindented text. Nothing from a fence on, because a fence may not belong to the answer.
pub(super) fn settled(text: &str) -> &str {
    let before_fence = unfenced(text);
    if before_fence.len() < text.len() {
        return before_fence;
    }
    let (mut at, mut end, mut after_gap) = (0, 0, false);
    for line in text.split_inclusive('\n') {
        let content = line.trim();
        if after_gap && !content.is_empty() && !line.starts_with([' ', '\t']) {
            end = at;
        }
        after_gap = content.is_empty();
        at += line.len();
    }
    &text[..end]
}

/// Returns the text before the first code fence, which may be within a list or a quote.
pub(crate) fn unfenced(text: &str) -> &str {
    let is_fence = |line: &&str| ["```", "~~~"].iter().any(|mark| without_markers(line).starts_with(mark));
    let end = text.split_inclusive('\n').take_while(|line| !is_fence(line)).map(str::len).sum();
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nothing_changes_any_more_is_settled() {
        for (text, shown) in [
            ("", ""),
            ("One", ""),
            ("One\n\n", ""),
            ("One\n\nT", "One\n\n"),
            ("One\ntwo\n\nThree\n\nF", "One\ntwo\n\nThree\n\n"),
            ("- a\n\n  still a", ""),
            ("One\n\n```mra\nask", "One\n\n"),
            ("One\n```\ncode\n```\n\nTwo", "One\n"),
            ("~~~\n\nx", ""),
            ("One\n\n1. ```sh\n   cmd\n   ```\n\nTwo\n\nT", "One\n\n"),
        ] {
            assert_eq!(settled(text), shown, "{text:?}");
        }
    }

    #[test]
    fn nothing_from_a_fence_on_is_told() {
        for (said, wanted) in [
            ("", ""),
            ("The launch is on", "The launch is on"),
            ("Let me look.\n```mra-ask\nrepo: erp", "Let me look.\n"),
            ("One\n\n  ~~~\nx\n~~~\nTwo", "One\n\n"),
            ("a ``` b", "a ``` b"),
            ("One\n- > ~~~\n  > x", "One\n"),
        ] {
            assert_eq!(unfenced(said), wanted, "{said:?}");
        }
    }

    /// In whatever pieces the answer arrives, the settled part only grows and is a prefix of the
    /// answer.
    #[test]
    fn what_is_settled_only_grows() {
        let answer = "# Title\n\nA paragraph\nof two lines.\n\n- one\n- two\n\n1. a\n\n2. b\n\n```\ncode\n\nmore\n```\n\nThe end.";
        let mut before = "";
        for (at, _) in answer.char_indices() {
            let now = settled(&answer[..at]);
            assert!(now.starts_with(before) && answer.starts_with(now), "{at}");
            before = now;
        }
        assert!(!before.is_empty());
    }
}
