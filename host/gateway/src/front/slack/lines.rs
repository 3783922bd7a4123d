//! The lines of a Markdown text, as far as cutting and rendering it must know them: which belong to a
//! fenced code block, and which to a table.
//!
//! Lenient where CommonMark is strict: a fence may be indented as far as it likes, as it is in a nested
//! list. What a parser sees differently is shown differently, and nothing is lost.

use std::ops::Range;

/// The longest line that opens a fence; a model writes a word there.
const MAX_FENCE_BYTES: usize = 200;
/// The longest language that a fence is reopened with.
const MAX_LANGUAGE_BYTES: usize = 40;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// Where it stands, its line end included.
    pub(super) range: Range<usize>,
    pub(super) kind: Kind,
}

/// What a line is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Blank,
    Text,
    /// The header of a table; the row of dashes comes next.
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

/// How a code block is fenced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fence {
    /// What stands before it: indentation, and the marks of a quote.
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

    /// A quote ends with its last marked line, whether or not the code in it was closed.
    fn is_left_by(&self, line: &str) -> bool {
        self.prefix.contains('>') && !line.trim_start().starts_with('>')
    }

    /// The line that opens the block again.
    pub(super) fn opening(&self) -> String {
        format!("{}{}\n", self.closing(), self.language)
    }

    /// The line that closes it.
    pub(super) fn closing(&self) -> String {
        let fence: String = std::iter::repeat_n(self.mark, self.count).collect();
        format!("{}{fence}", self.prefix)
    }
}

/// A line without indentation and without the marks of quotes and lists.
fn without_markers(line: &str) -> &str {
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

/// The run of fence marks that a text begins with, and what follows it.
fn run(text: &str) -> Option<(char, usize, &str)> {
    let mark = text.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let rest = text.trim_start_matches(mark);
    let count = text.len() - rest.len();
    (count >= 3).then_some((mark, count, rest))
}

/// Whether this is the row of dashes beneath the head of a table.
pub(super) fn is_delimiter_row(line: &str) -> bool {
    line.contains('|') && line.contains('-') && line.chars().all(|c| matches!(c, '|' | '-' | ':') || c.is_whitespace())
}

/// Every line of a text.
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
