//! Chooses the newest turns that stay.

use pmk_policy_sdk::{Budget, Older, Plan, Transcript};

use crate::settings;

/// Removes older turns when the request no longer fits, or when the newest turns, after an earlier prune, have grown to
/// their maximum.
pub fn prune(transcript: &Transcript, budget: &Budget, plan: &Plan) {
    let limit = budget.limit();
    let stored_end = transcript.stored_end();
    let around = transcript.always_kept();
    let total = transcript.total_tokens();
    let most = settings::RECENT_MOST.percent_of(limit).max(settings::RECENT.percent_of(limit));
    // If nothing is out of view, there is nothing to make room for.
    let some_are_away = transcript.archived() > stored_end;
    let has_grown = some_are_away && transcript.dropped_turns() > 0 && total.saturating_sub(around) > most;
    if total <= limit && !has_grown {
        return;
    }
    let room = limit.saturating_sub(around + u64::from(budget.marker_tokens()));
    let aim = settings::RECENT.percent_of(limit).min(room);
    let (mut cut, mut kept, mut left) = (stored_end, 0, false);
    for (at, segment) in transcript.segments().enumerate() {
        let tokens = kept + segment.tokens();
        // The most recent turn stays if it fits.
        if tokens > aim && (at > 0 || tokens > room) {
            left = at == 0;
            break;
        }
        (kept, cut) = (tokens, segment.start);
    }
    let keeps_part = || {
        let older = Older { bound: around + aim, turns: transcript.turns() };
        let bounds = [limit.min(around + most), limit];
        bounds.into_iter().any(|bound| plan.keep_last_turn(transcript, bound, older))
            || plan.keep_newest_pairs(transcript, budget)
    };
    if left && keeps_part() {
        return;
    }
    plan.remove_before(transcript, cut);
    if total <= limit && plan.tokens() > total {
        // The turns to be removed cost less than their marker.
        plan.clear();
    }
}
