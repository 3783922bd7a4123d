//! Above the budget, only the seed pair and the newest turns stay (specification 000 §1, 003 §2).

use pmk_policy_sdk::{Budget, Older, Plan, Prune, Segment, Transcript};

use crate::{Strict, settings};

/// How many stored turns stay above the budget.
const KEEP_TURNS: u32 = 10;

impl Prune for Strict {
    fn prune(transcript: &Transcript, budget: &Budget, plan: &Plan) {
        let total = transcript.total_tokens();
        let limit = budget.limit();
        let soft = u64::try_from(settings::MAX_SESSION_TOKENS.value()).unwrap_or(0);
        if total <= soft.min(limit) {
            return;
        }
        if total <= limit {
            remove_older(transcript, plan, newest(transcript.segments()));
            if plan.tokens() > total {
                // The turns to be removed cost less than their marker.
                plan.clear();
            }
            return;
        }
        let oldest_kept = newest(transcript.newest_within(budget));
        let older = Older { bound: limit, turns: KEEP_TURNS };
        // Perhaps not even the last turn fits unchanged.
        if oldest_kept.is_none()
            && (plan.keep_last_turn(transcript, limit, older) || plan.keep_newest_pairs(transcript, budget))
        {
            return;
        }
        remove_older(transcript, plan, oldest_kept);
        if plan.tokens() > limit {
            plan.keep_current_turn(transcript, budget, older);
        }
    }
}

fn remove_older(transcript: &Transcript, plan: &Plan, oldest_kept: Option<Segment>) {
    plan.remove_before(transcript, oldest_kept.map_or(transcript.stored_end(), |segment| segment.start));
}

/// The oldest of the newest ten turns.
fn newest(segments: impl Iterator<Item = Segment>) -> Option<Segment> {
    let mut turns = 0;
    let may_stay = |segment: &Segment| {
        let stays = turns < KEEP_TURNS && segment.turns() > 0;
        turns += segment.turns();
        stays
    };
    segments.take_while(may_stay).last()
}
