//! The ordinary prune: shrinks old results, then removes the oldest turns, until the request is at the low-water mark.

use pmk_policy_sdk::{Budget, Plan, Row, Transcript, scaled};

use crate::{results::Shape, settings};

/// How often a choice is made, because results may be larger than estimated; the last relies on no estimate.
const ATTEMPTS: usize = 4;

/// The messages that stay, read from the newest message back.
struct Kept {
    /// The first message that stays.
    cut: u32,
    /// What the request would cost with its results whole.
    whole: u64,
    /// Results that may shrink, newest first.
    old: Vec<Row>,
    /// Stored results that are shrunk only if nothing else is enough, newest first.
    newest: Vec<Row>,
    /// Whether only the last turn stays.
    minimal: bool,
}

/// Plans down to the low-water mark. The last turn stays, whatever it costs: the bound may be a soft target, and a
/// request above the hard limit is handled by the squeeze.
pub fn reach(transcript: &Transcript, budget: &Budget, plan: &Plan, bound: u64) {
    let low_water = settings::LOW_WATER.percent_of(bound);
    let shape = Shape::of_settings();
    // Each result of a message is shrunk by itself, so several in one may save much less than it seems.
    let (mut actual, mut estimated) = (1, 1);
    for attempt in 1..=ATTEMPTS {
        let saving = |row: &Row| scaled(shape.saving(row), actual, estimated);
        let kept = choose(transcript, budget, saving, low_water, bound);
        plan.clear();
        plan.remove_before(transcript, kept.cut);
        shrink(plan, &kept.old, shape, low_water);
        let tokens = plan.tokens();
        if tokens > bound {
            shrink(plan, &kept.newest, shape, bound);
        }
        if tokens <= bound || kept.minimal {
            return;
        }
        let is_last_next = attempt + 1 == ATTEMPTS;
        actual = if is_last_next { 0 } else { kept.whole.saturating_sub(tokens) };
        estimated = kept.old.iter().map(|row| shape.saving(row)).sum();
    }
}

/// Chooses the newest turns that cost at most `aim`, with their old results shrunk; `saving` is what that saves of each.
/// If one large turn limits them to less than half of `aim`, that turn stays as well, provided that it is within the
/// bound.
fn choose(transcript: &Transcript, budget: &Budget, saving: impl Fn(&Row) -> u64, aim: u64, bound: u64) -> Kept {
    let whole = settings::KEEP_RESULTS.count() as usize;
    let stored_end = transcript.stored_end();
    let current = transcript.rows(stored_end, transcript.length());
    let mut seen = current.iter().filter(|row| row.is_result()).count();
    let mut total = transcript.always_kept() + u64::from(budget.marker_tokens());
    let mut kept = Kept { cut: stored_end, whole: total, old: vec![], newest: vec![], minimal: true };
    for (at, segment) in transcript.segments().enumerate() {
        let results: Vec<Row> = segment.rows.iter().rev().filter(|row| row.is_result()).copied().collect();
        let (newest, old) = results.split_at(whole.saturating_sub(seen).min(results.len()));
        let saved: u64 = old.iter().map(&saving).sum();
        let with_it = total + segment.tokens() - saved;
        let stays = at == 0 || with_it <= aim || (total < aim / 2 && with_it <= bound);
        if !stays {
            break;
        }
        total = with_it;
        seen += results.len();
        kept.cut = segment.start;
        kept.whole += segment.tokens();
        kept.minimal = at == 0;
        kept.newest.extend(newest);
        kept.old.extend(old);
    }
    kept
}

/// Shrinks results, oldest first, until the plan costs at most `aim`.
fn shrink(plan: &Plan, newest_first: &[Row], shape: Shape, aim: u64) {
    let mut expected = plan.tokens();
    for row in newest_first.iter().rev() {
        // The host's figure is exact but costs a call; the estimate tells when to ask for it.
        if expected <= aim {
            expected = plan.tokens();
            if expected <= aim {
                return;
            }
        }
        let saved = shape.saving(row);
        if saved > 0 {
            plan.shorten(row.index, shape.head, shape.tail);
            expected = expected.saturating_sub(saved);
        }
    }
}
