//! Plans for a most recent turn that does not fit unchanged.

use std::collections::BTreeMap;

use crate::{Budget, Plan, Row, Segment, Transcript, flag, tokens_of};

/// Lengths, in characters, to which texts are shortened, one after the other.
const LENGTHS: [u32; 4] = [8_000, 2_000, 500, 0];

/// How much of a message is kept, in characters, where pairs have to be removed; and in how many steps they are.
const SHORT: u32 = 500;
const STEPS: usize = 16;

impl Plan {
    /// For a most recent turn that is too large: removes all older turns, and shortens its texts and results until the
    /// request costs at most `bound`. Returns whether that is reached; if not, the plan is empty again.
    pub fn keep_last_turn(&self, transcript: &Transcript, bound: u64) -> bool {
        let Some(last) = transcript.segments().next().filter(|segment| segment.turns() > 0) else { return false };
        let room = bound.saturating_sub(transcript.always_kept());
        let fits = LENGTHS.into_iter().filter(|&length| length > 0).any(|length| {
            if at_least(last.rows.iter(), length) > room {
                return false;
            }
            self.clear();
            self.remove_before(transcript, last.start);
            self.shorten_all(last.rows.iter(), length);
            self.tokens() <= bound
        });
        if !fits {
            self.clear();
        }
        fits
    }

    /// For a most recent turn that exceeds the hard limit by itself, however much its texts are shortened: removes more
    /// and more of its oldest pairs of call and result, and shortens the rest. If the operator allows the seed to be
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
        (1..=pairs.len()).step_by(step).chain([pairs.len()]).any(|gone| {
            let mut removed: Vec<u32> = pairs[..gone].concat();
            removed.sort_unstable();
            let stays = |row: &&Row| removed.binary_search(&row.index).is_err();
            if at_least(turn.rows.iter().filter(stays), SHORT) > room {
                return false;
            }
            self.clear();
            self.remove_before(transcript, turn.start);
            for run in removed.chunk_by(|a, b| a + 1 == *b) {
                self.remove(run[0], run[run.len() - 1] + 1);
            }
            self.shorten_all(turn.rows.iter().filter(stays), SHORT);
            self.tokens() <= bound
        })
    }

    /// Shortens messages to so many characters: two thirds from the start, where texts state their subject; one from
    /// the end, where logs have results. Shorter ones would only cost a call.
    fn shorten_all<'r>(&self, rows: impl Iterator<Item = &'r Row>, length: u32) {
        rows.filter(|row| row.chars > length).for_each(|row| self.shorten(row.index, length - length / 3, length / 3));
    }

    /// The last resort, for a turn that is too large by itself: removes every stored turn and shortens the messages
    /// around the new message until the request fits; if that is not enough, the seed as well. If nothing fits, the
    /// plan stays empty, and the next policy decides.
    pub fn keep_current_turn(&self, transcript: &Transcript, budget: &Budget) {
        let (stored_end, current) = (transcript.stored_end(), transcript.current());
        for seed_end in [0, transcript.seed_end()] {
            for length in LENGTHS {
                self.clear();
                self.remove_before(transcript, stored_end);
                for index in (0..seed_end).chain(stored_end..current).chain(current + 1..transcript.length()) {
                    self.shorten(index, length, 0);
                }
                if self.tokens() <= budget.limit() {
                    return;
                }
            }
        }
        // A request that is still too large may even have grown, by the marker.
        self.clear();
    }
}

/// What messages cost at least when shortened to so many characters, by estimate. Shortening makes the host read each
/// text, so a plan that cannot fit anyway is not tried.
fn at_least<'r>(rows: impl Iterator<Item = &'r Row>, length: u32) -> u64 {
    rows.map(|row| match row.chars {
        chars if chars > length => u64::from(row.tokens) * u64::from(length) / u64::from(chars),
        _ => u64::from(row.tokens),
    })
    .sum()
}
