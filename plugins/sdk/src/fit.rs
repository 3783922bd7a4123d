//! Plans for a most recent turn that does not fit unchanged.

use std::collections::BTreeMap;

use crate::{Budget, Plan, Row, Segment, Transcript, flag, origin, tokens_of};

/// Lengths, in characters, to which texts are shortened, one after the other.
const LENGTHS: [u32; 4] = [8_000, 2_000, 500, 0];

/// How the messages of a turn that does not fit are reduced.
#[derive(Clone, Copy)]
struct Reduction {
    /// How many characters stay of each text and result.
    length: u32,
    /// Whether attachments are digested instead: an image cannot be shortened.
    digests: bool,
}

impl Reduction {
    fn digests(self, row: &Row) -> bool {
        self.digests && is_attachment(row)
    }
}

/// What is tried for a turn, the mildest first. Nothing of it is left empty.
fn reductions(turn: &Segment) -> impl Iterator<Item = Reduction> {
    let lengths = || LENGTHS.into_iter().filter(|&length| length > 0);
    let digests: &[bool] = if turn.rows.iter().any(is_attachment) { &[false, true] } else { &[false] };
    digests.iter().flat_map(move |&digests| lengths().map(move |length| Reduction { length, digests }))
}

fn is_attachment(row: &Row) -> bool {
    row.origin == origin::ATTACHMENT
}

/// How much of a message is kept, in characters, where pairs have to be removed; and in how many steps they are.
const SHORT: u32 = 500;
const STEPS: usize = 16;

/// How much stays beside a turn that is reduced.
#[derive(Clone, Copy, Debug)]
pub struct Older {
    /// What the request may cost with older turns: the limit, or less, so that the next turn does not prune again.
    pub bound: u64,
    /// How many stored turns may stay, the reduced one included.
    pub turns: u32,
}

impl Plan {
    /// For a most recent turn that is too large: shortens its texts and results, and digests its attachments only if
    /// that is not enough, until the request costs at most `bound` without older turns. Of those, as many stay as
    /// `older` has room for. Returns whether the bound is reached; if not, the plan is empty again.
    pub fn keep_last_turn(&self, transcript: &Transcript, bound: u64, older: Older) -> bool {
        let Some(last) = transcript.segments().next().filter(|segment| segment.turns() > 0) else { return false };
        let room = bound.saturating_sub(transcript.always_kept());
        let older = Older { turns: older.turns.saturating_sub(last.turns()), ..older };
        let fits = reductions(&last).any(|reduction| {
            at_least(last.rows.iter(), reduction) <= room
                && self.fits_from(transcript, last.start, bound, older, || self.reduce(last.rows.iter(), reduction))
        });
        if !fits {
            self.clear();
        }
        fits
    }

    /// Whether the request costs at most `bound` from the message `start` on, once `reduce` has reduced what stays. If
    /// so, as many of the turns before it stay as well as `older` has room for.
    fn fits_from(&self, transcript: &Transcript, start: u32, bound: u64, older: Older, reduce: impl Fn()) -> bool {
        let fits = |start: u32| {
            self.clear();
            self.remove_before(transcript, start);
            reduce();
            self.tokens() <= bound
        };
        if !fits(start) {
            return false;
        }
        let mut room = older.bound.min(bound).saturating_sub(self.tokens());
        let mut turns = older.turns;
        let before = transcript.segments().skip_while(|segment| segment.start >= start);
        let staying = before.map_while(|segment| {
            room = room.checked_sub(segment.tokens())?;
            turns = turns.checked_sub(segment.turns())?;
            Some(segment.start)
        });
        // If no turn goes, the marker of an earlier prune stays, which may cost more than a new one.
        staying.last().is_none_or(|earlier| fits(earlier) || fits(start))
    }

    /// For a most recent turn that exceeds the hard limit by itself, however much it is reduced: removes more and more
    /// of its oldest pairs of call and result, and shortens or digests the rest. If the operator allows the seed to be
    /// removed and the turn then fits whole, removes the seed instead. Returns whether the request fits; if not, the
    /// plan is empty again.
    pub fn keep_newest_pairs(&self, transcript: &Transcript, budget: &Budget) -> bool {
        let Some(last) = transcript.segments().next().filter(|segment| segment.turns() > 0) else { return false };
        let limit = budget.limit();
        let seed = tokens_of(&transcript.rows(0, transcript.seed_end()));
        let turns = last.tokens() + tokens_of(&transcript.rows(transcript.current(), transcript.length()));
        // Parts of a turn may be removed only if the whole turn cannot stay.
        let fits = if budget.seed_may_go() && turns <= limit {
            self.take_out_seed(transcript, &last, limit)
        } else {
            seed + turns > limit && self.take_out_pairs(transcript, &last, limit)
        };
        if !fits {
            self.clear();
        }
        fits
    }

    fn take_out_seed(&self, transcript: &Transcript, turn: &Segment, bound: u64) -> bool {
        // A request must start with a user message.
        if transcript.seed_end() == 0 || !turn.rows[0].has(flag::CUT) {
            return false;
        }
        self.clear();
        self.remove(0, transcript.seed_end());
        self.remove_before(transcript, turn.start);
        self.tokens() <= bound
    }

    fn take_out_pairs(&self, transcript: &Transcript, turn: &Segment, bound: u64) -> bool {
        let mut groups: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (row, group) in turn.rows.iter().zip(transcript.groups(turn.start, turn.end)) {
            groups.entry(group).or_default().push(row.index);
        }
        let pairs: Vec<Vec<u32>> = groups.into_values().filter(|members| members.len() > 1).collect();
        let step = pairs.len().div_ceil(STEPS).max(1);
        let room = bound.saturating_sub(transcript.always_kept());
        let reduction = Reduction { length: SHORT, digests: true };
        (1..=pairs.len()).step_by(step).chain([pairs.len()]).any(|gone| {
            let mut removed: Vec<u32> = pairs[..gone].concat();
            removed.sort_unstable();
            let stays = |row: &&Row| removed.binary_search(&row.index).is_err();
            if at_least(turn.rows.iter().filter(stays), reduction) > room {
                return false;
            }
            self.clear();
            self.remove_before(transcript, turn.start);
            for run in removed.chunk_by(|a, b| a + 1 == *b) {
                self.remove(run[0], run[run.len() - 1] + 1);
            }
            self.reduce(turn.rows.iter().filter(stays), reduction);
            self.tokens() <= bound
        })
    }

    /// Reduces messages. Of a text, two thirds stay from the start, where texts state their subject; one from the end,
    /// where logs have results. Shorter ones would only cost a call.
    fn reduce<'r>(&self, rows: impl Iterator<Item = &'r Row>, reduction: Reduction) {
        let Reduction { length, .. } = reduction;
        for row in rows {
            if reduction.digests(row) {
                self.digest(row.index);
            } else if row.chars > length {
                self.shorten(row.index, length - length / 3, length / 3);
            }
        }
    }

    /// The last resort, for a turn that is too large by itself: shortens the messages around the new message until the
    /// request fits without stored turns; if that is not enough, the seed as well. Of the stored turns, as many stay as
    /// `older` has room for. If nothing fits, the plan stays empty, and the next policy decides.
    pub fn keep_current_turn(&self, transcript: &Transcript, budget: &Budget, older: Older) {
        let (stored_end, current) = (transcript.stored_end(), transcript.current());
        let fits = [0, transcript.seed_end()].into_iter().any(|seed_end| {
            LENGTHS.into_iter().any(|length| {
                self.fits_from(transcript, stored_end, budget.limit(), older, || {
                    let around = (stored_end..current).chain(current + 1..transcript.length());
                    (0..seed_end).chain(around).for_each(|index| self.shorten(index, length, 0));
                })
            })
        });
        // A request that is still too large may even have grown, by the marker.
        if !fits {
            self.clear();
        }
    }
}

/// What messages cost at least when reduced, by estimate. Shortening makes the host read each text, so a plan that
/// cannot fit anyway is not tried.
fn at_least<'r>(rows: impl Iterator<Item = &'r Row>, reduction: Reduction) -> u64 {
    let Reduction { length, .. } = reduction;
    rows.map(|row| match row.chars {
        _ if reduction.digests(row) => 0,
        chars if chars > length => u64::from(row.tokens) * u64::from(length) / u64::from(chars),
        _ => u64::from(row.tokens),
    })
    .sum()
}
