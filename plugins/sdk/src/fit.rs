//! What is left to do when not even the most recent turn fits as it is.

use std::collections::BTreeMap;

use crate::{Budget, Plan, Segment, Transcript, tokens_of};

/// Lengths, in characters, to which texts are shortened.
const LENGTHS: [u32; 4] = [8_000, 2_000, 500, 0];

/// What stays of a message where pairs have to go, in characters, and how often more of them are taken out.
const SHORT: u32 = 500;
const STEPS: usize = 16;

impl Plan {
    /// For a most recent turn that is too large: all older ones go, and its texts and results are shortened, until
    /// the request costs no more than `bound`. Whether it does; where not, the plan is empty again.
    pub fn keep_last_turn(&self, transcript: &Transcript, bound: u64) -> bool {
        let Some(last) = transcript.segments().next().filter(|segment| segment.turns() > 0) else { return false };
        let fits = LENGTHS.into_iter().filter(|&length| length > 0).any(|length| {
            self.clear();
            self.remove_before(transcript, last.start);
            // Two thirds from the start, where texts say what they are about, one from the end, where logs do.
            last.rows.iter().for_each(|row| self.shorten(row.index, length - length / 3, length / 3));
            self.tokens() <= bound
        });
        if !fits {
            self.clear();
        }
        fits
    }

    /// For a most recent turn that exceeds the hard limit alone, however short its texts are cut: its oldest pairs of
    /// call and result go, more and more of them, the rest is shortened. Whether the request fits then; where not, the
    /// plan is empty again.
    pub fn keep_newest_pairs(&self, transcript: &Transcript, budget: &Budget) -> bool {
        let Some(last) = transcript.segments().next().filter(|segment| segment.turns() > 0) else { return false };
        let always_kept = tokens_of(&transcript.rows(0, transcript.seed_end()))
            + tokens_of(&transcript.rows(transcript.current(), transcript.length()));
        // Parts of a turn may go only where all of it cannot stay.
        let fits =
            always_kept + last.tokens() > budget.limit() && self.take_out_pairs(transcript, &last, budget.limit());
        if !fits {
            self.clear();
        }
        fits
    }

    fn take_out_pairs(&self, transcript: &Transcript, turn: &Segment, bound: u64) -> bool {
        let mut groups: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (row, group) in turn.rows.iter().zip(transcript.groups(turn.start, turn.end)) {
            groups.entry(group).or_default().push(row.index);
        }
        let pairs: Vec<Vec<u32>> = groups.into_values().filter(|members| members.len() > 1).collect();
        let step = pairs.len().div_ceil(STEPS).max(1);
        (1..=pairs.len()).step_by(step).chain([pairs.len()]).any(|gone| {
            let mut removed: Vec<u32> = pairs[..gone].concat();
            removed.sort_unstable();
            self.clear();
            self.remove_before(transcript, turn.start);
            for run in removed.chunk_by(|a, b| a + 1 == *b) {
                self.remove(run[0], run[run.len() - 1] + 1);
            }
            let stay = turn.rows.iter().filter(|row| removed.binary_search(&row.index).is_err());
            stay.for_each(|row| self.shorten(row.index, SHORT - SHORT / 3, SHORT / 3));
            self.tokens() <= bound
        })
    }

    /// The last resort, for a turn that is too large alone: every stored turn goes, and what stands around the new
    /// message is shortened until the request fits, then the seed as well. Where nothing fits, nothing is planned, and
    /// the next policy decides.
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
        // What is left too large anyway may even have grown, by the marker.
        self.clear();
    }
}
