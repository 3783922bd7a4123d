//! When to prune, and what to try.

use pmk_policy_sdk::{Budget, Plan, Prune, Transcript};

use crate::{Standard, low_water, settings, squeeze};

impl Prune for Standard {
    fn prune(transcript: &Transcript, budget: &Budget, plan: &Plan) {
        let total = transcript.total_tokens();
        let bound = bound(budget);
        if total > bound {
            fit(transcript, budget, plan, bound);
        }
        let compact_at = u64::try_from(settings::COMPACT_AT.value()).unwrap_or(0);
        if compact_at > 0 && total > percent(budget.limit(), compact_at) {
            plan.compact_older(transcript, percent(budget.limit(), compact_at / 2));
        }
    }
}

fn fit(transcript: &Transcript, budget: &Budget, plan: &Plan, bound: u64) {
    low_water::reach(transcript, budget, plan, bound);
    if plan.tokens() > budget.limit() {
        squeeze::fit(transcript, budget, plan);
    } else if plan.tokens() > transcript.total_tokens() {
        // The turns that would go cost less than their marker.
        plan.clear();
    }
}

fn percent(of: u64, percent: u64) -> u64 {
    u64::try_from(u128::from(of) * u128::from(percent) / 100).unwrap_or(of)
}

/// The hard limit, or the operator's own bound below it.
fn bound(budget: &Budget) -> u64 {
    match u64::try_from(settings::MAX_SESSION_TOKENS.value()) {
        Ok(own) if own > 0 => own.min(budget.limit()),
        _ => budget.limit(),
    }
}
