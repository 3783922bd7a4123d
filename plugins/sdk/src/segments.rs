//! Reads a transcript from the newest message back.

use std::{
    ops::{Deref, Range},
    rc::Rc,
    slice, vec,
};

use crate::{Budget, Plan, Transcript, flag, origin};

/// How many messages are read at first; every further read takes twice as many.
const FIRST_READ: u32 = 32;

/// The columns of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its index in the transcript.
    pub index: u32,
    /// Its tokens.
    pub tokens: u32,
    /// Characters of its text and tool results, in their current form.
    pub chars: u32,
    /// Its [flags](crate::flag).
    pub flags: u8,
    /// Its [origin](crate::origin).
    pub origin: u8,
}

impl Row {
    /// Whether a [flag](crate::flag) is set.
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Whether it contains the result of a tool or of a code search.
    pub fn is_result(&self) -> bool {
        self.has(flag::TOOL_RESULT) || self.origin == origin::MRA_RESULT
    }
}

/// The messages between two legal cuts: usually one turn, several if tool pairs tie them together, and no turn for the
/// messages between the seed and the first turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Index of its first message.
    pub start: u32,
    /// Index after its last message.
    pub end: u32,
    /// Its messages, oldest first; never empty.
    pub rows: Rows,
}

/// Messages that were read together with others and are not copied: a slice of [`Row`].
#[derive(Clone, Debug, Default)]
pub struct Rows {
    read: Rc<Vec<Row>>,
    range: Range<usize>,
}

impl Deref for Rows {
    type Target = [Row];

    fn deref(&self) -> &[Row] {
        &self.read[self.range.clone()]
    }
}

impl PartialEq for Rows {
    fn eq(&self, other: &Rows) -> bool {
        **self == **other
    }
}

impl Eq for Rows {}

impl<'r> IntoIterator for &'r Rows {
    type Item = &'r Row;
    type IntoIter = slice::Iter<'r, Row>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Segment {
    /// How many turns start in it.
    pub fn turns(&self) -> u32 {
        self.rows.iter().filter(|row| row.has(flag::STARTS_TURN)).count() as u32
    }

    /// Its token cost.
    pub fn tokens(&self) -> u64 {
        tokens_of(&self.rows)
    }
}

/// The total token cost of these messages.
pub fn tokens_of(rows: &[Row]) -> u64 {
    rows.iter().map(|row| u64::from(row.tokens)).sum()
}

/// `tokens` in the proportion of `actual` to `estimated`, to correct an estimate by what came of it.
pub fn scaled(tokens: u64, actual: u64, estimated: u64) -> u64 {
    let scaled = u128::from(tokens) * u128::from(actual) / u128::from(estimated.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

impl Transcript {
    /// The columns of messages `start..end`, one row per message.
    pub fn rows(&self, start: u32, end: u32) -> Vec<Row> {
        let end = end.min(self.length());
        let columns = self.tokens(start, end).into_iter().zip(self.chars(start, end));
        let codes = self.flags(start, end).into_iter().zip(self.origins(start, end));
        (start..end)
            .zip(columns.zip(codes))
            .map(|(index, ((tokens, chars), (flags, origin)))| Row { index, tokens, chars, flags, origin })
            .collect()
    }

    /// The end of the stored history: the start of the current turn, or of the messages before it that are there only
    /// for the new message (what came with it, retrieved and recalled text).
    pub fn stored_end(&self) -> u32 {
        let (seed_end, current) = (self.seed_end(), self.current());
        let before = |end: u32, origins: &[u8]| {
            let is_one = |&at: &u32| matches!(self.origins(at, at + 1)[..], [origin] if origins.contains(&origin));
            end - (seed_end..end).rev().take_while(is_one).count() as u32
        };
        let shown = before(current, &[origin::RETRIEVAL, origin::RECALL]);
        if current < self.length() { before(shown, &[origin::ATTACHMENT]) } else { shown }
    }

    /// The stored history from the seed to [`stored_end`](Transcript::stored_end), newest segment first. Reads lazily:
    /// only the segments that are requested.
    pub fn segments(&self) -> Segments<'_> {
        let stored_end = self.stored_end();
        Segments {
            transcript: self,
            floor: self.seed_end(),
            end: stored_end,
            cuts: Vec::new().into_iter(),
            rows: Rows::default(),
            loaded: stored_end,
            read: FIRST_READ,
        }
    }
}

impl Transcript {
    /// The cost of everything outside stored turns: the seed, and the new message with what is shown for it.
    pub fn always_kept(&self) -> u64 {
        let cost = |start, end| self.tokens(start, end).into_iter().map(u64::from).sum::<u64>();
        cost(0, self.seed_end()) + cost(self.stored_end(), self.length())
    }

    /// The newest segments that fit under the hard limit together with what is [always kept](Transcript::always_kept)
    /// and a marker.
    pub fn newest_within(&self, budget: &Budget) -> impl Iterator<Item = Segment> + '_ {
        let mut room = budget.limit().checked_sub(self.always_kept() + u64::from(budget.marker_tokens()));
        self.segments().map_while(move |segment| {
            room = room?.checked_sub(segment.tokens());
            room.map(|_| segment)
        })
    }
}

/// Segments of a transcript, newest first; see [`Transcript::segments`].
#[derive(Debug)]
pub struct Segments<'t> {
    transcript: &'t Transcript,
    /// The lower bound of all segments.
    floor: u32,
    /// The end of the next segment.
    end: u32,
    /// Cuts read ahead, newest first.
    cuts: vec::IntoIter<u32>,
    /// Messages `loaded..end`.
    rows: Rows,
    loaded: u32,
    /// How many messages the next read takes.
    read: u32,
}

impl Segments<'_> {
    /// Reads rows down to at least `start`.
    fn load(&mut self, start: u32) {
        if start >= self.loaded {
            return;
        }
        let from = start.min(self.loaded.saturating_sub(self.read)).max(self.floor);
        let mut read = self.transcript.rows(from, self.loaded);
        read.extend_from_slice(&self.rows);
        self.rows = Rows { range: 0..read.len(), read: Rc::new(read) };
        self.loaded = from;
        self.read = self.read.saturating_mul(2);
    }
}

impl Iterator for Segments<'_> {
    type Item = Segment;

    fn next(&mut self) -> Option<Segment> {
        if self.end <= self.floor {
            return None;
        }
        if self.cuts.as_slice().is_empty() {
            self.cuts = self.transcript.cuts(self.end, self.read).into_iter();
        }
        let end = self.end;
        let start = self.cuts.next().unwrap_or(self.floor).max(self.floor);
        self.load(start);
        let at = (start - self.loaded) as usize;
        let rows = Rows { read: Rc::clone(&self.rows.read), range: at..self.rows.range.end };
        self.rows.range.end = at;
        self.end = start;
        Some(Segment { start, end, rows })
    }
}

impl Plan {
    /// Asks for a summary of all turns except the newest that together cost at most `keep` tokens; the most recent one
    /// always stays. Earlier summaries are summarized as well; markers stay, and so do the messages before them. Where a
    /// tool pair reaches across the last marker, nothing is summarized. Call it last: `clear` discards it.
    pub fn compact_older(&self, transcript: &Transcript, keep: u64) {
        let mut cut = transcript.stored_end();
        let (mut kept, mut turns) = (0, 0);
        for segment in transcript.segments() {
            let tokens = segment.tokens();
            if segment.turns() == 0 || turns > 0 && kept + tokens > keep {
                break;
            }
            kept += tokens;
            turns += segment.turns();
            cut = segment.start;
        }
        let seed_end = transcript.seed_end();
        let mut markers = transcript.origins(seed_end, cut).into_iter().zip(seed_end..cut);
        let last_marker = markers.rfind(|&(origin, _)| origin == origin::MARKER);
        let start = last_marker.map_or(seed_end, |(_, at)| at + 1);
        let is_whole = || transcript.groups(start, cut).iter().all(|&first| first >= start);
        if start < cut && turns < transcript.turns() && is_whole() {
            self.compact(start, cut);
        }
    }

    /// Removes the messages between the seed and `cut`, unless there are none, or only a marker.
    pub fn remove_before(&self, transcript: &Transcript, cut: u32) {
        let start = transcript.seed_end();
        let marker_alone = cut == start + 1 && transcript.origins(start, cut) == [origin::MARKER];
        if start < cut && !marker_alone {
            self.remove(start, cut);
        }
    }
}
