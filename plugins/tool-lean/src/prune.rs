//! Clears old results, then removes turns.

use pmk_policy_sdk::{Budget, Older, Plan, Prune, Row, Transcript, scaled};

use crate::{ToolLean, clear::Results, settings};

/// How often the choice is repeated because cleared results were larger than estimated.
const ATTEMPTS: usize = 3;

/// The messages that stay, read from the newest message back.
struct Choice {
    /// The first message that stays; `None` when no turn is removed.
    cut: Option<u32>,
    /// The results that are cleared.
    cleared: Vec<u32>,
    /// The approximate saving.
    saved: u64,
}

impl Choice {
    /// The same, with nothing before `cut`.
    fn from(mut self, cut: u32) -> Self {
        self.cleared.retain(|&index| index >= cut);
        Choice { cut: Some(cut), ..self }
    }
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
            bound = scaled(bound, limit, tokens);
            choice = choose(transcript, budget, bound);
        }
        let stored_end = transcript.stored_end();
        if plan.tokens() > limit || choice.cut == Some(stored_end) {
            // The estimates were too low, or too much was taken off because of them: whole turns cost what they cost.
            choice = choice.from(transcript.newest_within(budget).last().map_or(stored_end, |segment| segment.start));
            carry_out(&choice, transcript, plan);
        }
        let older = Older { bound: settings::LOW_WATER.percent_of(limit), turns: transcript.turns() };
        if choice.cut == Some(stored_end) {
            // The most recent turn is not removed as long as part of it can stay.
            if plan.keep_last_turn(transcript, limit, older) || plan.keep_newest_pairs(transcript, budget) {
                return;
            }
            carry_out(&choice, transcript, plan);
        }
        if plan.tokens() > limit {
            plan.keep_current_turn(transcript, budget, older);
        }
        if plan.tokens() > total && total <= limit {
            plan.clear();
        }
    }
}

/// Chooses what stays of a request within `bound`: everything with its old results cleared, or else the newest turns.
fn choose(transcript: &Transcript, budget: &Budget, bound: u64) -> Choice {
    let low_water = settings::LOW_WATER.percent_of(bound);
    let stored_end = transcript.stored_end();
    let mut results = Results::keeping(settings::KEEP_RESULTS.count(), transcript);
    let mut choice = Choice { cut: None, cleared: vec![], saved: 0 };
    let around = transcript.rows(stored_end, transcript.length());
    // The new message is not a result.
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
        // The most recent turn stays if it fits.
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

/// Adds those results of these messages that may be cleared.
fn clear(rows: &[Row], results: &mut Results<'_>, choice: &mut Choice) {
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
