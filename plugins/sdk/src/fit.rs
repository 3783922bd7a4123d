//! What is left to do when no stored turn fits beside the current one.

use crate::{Budget, Plan, Transcript};

/// Lengths, in characters, to which texts are shortened.
const LENGTHS: [u32; 4] = [8_000, 2_000, 500, 0];

impl Plan {
    /// The last resort, for a turn that is too large alone: every stored turn goes, and what stands around the new
    /// message is shortened until the request fits, then the seed as well. Where nothing fits, the plan is left too
    /// large, and the next policy decides.
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
    }
}
