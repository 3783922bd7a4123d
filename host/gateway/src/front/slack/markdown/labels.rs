//! Links whose label is an address: if a link leads elsewhere, people see only the address that it does not lead to. So
//! such a link is no link here: its label is text, and its own address is beside it.

use std::{borrow::Cow, ops::Range, sync::LazyLock};

use comrak::{
    Arena,
    nodes::{AstNode, LineColumn, NodeValue},
    parse_document,
};
use pmk_core::text;
use regex::Regex;

use super::{options, prose};
use crate::{front::slack::mrkdwn, spelling};

/// Returns whether a label looks like an address that is not the one of its link.
pub(super) fn misleads(label: &str, address: &str) -> bool {
    // Names of files look like domains, and may be some.
    static ADDRESS: LazyLock<Option<Regex>> = LazyLock::new(|| {
        // A number before other letters, as in `1.安裝`, counts a list.
        let name = r"[\p{L}\p{N}]\.(?:[a-z]{2}|xn--)|\p{L}[\p{L}\p{N}-]*\.\p{L}{2}";
        Regex::new(&format!(r"(?i)://|\bwww\.|{name}|\d(?:\.\d+){{3}}")).ok()
    });
    let looks = || spelling::as_it_looks(&text::plain(label));
    !mrkdwn::is_written_out(label, address)
        && ADDRESS.as_ref().is_none_or(|looks_like_one| looks_like_one.is_match(&looks()))
}

/// Returns whether no link of the Markdown misleads.
pub(in crate::front::slack) fn is_honest(source: &str) -> bool {
    edits(source).is_some_and(|edits| edits.is_empty())
}

/// Returns Markdown in which the links that mislead are none; `None` if that cannot be written.
pub(in crate::front::slack) fn honest(source: &str) -> Option<Cow<'_, str>> {
    let mut edits = edits(source)?;
    if edits.is_empty() {
        return Some(Cow::Borrowed(source));
    }
    edits.sort_by_key(|(range, _)| range.start);
    let mut honest = String::with_capacity(source.len());
    let mut at = 0;
    for (Range { start, end }, text) in edits {
        honest.push_str(source.get(at..start)?);
        honest.push_str(&text);
        at = end;
    }
    honest.push_str(source.get(at..)?);
    is_honest(&honest).then_some(Cow::Owned(honest))
}

/// Returns what is to be written instead of which bytes; `None` if a link is not where the parser says.
fn edits(source: &str) -> Option<Vec<(Range<usize>, String)>> {
    let mut edits = of_slacks_links(source);
    if !source.contains(']') {
        return Some(edits);
    }
    let arena = Arena::new();
    let document = parse_document(&arena, source, &options());
    let lines: Vec<usize> = std::iter::once(0).chain(source.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let place = |LineColumn { line, column }| lines.get(line.checked_sub(1)?).map(|start| start + column);
    for node in document.descendants() {
        let data = node.data();
        let (NodeValue::Link(link) | NodeValue::Image(link)) = &data.value else { continue };
        if !misleads(&label(node), &link.url) {
            continue;
        }
        let (first, last) = (node.first_child()?.data().sourcepos.start, node.last_child()?.data().sourcepos.end);
        // Columns count from 1, and the last one is within.
        let opening = place(data.sourcepos.start)?.checked_sub(1)?..place(first)?.checked_sub(1)?;
        let closing = place(last)?..place(data.sourcepos.end)?;
        if !matches!(source.get(opening.clone())?, "[" | "![") || !source.get(closing.clone())?.starts_with(']') {
            return None;
        }
        edits.push((opening, String::new()));
        edits.push((closing, beside(&link.url)));
    }
    Some(edits)
}

/// Slack's own form of a link, which Slack may read in Markdown, too.
fn of_slacks_links(source: &str) -> Vec<(Range<usize>, String)> {
    static LINK: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"<((?i:https?://|mailto:)[^<>|\s]+)\|([^<>\n]+)>").ok());
    let found = LINK.iter().flat_map(|link| link.captures_iter(source));
    let parts = found.filter_map(|link| Some((link.get(0)?.range(), link.get(1)?.as_str(), link.get(2)?.as_str())));
    parts
        .filter(|(_, address, label)| misleads(label, address))
        .map(|(range, address, label)| (range, format!("{label}{}", beside(address))))
        .collect()
}

/// Returns an address as it is written after a label.
fn beside(address: &str) -> String {
    match prose::link_target(address) {
        Some(target) => format!(" (<{target}>)"),
        None => format!(" ({address})"),
    }
}

/// Returns the text of a link, without marks.
fn label<'a>(link: &'a AstNode<'a>) -> String {
    let mut label = String::new();
    for node in link.descendants() {
        match &node.data().value {
            NodeValue::Text(text) => label.push_str(text),
            NodeValue::Code(code) => label.push_str(&code.literal),
            NodeValue::SoftBreak | NodeValue::LineBreak => label.push(' '),
            _ => {}
        }
    }
    label
}
