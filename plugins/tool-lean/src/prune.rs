//! Old results are cleared, then turns go.

use pmk_policy_sdk::{Budget, Plan, Prune, Row, Transcript};

use crate::{ToolLean, clear::Results, settings};

/// How often the choice is made again because cleared results came out larger than estimated.
const ATTEMPTS: usize = 3;

/// What stays, read from the newest message back.
struct Choice {
    /// Where it begins; `None` when no turn goes.
    cut: Option<u32>,
    /// Results that are cleared.
    cleared: Vec<u32>,
    /// What that saves, about.
    saved: u64,
}

impl Prune for ToolLean {
    fn prune(transcript: &Transcript, budget: &Budget, plan: &Plan) {
        let (limit, total) = (budget.limit(), transcript.total_tokens());
        if total <= settings::CLEAR_AT.percent_of(limit) {
            return;
        }
        let mut choice = choose(transcript, budget, limit);
        if total <= limit && choice.saved < settings::CLEAR_AT_LEAST.percent_of(limit).max(1) {
            return;
        }
        let mut bound = limit;
        for _ in 0..ATTEMPTS {
            carry_out(&choice, transcript, plan);
            let tokens = plan.tokens();
            if tokens <= limit {
                break;
            }
            bound = bound.saturating_sub(tokens - limit);
            choice = choose(transcript, budget, bound);
        }
        if choice.cut == Some(transcript.stored_end()) {
            // The most recent turn does not go whole while it can stay in part.
            if plan.keep_last_turn(transcript, limit) {
                return;
            }
            carry_out(&choice, transcript, plan);
        }
        if plan.tokens() > limit {
            plan.keep_current_turn(transcript, budget);
        }
        if plan.tokens() > total && total <= limit {
            plan.clear();
        }
    }
}

/// What stays of a request within `bound`: everything with its old results cleared, or else the newest turns.
fn choose(transcript: &Transcript, budget: &Budget, bound: u64) -> Choice {
    let low_water = settings::LOW_WATER.percent_of(bound);
    let stored_end = transcript.stored_end();
    let mut results = Results::keeping(settings::KEEP_RESULTS.count());
    let mut choice = Choice { cut: None, cleared: vec![], saved: 0 };
    let around = transcript.rows(stored_end, transcript.length());
    // The new message is no result.
    clear(&around, &mut results, &mut choice);
    let mut total = transcript.always_kept() + u64::from(budget.marker_tokens()) - choice.saved;
    let mut low = stored_end;
    let (mut cleared_by_low, mut saved_by_low) = (choice.cleared.len(), choice.saved);
    for (at, segment) in transcript.segments().enumerate() {
        let before = choice.saved;
        clear(&segment.rows, &mut results, &mut choice);
        total += segment.tokens() - (choice.saved - before);
        if total > bound {
            choice.cut = Some(low);
            break;
        }
        // The most recent turn stays wherever it fits.
        if at == 0 || total <= low_water {
            low = segment.start;
            (cleared_by_low, saved_by_low) = (choice.cleared.len(), choice.saved);
        }
    }
    if choice.cut.is_some() {
        choice.cleared.truncate(cleared_by_low);
        choice.saved = saved_by_low;
    }
    choice
}

/// Adds the results among these messages that may be cleared.
fn clear(rows: &[Row], results: &mut Results, choice: &mut Choice) {
    for row in rows.iter().rev() {
        let saving = results.saving(row);
        if saving > 0 {
            choice.saved += saving;
            choice.cleared.push(row.index);
        }
    }
}

fn carry_out(choice: &Choice, transcript: &Transcript, plan: &Plan) {
    plan.clear();
    if let Some(cut) = choice.cut {
        plan.remove_before(transcript, cut);
    }
    choice.cleared.iter().for_each(|&index| plan.digest(index));
}
