//! Above the budget the seed pair and the newest turns stay (seed 000 §1, seed 003 §2).

use pmk_policy_sdk::{Budget, Plan, Prune, Transcript, tokens_of};

use crate::{Strict, settings};

/// Stored turns that stay above the budget.
const KEEP_TURNS: u32 = 10;

/// Lengths, in characters, to which texts are shortened where removing every stored turn is not enough.
const LENGTHS: [u32; 4] = [8_000, 2_000, 500, 0];

impl Prune for Strict {
    fn prune(transcript: &Transcript, budget: &Budget, plan: &Plan) {
        let total = transcript.total_tokens();
        let limit = budget.limit();
        let soft = u64::try_from(settings::MAX_SESSION_TOKENS.value()).unwrap_or(0);
        if total <= soft.min(limit) {
            return;
        }
        plan.remove_before(transcript, oldest_kept(transcript, budget));
        if plan.tokens() > limit {
            shorten_until_it_fits(transcript, plan, limit);
        } else if plan.tokens() > total {
            // The turns that would go cost less than their marker.
            plan.clear();
        }
    }
}

/// Where the newest turns begin that may stay: ten of them, and no more than fit under the hard limit.
fn oldest_kept(transcript: &Transcript, budget: &Budget) -> u32 {
    let stored_end = transcript.stored_end();
    let always_kept = tokens_of(&transcript.rows(0, transcript.seed_end()))
        + tokens_of(&transcript.rows(stored_end, transcript.length()));
    let mut room = budget.limit().saturating_sub(always_kept + u64::from(budget.marker_tokens()));
    let mut turns = 0;
    let mut cut = stored_end;
    for segment in transcript.segments() {
        if turns >= KEEP_TURNS || segment.turns() == 0 || segment.tokens() > room {
            break;
        }
        turns += segment.turns();
        room -= segment.tokens();
        cut = segment.start;
    }
    cut
}

/// The seed and the current turn alone are too much: shortens what stands around the new message, then the seed as
/// well. What this cannot make fit is left to the next policy.
fn shorten_until_it_fits(transcript: &Transcript, plan: &Plan, limit: u64) {
    let (stored_end, current) = (transcript.stored_end(), transcript.current());
    for seed_end in [0, transcript.seed_end()] {
        for length in LENGTHS {
            plan.clear();
            plan.remove_before(transcript, stored_end);
            for index in (0..seed_end).chain(stored_end..current).chain(current + 1..transcript.length()) {
                plan.shorten(index, length, 0);
            }
            if plan.tokens() <= limit {
                return;
            }
        }
    }
}
