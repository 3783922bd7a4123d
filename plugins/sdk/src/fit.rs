//! What is left to do when not even the most recent turn fits as it is.

use crate::{Budget, Plan, Transcript};

/// Lengths, in characters, to which texts are shortened.
const LENGTHS: [u32; 4] = [8_000, 2_000, 500, 0];

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
