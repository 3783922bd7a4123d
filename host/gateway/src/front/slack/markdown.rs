//! Renders Markdown, as models write it, as Slack's `mrkdwn`.
//!
//! The parser is comrak, the only maintained one that handles emphasis in Chinese: by CommonMark's rules,
//! `**預算：**一百萬` is not bold. Slack also requires a word boundary around its marks; where a text has none, a
//! zero-width space makes one.
//!
//! Whatever the Markdown contains, the result mentions only those who are to be pinged, and links only to
//! web and mail addresses, of which none is hidden behind another: all text is escaped, and the only control sequences
//! are generated here.

use std::borrow::Cow;

use comrak::{Arena, Options, arena_tree::NodeEdge, parse_document};

pub(super) use self::labels::{honest, is_honest};
use self::writer::Writer;
use super::mrkdwn;
use crate::front::lines::{self, Kind};

mod labels;
mod prose;
mod table;
mod writer;

/// Renders Markdown as `mrkdwn`, all of it escaped except for the mentions of those who are to be pinged.
/// Blank only if the source is.
pub(super) fn render(source: &str, pings: &[String]) -> String {
    let arena = Arena::new();
    let document = parse_document(&arena, &prepared(source), &options());
    let mut writer = Writer::new(pings);
    for edge in document.traverse() {
        match edge {
            NodeEdge::Start(node) => writer.start(&node.data().value),
            NodeEdge::End(node) => writer.end(&node.data().value),
        }
    }
    let rendered = writer.finish();
    if rendered.is_empty() { mrkdwn::escape(source.trim()) } else { rendered }
}

fn options() -> Options<'static> {
    let mut options = Options::default();
    options.extension.strikethrough = true;
    options.extension.table = true;
    options.extension.tasklist = true;
    options.extension.cjk_friendly_emphasis = true;
    options
}

/// Returns the source in a form to be parsed. A part may begin in the middle of something, and is
/// completed: the rest of a nested list begins at the margin, table rows get a header. Link definitions
/// are shown, since the link may be in another part.
fn prepared(source: &str) -> Cow<'_, str> {
    let source = lines::at_margin(source);
    let mut first = source.lines();
    let titles = first.next().unwrap_or_default();
    let headless = is_row(titles) && !lines::is_delimiter_row(first.next().unwrap_or_default());
    if !headless && !source.contains("]:") {
        return source;
    }
    let mut prepared = String::with_capacity(source.len() + 64);
    if headless {
        let columns = titles.matches('|').count().max(2) - 1;
        prepared.push_str(&format!("|{}\n|{}\n", " |".repeat(columns), "-|".repeat(columns)));
    }
    for line in lines::scan(&source) {
        let text = &source[line.range];
        let in_code = matches!(line.kind, Kind::Opening(_) | Kind::Code { .. } | Kind::Closing { .. });
        let definition = text.trim_start_matches(' ');
        if !in_code && is_definition(definition) {
            prepared.push_str(&text[..text.len() - definition.len()]);
            prepared.push('\\');
            prepared.push_str(definition);
        } else {
            prepared.push_str(text);
        }
    }
    Cow::Owned(prepared)
}

/// Returns whether a line can only be a table row.
fn is_row(line: &str) -> bool {
    let line = line.trim();
    line.starts_with("| ") && line.ends_with(" |")
}

/// `[label]: address`
fn is_definition(line: &str) -> bool {
    let label = line.strip_prefix('[').and_then(|rest| rest.split_once("]:")).map(|(label, _)| label);
    label.is_some_and(|label| !label.contains(['[', ']']))
}

#[cfg(test)]
mod tests;
