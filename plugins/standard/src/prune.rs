//! When to prune, and which plans to try.

use pmk_policy_sdk::{Budget, Plan, Prune, Transcript};

use crate::{Standard, low_water, settings, squeeze};

impl Prune for Standard {
    fn prune(transcript: &Transcript, budget: &Budget, plan: &Plan) {
        let bound = bound(budget);
        if transcript.total_tokens() > bound {
            fit(transcript, budget, plan, bound);
        }
    }
}

fn fit(transcript: &Transcript, budget: &Budget, plan: &Plan, bound: u64) {
    low_water::reach(transcript, budget, plan, bound);
    if plan.tokens() > budget.limit() {
        squeeze::fit(transcript, budget, plan, settings::LOW_WATER.percent_of(bound));
    } else if plan.tokens() > transcript.total_tokens() {
        // The turns to be removed cost less than their marker.
        plan.clear();
    }
}

/// The hard limit, or the operator's bound below it.
fn bound(budget: &Budget) -> u64 {
    match u64::try_from(settings::MAX_SESSION_TOKENS.value()) {
        Ok(own) if own > 0 => own.min(budget.limit()),
        _ => budget.limit(),
    }
}
