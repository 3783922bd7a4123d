//! Writes `mrkdwn` node by node. Line ends are written when the next text comes, so that none are left at
//! the end, and each line begins as its block requires.

use std::mem;

use comrak::nodes::{ListType, NodeValue};

use super::{labels, prose, table};
use crate::front::slack::mrkdwn::{self, escape_into};

/// Makes a word boundary where a text has none.
const EDGE: char = '\u{200b}';
/// What ends a code block for Slack, and its replacement within one.
const FENCE: (&str, &str) = ("```", "`\u{200b}`\u{200b}`");
/// The indentation of each list level.
const INDENT: usize = 4;
/// Deeper levels all look the same.
const MAX_DEPTH: usize = 8;
/// Represents a thematic break.
const RULE: &str = "──────────";

#[derive(Default)]
pub(super) struct Writer<'a> {
    pings: &'a [String],
    out: String,
    /// Line ends to be written before the next text, and whether a quote continues across them.
    line_ends: usize,
    quoted_gap: bool,
    quotes: usize,
    lists: Vec<List>,
    /// The next text is on the line of its list mark.
    at_mark: bool,
    emphases: Vec<Emphasis>,
    /// The emphases were closed at a line end and continue with the next text.
    suspended: bool,
    /// The text ends with a mark that needs a boundary after it.
    closed: bool,
    /// Text that is not written yet, since a unit may arrive in several pieces.
    prose: String,
    /// The text of a link, and how many nested links are open.
    label: Option<String>,
    links: usize,
    table: Option<Vec<Vec<String>>>,
}

/// A list that is being written.
struct List {
    /// The number of the next item, if they are numbered.
    next: Option<usize>,
    tight: bool,
}

/// An open emphasis.
struct Emphasis {
    /// `None` if nothing is to be marked: in links, tables, and text that is already marked.
    mark: Option<char>,
    /// Where it began, and where its text begins.
    outer: usize,
    inner: usize,
}

impl<'a> Writer<'a> {
    pub(super) fn new(pings: &'a [String]) -> Self {
        Writer { pings, ..Writer::default() }
    }

    pub(super) fn finish(mut self) -> String {
        self.write_prose();
        self.out.truncate(self.out.trim_end().len());
        self.out
    }

    pub(super) fn start(&mut self, value: &NodeValue) {
        if let NodeValue::Text(text) = value {
            self.prose.push_str(text);
            return;
        }
        self.write_prose();
        match value {
            NodeValue::Paragraph => self.begin_block(),
            NodeValue::Heading(_) => {
                self.begin_block();
                self.open('*');
            }
            NodeValue::BlockQuote => {
                self.begin_block();
                self.quotes += 1;
            }
            NodeValue::List(list) => {
                self.begin_block();
                let next = (list.list_type == ListType::Ordered).then_some(list.start);
                self.lists.push(List { next, tight: list.tight });
            }
            NodeValue::Item(_) => self.begin_item(None),
            NodeValue::TaskItem(task) => self.begin_item(Some(task.symbol.is_some())),
            NodeValue::CodeBlock(code) if says_more_than_a_language(&code.info, &code.literal) => {
                self.code_block(&format!("{}\n{}", code.info, code.literal));
            }
            NodeValue::CodeBlock(code) => self.code_block(&code.literal),
            NodeValue::HtmlBlock(html) => self.verbatim_lines(&html.literal),
            NodeValue::ThematicBreak => {
                self.begin_block();
                self.push(RULE);
            }
            NodeValue::Table(_) => self.table = Some(Vec::new()),
            NodeValue::TableRow(_) => self.table.get_or_insert_default().push(Vec::new()),
            NodeValue::TableCell => {
                if let Some(row) = self.table.as_mut().and_then(|rows| rows.last_mut()) {
                    row.push(String::new());
                }
            }
            NodeValue::SoftBreak | NodeValue::LineBreak => self.line_break(),
            NodeValue::HtmlInline(html) if is_line_break(html) => self.line_break(),
            NodeValue::HtmlInline(html) => self.verbatim(html),
            NodeValue::Code(code) => self.code(&code.literal),
            NodeValue::Strong => self.open('*'),
            NodeValue::Emph => self.open('_'),
            NodeValue::Strikethrough => self.open('~'),
            NodeValue::Link(_) | NodeValue::Image(_) => {
                self.links += 1;
                self.label.get_or_insert_default();
            }
            _ => {}
        }
    }

    pub(super) fn end(&mut self, value: &NodeValue) {
        if let NodeValue::Text(_) = value {
            return;
        }
        self.write_prose();
        match value {
            NodeValue::Heading(_) | NodeValue::Strong | NodeValue::Emph | NodeValue::Strikethrough => self.close(),
            NodeValue::BlockQuote => self.quotes -= 1,
            NodeValue::List(_) => drop(self.lists.pop()),
            NodeValue::Table(_) => {
                let rows = self.table.take().unwrap_or_default();
                self.code_block(&table::aligned(&rows));
            }
            NodeValue::Link(link) | NodeValue::Image(link) => {
                self.links -= 1;
                if self.links == 0 {
                    let label = self.label.take().unwrap_or_default();
                    self.link(&link.url, label.trim());
                }
            }
            _ => {}
        }
    }

    /// Returns the sink for text that is shown without any marks: the label of a link, the cell of
    /// a table.
    fn plain_sink(&mut self) -> Option<&mut String> {
        let cell = self.table.as_mut().and_then(|rows| rows.last_mut()).and_then(|row| row.last_mut());
        self.label.as_mut().or(cell)
    }

    fn write_prose(&mut self) {
        let text = mem::take(&mut self.prose);
        if let Some(sink) = self.plain_sink() {
            sink.push_str(&text);
            return;
        }
        let mut escaped = String::with_capacity(text.len() + text.len() / 16);
        prose::write(&mut escaped, &text, self.pings);
        self.push(&escaped);
    }

    /// Writes text literally.
    fn verbatim(&mut self, text: &str) {
        match self.plain_sink() {
            Some(sink) => sink.push_str(text),
            None => self.push(&mrkdwn::escape(text)),
        }
    }

    fn verbatim_lines(&mut self, text: &str) {
        self.begin_block();
        for line in text.lines() {
            self.push(&mrkdwn::escape(line));
            self.line_break();
        }
    }

    /// Writes text that is already escaped and has no line ends.
    fn push(&mut self, escaped: &str) {
        let Some(first) = escaped.chars().next() else { return };
        self.begin_text();
        if self.closed && needs_edge(first) {
            self.out.push(EDGE);
        }
        self.closed = false;
        self.at_mark = false;
        self.out.push_str(escaped);
    }

    /// Writes the pending line ends, and the beginning of the new line.
    fn begin_text(&mut self) {
        if self.line_ends > 0 && !self.out.is_empty() {
            self.out.truncate(self.out.trim_end_matches(' ').len());
            let blank = if self.quoted_gap && self.quotes > 0 { "\n>" } else { "\n" };
            self.out.extend(std::iter::repeat_n(blank, self.line_ends - 1));
            self.out.push('\n');
        }
        if self.line_ends > 0 || self.out.is_empty() {
            if self.quotes > 0 {
                self.out.push_str("> ");
            }
            let indent = self.lists.len().min(MAX_DEPTH) * INDENT;
            self.out.extend(std::iter::repeat_n(' ', indent.saturating_sub(INDENT / 2)));
            self.closed = false;
        }
        self.line_ends = 0;
        self.quoted_gap = false;
        if mem::take(&mut self.suspended) {
            for emphasis in &mut self.emphases {
                emphasis.outer = self.out.len();
                self.out.extend(emphasis.mark);
                emphasis.inner = self.out.len();
            }
        }
    }

    fn gap(&mut self, line_ends: usize) {
        self.quoted_gap = self.quotes > 0 && (self.line_ends == 0 || self.quoted_gap);
        self.line_ends = self.line_ends.max(line_ends);
    }

    fn begin_block(&mut self) {
        if !self.at_mark {
            self.gap(if self.lists.last().is_some_and(|list| list.tight) { 1 } else { 2 });
        }
    }

    fn begin_item(&mut self, done: Option<bool>) {
        let depth = self.lists.len();
        let Some(list) = self.lists.last_mut() else { return };
        let mark = match (done, &mut list.next) {
            (Some(true), _) => "☑ ".to_owned(),
            (Some(false), _) => "☐ ".to_owned(),
            (None, Some(number)) => {
                *number += 1;
                format!("{}. ", *number - 1)
            }
            (None, None) => ["▪ ", "• ", "◦ "][depth.min(3) % 3].to_owned(),
        };
        let tight = list.tight;
        self.gap(if tight { 1 } else { 2 });
        self.begin_text();
        // The mark hangs to the left of its text.
        self.out.truncate(self.out.len() - INDENT / 2);
        self.out.push_str(&mark);
        self.at_mark = true;
    }

    /// Starts a new line within a block. In Slack, no emphasis continues across it.
    fn line_break(&mut self) {
        if let Some(sink) = self.plain_sink() {
            sink.push(' ');
            return;
        }
        if !mem::replace(&mut self.suspended, true) {
            for emphasis in self.emphases.iter().rev() {
                end_emphasis(&mut self.out, emphasis);
            }
        }
        self.gap(1);
    }

    fn open(&mut self, mark: char) {
        let marked = self.emphases.iter().any(|emphasis| emphasis.mark == Some(mark));
        if marked || self.plain_sink().is_some() {
            self.emphases.push(Emphasis { mark: None, outer: 0, inner: 0 });
            return;
        }
        self.begin_text();
        let outer = self.out.len();
        self.edge_before();
        self.out.push(mark);
        self.emphases.push(Emphasis { mark: Some(mark), outer, inner: self.out.len() });
    }

    fn close(&mut self) {
        let Some(emphasis) = self.emphases.pop() else { return };
        if !self.suspended {
            self.closed |= end_emphasis(&mut self.out, &emphasis);
        }
    }

    fn code(&mut self, literal: &str) {
        if self.plain_sink().is_some() || literal.contains('`') || literal.trim().is_empty() {
            self.verbatim(literal);
            return;
        }
        self.begin_text();
        self.edge_before();
        self.out.push('`');
        escape_into(&mut self.out, literal);
        self.out.push('`');
        self.closed = true;
        self.at_mark = false;
    }

    /// Prepares for an opening mark, which must not be in the middle of a word.
    fn edge_before(&mut self) {
        if mem::take(&mut self.closed) || self.out.chars().next_back().is_some_and(needs_edge) {
            self.out.push(EDGE);
        }
    }

    /// A code block begins and ends its own lines, without quote or indentation, so that it can be
    /// copied.
    fn code_block(&mut self, code: &str) {
        let (quotes, lists) = (mem::take(&mut self.quotes), mem::take(&mut self.lists));
        self.gap(1);
        self.begin_text();
        self.out.push_str(FENCE.0);
        self.out.push('\n');
        escape_into(&mut self.out, &code.trim_end().replace(FENCE.0, FENCE.1));
        self.out.push('\n');
        self.out.push_str(FENCE.0);
        self.at_mark = false;
        self.gap(1);
        (self.quotes, self.lists) = (quotes, lists);
    }

    fn link(&mut self, url: &str, label: &str) {
        let named = |url: &str| match label {
            "" => url.to_owned(),
            label if label == url => url.to_owned(),
            label if url.is_empty() => label.to_owned(),
            label => format!("{label} ({url})"),
        };
        if let Some(sink) = self.plain_sink() {
            sink.push_str(&named(url));
            return;
        }
        match prose::link_target(url) {
            Some(target) if label.is_empty() || label == url => self.push(&format!("<{target}>")),
            Some(target) if labels::misleads(label, url) => {
                self.push(&format!("{} (<{target}>)", mrkdwn::escape(label)))
            }
            Some(target) => self.push(&format!("<{target}|{}>", mrkdwn::escape(label))),
            None => self.push(&mrkdwn::escape(&named(url))),
        }
    }
}

/// Writes the closing mark, or removes the opening one if nothing came in between; returns whether
/// something is marked.
fn end_emphasis(out: &mut String, emphasis: &Emphasis) -> bool {
    let Some(mark) = emphasis.mark else { return false };
    if out.len() == emphasis.inner {
        out.truncate(emphasis.outer);
        return false;
    }
    out.push(mark);
    true
}

/// Slack recognizes a mark only at a word boundary, and none in the middle of Chinese text.
fn needs_edge(c: char) -> bool {
    c.is_alphanumeric() || !(c.is_ascii() || c.is_whitespace() || c == EDGE)
}

/// Returns whether the text after the fence is to be shown, since Slack has no place for it.
fn says_more_than_a_language(info: &str, code: &str) -> bool {
    info.contains(char::is_whitespace) || code.trim().is_empty()
}

fn is_line_break(html: &str) -> bool {
    let name = html.trim_start_matches('<').trim_end_matches(['>', '/', ' ']);
    name.eq_ignore_ascii_case("br")
}
