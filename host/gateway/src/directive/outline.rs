//! Finds the fenced blocks of a Markdown text that belong to the text itself.

use std::{ops::Range, sync::LazyLock};

use comrak::{
    Arena, Node, Options,
    nodes::{NodeValue, Sourcepos},
    parse_document,
};
use regex::Regex;

/// An HTML tag: whether it is a closing tag, its name, whether it is self-closing.
static TAG: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"<(/?)([A-Za-z][A-Za-z0-9-]*)(?:\s[^<>]*?)?(/?)>").expect("it is tested"));

/// Elements that need no closing tag.
const WITHOUT_END: [&str; 16] = [
    "area", "base", "br", "col", "embed", "hr", "img", "input", "li", "link", "meta", "p", "param", "source", "track",
    "wbr",
];

/// A fenced block at the top level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// From the first backtick to the last, without the line end after it.
    pub range: Range<usize>,
    /// The text between the fences.
    pub body: Range<usize>,
    /// The text after the opening fence.
    pub info: String,
    pub is_closed: bool,
}

/// Returns the backtick-fenced blocks that belong to the text itself, in order: not within a list, quote, other
/// fence or HTML element.
pub(super) fn fences(text: &str) -> Vec<Block> {
    let arena = Arena::new();
    let document = parse_document(&arena, text, &Options::default());
    let lines = lines(text);
    let mut open_elements: Vec<String> = Vec::new();
    let mut blocks = Vec::new();
    for node in document.children() {
        let data = node.data();
        match &data.value {
            NodeValue::HtmlBlock(html) => {
                for (name, is_end) in tags(&html.literal) {
                    match is_end {
                        true => close(&mut open_elements, &name),
                        false => open_elements.push(name),
                    }
                }
            }
            NodeValue::CodeBlock(code) if code.fenced && code.fence_char == b'`' && open_elements.is_empty() => {
                blocks.extend(block(text, &lines, data.sourcepos, code.info.trim(), code.closed));
            }
            // A closing tag may be within a line. An opening tag there does not count: it may be
            // `Vec<String>`.
            _ => closed_inline(node).iter().for_each(|name| close(&mut open_elements, name)),
        }
    }
    blocks
}

/// Returns the names of the elements that are closed within the lines of a node, and were not opened there.
fn closed_inline(node: Node<'_>) -> Vec<String> {
    let (mut opened, mut closed) = (Vec::new(), Vec::new());
    for node in node.descendants() {
        let data = node.data();
        let NodeValue::HtmlInline(html) = &data.value else { continue };
        for (name, is_end) in tags(html) {
            match is_end {
                false => opened.push(name),
                true if opened.contains(&name) => close(&mut opened, &name),
                true => closed.push(name),
            }
        }
    }
    closed
}

/// Closes the last open element of that name, and those within it; a closing tag of none means nothing.
fn close(open: &mut Vec<String>, name: &str) {
    if let Some(at) = open.iter().rposition(|it| it == name) {
        open.truncate(at);
    }
}

/// Returns a text without quoted material: quotes, code and HTML.
pub fn own_words(text: &str) -> String {
    let arena = Arena::new();
    let document = parse_document(&arena, text, &Options::default());
    let lines = lines(text);
    let mut own = String::new();
    for node in document.children() {
        let data = node.data();
        if matches!(data.value, NodeValue::CodeBlock(_) | NodeValue::HtmlBlock(_)) {
            continue;
        }
        let (first, last) = (data.sourcepos.start.line.saturating_sub(1), data.sourcepos.end.line);
        let of_node = lines.get(first..last.min(lines.len())).unwrap_or_default();
        let of_node = of_node.iter().map(|line| &text[line.clone()]);
        match data.value {
            NodeValue::BlockQuote => own.extend(below_quote(of_node)),
            _ => own.extend(of_node),
        }
        own.push('\n');
    }
    own
}

/// Returns the lines of a quote without a mark. Markdown takes the line below a quote as its continuation; people write
/// their own words there, except below Slack's mark for all that follows.
fn below_quote<'a>(quote: impl Iterator<Item = &'a str>) -> impl Iterator<Item = &'a str> {
    quote
        .map(|line| (line, line.trim_start()))
        .take_while(|(_, line)| !line.starts_with(">>>"))
        .filter(|(_, line)| !line.starts_with('>'))
        .map(|(line, _)| line)
}

fn block(text: &str, lines: &[Range<usize>], at: Sourcepos, info: &str, is_closed: bool) -> Option<Block> {
    let (first, last) = (lines.get(at.start.line.checked_sub(1)?)?, lines.get(at.end.line.checked_sub(1)?)?);
    let indent = text[first.clone()].find('`')?;
    let body_start = lines.get(at.start.line).map_or(first.end, |line| line.start);
    let body_end = if is_closed { last.start } else { text.len() };
    let end = if is_closed { last.start + text[last.clone()].trim_end_matches(['\n', '\r']).len() } else { text.len() };
    Some(Block {
        range: first.start + indent..end,
        body: body_start..body_end.max(body_start),
        info: info.to_owned(),
        is_closed,
    })
}

/// Returns the tags of a piece of HTML that open or close an element: its name, and whether it is closed.
fn tags(html: &str) -> impl Iterator<Item = (String, bool)> {
    TAG.captures_iter(html).filter_map(|tag| {
        let (name, is_end, is_whole) = (tag[2].to_ascii_lowercase(), !tag[1].is_empty(), !tag[3].is_empty());
        (!is_whole && !WITHOUT_END.contains(&name.as_str())).then_some((name, is_end))
    })
}

/// Returns the lines of a text as CommonMark counts them, with their line ends.
fn lines(text: &str) -> Vec<Range<usize>> {
    let mut lines = Vec::new();
    let mut start = 0;
    let bytes = text.as_bytes();
    for (at, byte) in text.bytes().enumerate() {
        let ends = byte == b'\n' || byte == b'\r' && bytes.get(at + 1) != Some(&b'\n');
        if ends {
            lines.push(start..at + 1);
            start = at + 1;
        }
    }
    lines.push(start..text.len());
    lines
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn infos(text: &str) -> Vec<String> {
        fences(text).into_iter().map(|block| block.info).collect()
    }

    #[test]
    fn what_is_in_something_else_is_left_out() {
        for (text, expected) in [
            ("```a\n```\ntext\n```b\n```", vec!["a", "b"]),
            ("- x\n\n  ```a\n  ```\n\n```b\n```", vec!["b"]),
            ("> ```a\n> ```\n\n```b\n```", vec!["b"]),
            ("<details>\n\n```a\n```\n\n</details>\n\n```b\n```", vec!["b"]),
            ("<div><br><p>\n\n```a\n```\n\n<img/></div>\n\n```b\n```", vec!["b"]),
            ("~~~a\n~~~\n    ```a\n```b\n```", vec!["b"]),
            ("````a\n```b\n```\n````", vec!["a"]),
            ("\u{feff}```a\r\n```\r\n\r```b\r```", vec!["a", "b"]),
        ] {
            assert_eq!(infos(text), expected, "{text:?}");
        }
    }

    /// Regression: a tag closed in a line counted as the end of an element around it, or of one that came later.
    #[test]
    fn an_element_is_closed_by_its_own_tag_only() {
        for text in [
            "Some <b>bold</b> words.\n\n<details>\n\n```a\n```\n\n</details>",
            "<details>\n\nSome <b>bold</b> words.\n\n```a\n```\n\n</details>",
            "<details>\n\nNo end of this: </b>\n\n```a\n```\n\n</details>",
            "</div>\n\n<details>\n\n```a\n```\n\n</details>",
        ] {
            assert_eq!(infos(&format!("{text}\n\n```b\n```")), ["b"], "{text:?}");
        }
        assert_eq!(infos("<div>\n\n<span>\n\nthe end</div>\n\n```a\n```"), ["a"]);
    }

    /// Regression: who asked right below a quote was asked whether their question was theirs.
    #[test]
    fn what_stands_below_a_quote_without_a_mark_is_not_quoted() {
        let own = |text: &str| own_words(text).trim().to_owned();
        assert_eq!(own("> They say so.\nIs it true?"), "Is it true?");
        assert_eq!(own("Look:\n> one\n> two\nIs it true?\nWho knows?"), "Look:\n\nIs it true?\nWho knows?");
        assert_eq!(own("> They say so.\n\nIs it true?\n\n> > twice"), "Is it true?");
        assert_eq!(own(">>> They say so.\nIs it true?"), "");
    }

    #[test]
    fn ranges_are_of_the_text_as_it_is() {
        let text = "one\r\n  ```a\r\nx: 1\ry: 2\r\n```\r\ntwo";
        let [block] = fences(text).try_into().expect("one");
        assert_eq!((&text[block.range], &text[block.body]), ("```a\r\nx: 1\ry: 2\r\n```", "x: 1\ry: 2\r\n"));
        let [open] = fences("```a\nx").try_into().expect("one");
        assert_eq!((open.range, open.body, open.is_closed), (0..6, 5..6, false));
    }

    proptest! {
        #[test]
        fn any_text_has_an_outline(
            parts in prop::collection::vec(
                prop_oneof![
                    Just("```"), Just("````"), Just("~~~"), Just("\n"), Just("\r"), Just("\r\n"), Just("> "), Just("- "),
                    Just("    "), Just("\t"), Just("<div>"), Just("</div>"), Just("<!--"), Just("-->"), Just("<pre>"),
                    Just("mra-ask"), Just("repo: erp"), Just("預算"), Just("\0"), Just("\u{feff}"), Just("|"), Just("[a]: b"),
                ],
                0..40,
            ),
        ) {
            let text = parts.concat();
            let mut at = 0;
            for block in fences(&text) {
                prop_assert!(block.range.start >= at && block.body.start >= block.range.start, "{:?}", block);
                prop_assert!(text[block.range.clone()].starts_with("```"), "{:?}", text);
                prop_assert!(text[block.body.clone()].len() <= text[block.range.clone()].len(), "{:?}", text);
                at = block.range.end;
            }
        }
    }
}
