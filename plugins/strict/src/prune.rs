//! Above the budget the seed pair and the newest turns stay (seed 000 §1, seed 003 §2).

use pmk_policy_sdk::{Budget, Plan, Prune, Transcript, tokens_of};

use crate::{Strict, settings};

/// Stored turns that stay above the budget.
const KEEP_TURNS: u32 = 10;

impl Prune for Strict {
    fn prune(transcript: &Transcript, budget: &Budget, plan: &Plan) {
        let total = transcript.total_tokens();
        let limit = budget.limit();
        let soft = u64::try_from(settings::MAX_SESSION_TOKENS.value()).unwrap_or(0);
        if total <= soft.min(limit) {
            return;
        }
        let cut = oldest_kept(transcript, budget);
        let is_left_out = cut == transcript.stored_end() && total > limit;
        if is_left_out && (plan.keep_last_turn(transcript, limit) || plan.keep_newest_pairs(transcript, budget)) {
            // Not even the last turn fits as it is.
            return;
        }
        plan.remove_before(transcript, cut);
        if plan.tokens() > limit {
            plan.keep_current_turn(transcript, budget);
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
