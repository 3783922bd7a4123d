//! A conversation that is never cut off: before the window is full, the model summarizes the older turns, and the
//! summary is updated as the conversation continues. Turns are removed only when that fails.
//!
//! Caps and local summaries are left to the layers below.

mod settings;

use pmk_policy_sdk::{
    Budget, Description, Older, Overflow, Plan, Policy, Prune, Recover, Recovery, Transcript, export, rung,
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
            // Applies if the summary fails.
            let oldest_kept = transcript.newest_within(budget).last();
            let older = Older { bound: limit, turns: transcript.turns() };
            let fits_in_part = oldest_kept.is_none()
                && (plan.keep_last_turn(transcript, limit, older) || plan.keep_newest_pairs(transcript, budget));
            if !fits_in_part {
                plan.remove_before(transcript, oldest_kept.map_or(transcript.stored_end(), |segment| segment.start));
            }
        }
        if total > settings::COMPACT_AT.percent_of(limit) {
            plan.compact_older(transcript, settings::KEEP.percent_of(limit));
        }
    }
}

/// A summary keeps more than a trim does, so it is tried first; then a fresh session.
const LADDER: [u8; 2] = [rung::COMPACT, rung::ROTATE];

impl Recover for RollingSummary {
    fn recover(overflow: &Overflow, recovery: &Recovery) {
        recovery.climb(overflow, &LADDER);
    }
}

export!(RollingSummary: prune, recover);
