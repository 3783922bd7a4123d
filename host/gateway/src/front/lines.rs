//! The lines of a Markdown text, as far as splitting and rendering depend on them: which belong to a
//! fenced code block, and which to a table.
//!
//! It is lenient where CommonMark is strict: a fence may be indented to any depth, as in a nested list.
//! Where a parser disagrees, the text is shown differently, but nothing is lost.

use std::{borrow::Cow, ops::Range};

/// The longest line that opens a fence; models write one word there.
const MAX_FENCE_BYTES: usize = 200;
/// The longest language name with which a fence is reopened.
const MAX_LANGUAGE_BYTES: usize = 40;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// Its range, including the line end.
    pub(super) range: Range<usize>,
    pub(super) kind: Kind,
}

/// The kind of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Blank,
    Text,
    /// The header of a table; the row of dashes follows.
    TableHead,
    TableRow,
    /// Begins a code block.
    Opening(Fence),
    /// Within the code block that the line of this number opened.
    Code {
        opened_by: usize,
    },
    /// Ends the code block that the line of this number opened.
    Closing {
        opened_by: usize,
    },
}

/// The fence of a code block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fence {
    /// What precedes it: indentation, and quote marks.
    prefix: String,
    mark: char,
    count: usize,
    language: String,
}

impl Fence {
    fn parse(line: &str) -> Option<Self> {
        if line.len() > MAX_FENCE_BYTES {
            return None;
        }
        let fence = without_markers(line);
        let (mark, count, info) = run(fence)?;
        if mark == '`' && info.contains('`') {
            return None;
        }
        let keep = |c: char| if c == '>' || c == '\t' { c } else { ' ' };
        let prefix = line[..line.len() - fence.len()].chars().map(keep).collect();
        let language = info.split_whitespace().next().filter(|word| word.len() <= MAX_LANGUAGE_BYTES);
        Some(Fence { prefix, mark, count, language: language.unwrap_or_default().to_owned() })
    }

    fn is_closed_by(&self, line: &str) -> bool {
        let fence = line.trim_start_matches(|c: char| c == '>' || c.is_whitespace());
        run(fence).is_some_and(|(mark, count, rest)| mark == self.mark && count >= self.count && rest.trim().is_empty())
    }

    /// A quote ends with its last marked line, whether or not its code was closed.
    fn is_left_by(&self, line: &str) -> bool {
        self.prefix.contains('>') && !line.trim_start().starts_with('>')
    }

    /// Returns the line that reopens the block.
    pub(super) fn opening(&self) -> String {
        format!("{}{}\n", self.closing(), self.language)
    }

    /// Returns the line that closes it.
    pub(super) fn closing(&self) -> String {
        let fence: String = std::iter::repeat_n(self.mark, self.count).collect();
        format!("{}{fence}", self.prefix)
    }
}

/// Returns a source that begins at the margin, and so do the lines that are nested with its first one: a part may begin
/// in the middle of a list, where its indentation would make it code.
pub(super) fn at_margin(source: &str) -> Cow<'_, str> {
    let body = source.trim_start();
    let first_line = source[..source.len() - body.len()].rfind('\n').map_or(0, |at| at + 1);
    let source = &source[first_line..];
    let margin = source.len() - body.len();
    if margin == 0 {
        return Cow::Borrowed(source);
    }
    let mut moved = String::with_capacity(source.len());
    let mut nested = true;
    for line in scan(source) {
        let text = &source[line.range];
        let indent = text.len() - text.trim_start_matches([' ', '\t']).len();
        nested &= indent >= margin || text.trim().is_empty();
        moved.push_str(if nested { &text[indent.min(margin)..] } else { text });
    }
    Cow::Owned(moved)
}

/// Returns a line without indentation and without quote and list marks.
pub(super) fn without_markers(line: &str) -> &str {
    let mut rest = line.trim_start_matches([' ', '\t']);
    loop {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let after = match digits {
            0 => rest.strip_prefix('>').or_else(|| spaced(rest, &['-', '*', '+'])),
            _ => spaced(&rest[digits..], &['.', ')']),
        };
        match after {
            Some(after) => rest = after.trim_start_matches([' ', '\t']),
            None => return rest,
        }
    }
}

fn spaced<'a>(text: &'a str, marks: &[char]) -> Option<&'a str> {
    text.strip_prefix(marks).filter(|rest| rest.starts_with([' ', '\t']))
}

/// Returns the run of fence marks at the beginning of a text, and the text after it.
fn run(text: &str) -> Option<(char, usize, &str)> {
    let mark = text.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let rest = text.trim_start_matches(mark);
    let count = text.len() - rest.len();
    (count >= 3).then_some((mark, count, rest))
}

/// Returns whether this is the row of dashes below a table header.
pub(super) fn is_delimiter_row(line: &str) -> bool {
    line.contains('|') && line.contains('-') && line.chars().all(|c| matches!(c, '|' | '-' | ':') || c.is_whitespace())
}

/// Returns all lines of a text.
pub(super) fn scan(text: &str) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let mut open: Option<(usize, Fence)> = None;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let range = start..start + line.len();
        start = range.end;
        if open.as_ref().is_some_and(|(_, fence)| fence.is_left_by(line)) {
            open = None;
        }
        let kind = match &open {
            Some((opened_by, fence)) if fence.is_closed_by(line) => {
                let opened_by = *opened_by;
                open = None;
                Kind::Closing { opened_by }
            }
            Some((opened_by, _)) => Kind::Code { opened_by: *opened_by },
            None => outside_code(line, lines.last_mut(), text),
        };
        if let Kind::Opening(fence) = &kind {
            open = Some((lines.len(), fence.clone()));
        }
        lines.push(Line { range, kind });
    }
    lines
}

fn outside_code(line: &str, before: Option<&mut Line>, text: &str) -> Kind {
    if line.trim().is_empty() {
        return Kind::Blank;
    }
    if let Some(fence) = Fence::parse(line) {
        return Kind::Opening(fence);
    }
    match before {
        Some(Line { kind: Kind::TableRow | Kind::TableHead, .. }) => Kind::TableRow,
        Some(head @ Line { kind: Kind::Text, .. })
            if is_delimiter_row(line) && text[head.range.clone()].contains('|') =>
        {
            head.kind = Kind::TableHead;
            Kind::TableRow
        }
        _ => Kind::Text,
    }
}
