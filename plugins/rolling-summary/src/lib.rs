//! A conversation that is never cut off: before the window is full, the model sums up the older turns, and the
//! summary rolls on with the conversation. Only when that fails do turns go.
//!
//! Caps and local summaries are left to the layers below.

mod settings;

use pmk_policy_sdk::{
    Budget, Description, Overflow, Plan, Policy, Prune, Recover, Recovery, Transcript, export, rung, tokens_of,
};

/// The policy.
pub struct RollingSummary;

impl Policy for RollingSummary {
    fn describe(description: &Description) {
        description.name("rolling-summary");
        description.version(env!("CARGO_PKG_VERSION"));
        description.about("sums up the older turns before the window is full, and again when it fills up");
        settings::declare(description);
    }
}

impl Prune for RollingSummary {
    fn prune(transcript: &Transcript, budget: &Budget, plan: &Plan) {
        let limit = budget.limit();
        let total = transcript.total_tokens();
        if total > limit {
            let cut = oldest_that_fits(transcript, budget);
            let is_left_out = cut == transcript.stored_end();
            let fits_in_part =
                is_left_out && (plan.keep_last_turn(transcript, limit) || plan.keep_newest_pairs(transcript, budget));
            if !fits_in_part {
                plan.remove_before(transcript, cut);
            }
        }
        if total > settings::COMPACT_AT.of(limit) {
            plan.compact_older(transcript, settings::KEEP.of(limit));
        }
    }
}

/// Where the newest turns begin that fit beside the seed and the new message: what holds if the summary fails.
fn oldest_that_fits(transcript: &Transcript, budget: &Budget) -> u32 {
    let stored_end = transcript.stored_end();
    let always_kept = tokens_of(&transcript.rows(0, transcript.seed_end()))
        + tokens_of(&transcript.rows(stored_end, transcript.length()));
    let mut room = budget.limit().saturating_sub(always_kept + u64::from(budget.marker_tokens()));
    let mut cut = stored_end;
    for segment in transcript.segments() {
        if segment.tokens() > room {
            break;
        }
        room -= segment.tokens();
        cut = segment.start;
    }
    cut
}

/// A summary keeps more than a trim does, so that comes first; then a fresh session.
const LADDER: [u8; 2] = [rung::COMPACT, rung::ROTATE];

impl Recover for RollingSummary {
    fn recover(overflow: &Overflow, recovery: &Recovery) {
        let (tried, available) = (overflow.tried(), overflow.available());
        let next = LADDER.into_iter().find(|rung| available.contains(rung) && !tried.contains(rung));
        recovery.choose(next.unwrap_or(rung::GIVE_UP));
    }
}

export!(RollingSummary: prune, recover);
