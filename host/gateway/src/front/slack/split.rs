//! Splits a reply into messages that Slack accepts.
//!
//! A `markdown` block is limited by the number of characters of its source. `chat.update` refuses a text of more than
//! 4,000 bytes of UTF-8, counted after escaping, and posted texts are kept within the same limit: Slack recommends it,
//! and a post can then be edited later. The Markdown source is split, and each part is measured in the form in which
//! Slack will get it, so that the measure is exact.
//!
//! Each part reads well by itself, and the parts together are the reply, byte for byte, apart from the lines that close
//! and reopen a code block around a cut, and a table header that is repeated above further rows. Each step examines a
//! window of limited size, so the time grows linearly with the length of the reply.

use unicode_segmentation::UnicodeSegmentation;

use super::{
    markdown,
    mrkdwn::{counted_len, escaped_len},
};
use crate::front::lines::{self, Fence, Kind, Line};

mod inline;

/// The largest part that is sent as text, in bytes as Slack counts them, a little below its limit.
pub(super) const MAX_PART_BYTES: usize = 3_900;

/// The limit of a part; at least a few hundred, so that a fence and a grapheme fit.
#[derive(Clone, Copy, Debug)]
pub(super) enum PartLimit {
    /// Bytes, after rendering as `mrkdwn`.
    Rendered(usize),
    /// Characters of Markdown.
    Chars(usize),
}

impl PartLimit {
    fn amount(self) -> usize {
        match self {
            PartLimit::Rendered(most) | PartLimit::Chars(most) => most,
        }
    }

    /// Returns more bytes than a part ever has.
    fn window(self) -> usize {
        match self {
            PartLimit::Rendered(most) => 2 * most,
            PartLimit::Chars(most) => 4 * most + 4,
        }
    }

    /// Returns the size of a part.
    fn of(self, part: &str) -> usize {
        match self {
            PartLimit::Rendered(_) => counted_len(&markdown::render(part, &[])),
            PartLimit::Chars(_) => part.chars().count(),
        }
    }

    fn of_char(self, c: char) -> usize {
        match self {
            PartLimit::Rendered(_) => escaped_len(c),
            PartLimit::Chars(_) => 1,
        }
    }

    /// Returns how many bytes of a text fit into this share of the limit, counted by characters; at least one
    /// character, if there is one.
    fn fitting(self, text: &str, share: usize) -> usize {
        let mut used = 0;
        for (at, c) in text.char_indices() {
            used += self.of_char(c);
            if used > self.amount() / share {
                return at.max(c.len_utf8());
            }
        }
        text.len()
    }
}

/// Splits a reply into parts within the limit.
///
/// A cut is between two paragraphs. If there is no such place in the second half of a part, it is at a line
/// end; otherwise after a sentence, after a word, and finally between two graphemes. Table rows, links,
/// mentions and the like are only cut if one alone is too large. White space at a cut stays at the end of a
/// part. No part is blank, so a blank reply has no parts.
pub(super) fn split(reply: &str, most: PartLimit) -> Vec<String> {
    let splitter = Splitter::new(reply, most);
    let mut parts = Vec::new();
    let mut at = 0;
    while !reply[at..].trim().is_empty() {
        let end = splitter.next_cut(at);
        parts.push(splitter.part(at, end));
        at = end;
    }
    parts
}

struct Splitter<'a> {
    text: &'a str,
    lines: Vec<Line>,
    /// The indices of the lines that are table headers.
    heads: Vec<usize>,
    most: PartLimit,
}

impl<'a> Splitter<'a> {
    fn new(text: &'a str, most: PartLimit) -> Splitter<'a> {
        let lines = lines::scan(text);
        let heads = (0..lines.len()).filter(|&number| lines[number].kind == Kind::TableHead).collect();
        Splitter { text, lines, heads, most }
    }

    /// Returns a part as it is stored: with the fences that complete it, or the header of the table that it
    /// continues.
    fn part(&self, at: usize, end: usize) -> String {
        let opening = self.fence_at(at).map(Fence::opening);
        let mut part = opening.or_else(|| self.head_at(at).map(str::to_owned)).unwrap_or_default();
        part.push_str(&self.text[at..end]);
        if let Some(fence) = self.fence_at(end) {
            if !part.ends_with('\n') {
                part.push('\n');
            }
            part.push_str(&fence.closing());
        }
        part
    }

    /// Returns where the part that begins at `at` ends.
    fn next_cut(&self, at: usize) -> usize {
        let rest = &self.text[at..];
        // Blank lines before the first word are not worth a part.
        let blank = if self.fence_at(at).is_some() { 0 } else { rest.len() - rest.trim_start().len() };
        let start = at + blank;
        let least = self.first_grapheme(start);
        let mut room = self.most.fitting(&self.text[start..], 1).max(least);
        loop {
            let cut = self.best_cut(start, start + room);
            let end = self.with_white_space(cut);
            let cost = self.most.of(&self.part(at, end));
            if cost <= self.most.amount() || room == least {
                return end;
            }
            // In proportion, and a little more, so that few attempts are needed.
            let proportional = room * self.most.amount() / cost;
            room = (proportional - proportional / 32).min(cut - start - 1).max(least);
        }
    }

    /// Returns the length that a part must have in any case.
    fn first_grapheme(&self, start: usize) -> usize {
        let window = &self.text[start..self.text.floor_char_boundary(start + self.most.window())];
        let grapheme = window.graphemes(true).next().unwrap_or_default();
        // A grapheme that is too large for a part is cut.
        self.most.fitting(grapheme, 2)
    }

    /// Returns the best place to cut after `start` and at or before `limit`.
    fn best_cut(&self, start: usize, limit: usize) -> usize {
        let limit = self.text.floor_char_boundary(limit);
        if limit == self.text.len() {
            return limit;
        }
        let limit = self.outside_solid_lines(start, limit);
        self.between_lines(start, limit).unwrap_or_else(|| self.within_line(start, limit))
    }

    /// Returns the number of the line that ends at `at` or contains it.
    fn line_before(&self, at: usize) -> usize {
        self.lines.partition_point(|line| line.range.end < at)
    }

    /// Moves a limit within a line that must not be cut, or between two lines that belong together, to
    /// where they begin; not if that leaves nothing.
    fn outside_solid_lines(&self, start: usize, limit: usize) -> usize {
        let mut at = limit;
        loop {
            let number = self.line_before(at);
            let line = &self.lines[number];
            let fits = if at == line.range.end {
                !self.belong_together(number)
            } else {
                matches!(line.kind, Kind::Text | Kind::Blank | Kind::Code { .. })
            };
            if fits {
                return at;
            }
            if line.range.start <= start {
                return limit;
            }
            at = line.range.start;
        }
    }

    /// Returns whether the line of this number must not be the last of a part: a table header without a
    /// row, a code block without code.
    fn belong_together(&self, number: usize) -> bool {
        let kind = |number: usize| self.lines.get(number).map(|line| &line.kind);
        let is_head = |number: Option<usize>| matches!(number.and_then(kind), Some(Kind::TableHead));
        is_head(Some(number))
            || (is_head(number.checked_sub(1)) && kind(number + 1) == Some(&Kind::TableRow))
            || matches!(kind(number), Some(Kind::Opening(_)))
            || matches!(kind(number + 1), Some(Kind::Closing { .. }))
    }

    /// Returns the last end of a paragraph in the second half, or otherwise of a line.
    fn between_lines(&self, start: usize, limit: usize) -> Option<usize> {
        let half = start + (limit - start) / 2;
        let last = self.line_before(limit);
        let ends = (0..=last).rev().map(|number| (number, self.lines[number].range.end));
        let ends = ends.skip_while(|(_, end)| *end > limit).take_while(|(_, end)| *end > start && *end >= half);
        let mut line_end = None;
        for (number, end) in ends.filter(|(number, _)| !self.belong_together(*number)) {
            let next = self.lines.get(number + 1).map(|line| &line.kind);
            if self.lines[number].kind == Kind::Blank && !matches!(next, Some(Kind::Code { .. })) {
                return Some(end);
            }
            line_end = line_end.or(Some(end));
        }
        line_end
    }

    /// Returns the best place within the line that contains `limit`.
    fn within_line(&self, start: usize, limit: usize) -> usize {
        let line = &self.lines[self.line_before(limit)];
        let from = start.max(line.range.start);
        let to = self.text.floor_char_boundary(line.range.end.min(from + self.most.window()));
        let prose = line.kind == Kind::Text;
        let text = &self.text[from..to];
        match inline::best_cut(text, limit - from, prose) {
            // The line begins with something that must not be cut; it is cut only if it is too large
            // by itself.
            0 if from > start => from,
            0 => from + inline::best_cut(text, limit - from, false),
            cut => from + cut,
        }
    }

    /// Moves a cut past the white space that follows it, but not into the indentation of a line, nor
    /// within code, where white space matters.
    fn with_white_space(&self, cut: usize) -> usize {
        let rest = &self.text[cut..];
        let blank = &rest[..rest.len() - rest.trim_start().len()];
        if blank.len() == rest.len() {
            return self.text.len();
        }
        if self.fence_at(cut).is_some() {
            return cut;
        }
        match blank.rfind('\n') {
            Some(line_end) => cut + line_end + 1,
            None if self.text[..cut].ends_with('\n') => cut,
            None => cut + blank.len(),
        }
    }

    /// Returns the header of the table whose next row begins at this place: its titles and the dashes below, if these
    /// leave half of a part, and the row fits, too.
    fn head_at(&self, at: usize) -> Option<&str> {
        let number = self.lines.partition_point(|line| line.range.end <= at);
        let row = self.lines.get(number).filter(|line| line.kind == Kind::TableRow && line.range.start == at)?;
        let titles = *self.heads[..self.heads.partition_point(|head| *head < number)].last()?;
        let dashes = titles + 1;
        let head = &self.text[self.lines[titles].range.start..self.lines[dashes].range.end];
        let has_room = || {
            let with_row = format!("{head}{}", &self.text[row.range.clone()]);
            2 * self.most.of(head) <= self.most.amount() && self.most.of(&with_row) <= self.most.amount()
        };
        (dashes < number && has_room()).then_some(head)
    }

    /// Returns the fence of the code block that a cut at this place would split.
    fn fence_at(&self, at: usize) -> Option<&Fence> {
        if at == self.text.len() {
            return None;
        }
        let line = &self.lines[self.lines.partition_point(|line| line.range.end <= at)];
        let opened_by = match line.kind {
            Kind::Code { opened_by } => opened_by,
            Kind::Closing { opened_by } if line.range.start == at => opened_by,
            _ => return None,
        };
        match &self.lines[opened_by].kind {
            Kind::Opening(fence) => Some(fence),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
