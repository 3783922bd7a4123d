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
    /// Results of the current turn that are shrunk only if even that is above the hard limit, newest first.
    current: Vec<Row>,
    /// Whether only the last turn stays.
    minimal: bool,
}

/// Plans down to the low-water mark. The last turn stays, whatever it costs: the bound may be a soft target, and a
/// request above the hard limit is handled by the squeeze.
pub fn reach(transcript: &Transcript, budget: &Budget, plan: &Plan, bound: u64) {
    let low_water = settings::LOW_WATER.percent_of(bound);
    let limit = budget.limit();
    let shape = Shape::of_settings();
    // Each result of a message is shrunk by itself, so several in one may save much less than it seems.
    let (mut actual, mut estimated) = (1, 1);
    for attempt in 1..=ATTEMPTS {
        let saving = |row: &Row| scaled(shape.saving(row), actual, estimated).min(u64::from(row.tokens));
        let kept = choose(transcript, budget, saving, low_water, bound);
        plan.clear();
        plan.remove_before(transcript, kept.cut);
        shrink(plan, &kept.old, shape, low_water);
        let tokens = plan.tokens();
        if tokens > bound {
            shrink(plan, &kept.newest, shape, bound);
        }
        if plan.tokens() > limit {
            let (newest, others) = kept.current.split_at(spared(&kept.current));
            shrink(plan, others, shape, settings::LOW_WATER.percent_of(limit));
            shrink(plan, newest, shape, limit);
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
    let (stored_end, limit) = (transcript.stored_end(), budget.limit());
    let around = transcript.always_kept() + u64::from(budget.marker_tokens());
    // The model is at work on the current turn, so its results shrink only where it would not fit with them: at once by
    // so much that the next calls of the turn need not shrink more, and the newest only as far as they must.
    let results = newest_first(&transcript.rows(stored_end, transcript.length()));
    let (newest, others) = results.split_at(spared(&results));
    let most = if around > limit { settings::LOW_WATER.percent_of(limit) } else { limit };
    let (others_whole, total) = fitting(others, around, most, &saving);
    let (newest_whole, mut total) = fitting(newest, total, limit, &saving);
    let whole = newest_whole + others_whole;
    let mut seen = results.len();
    let mut kept = Kept {
        cut: stored_end,
        whole: around,
        old: results[whole..].to_vec(),
        newest: vec![],
        current: results[..whole].to_vec(),
        minimal: true,
    };
    for (at, segment) in transcript.segments().enumerate() {
        let results = newest_first(&segment.rows);
        let mut whole = (settings::KEEP_RESULTS.count() as usize).saturating_sub(seen).min(results.len());
        let saved: u64 = results[whole..].iter().map(&saving).sum();
        let mut with_it = total + segment.tokens() - saved;
        if at == 0 {
            // The last turn stays, so its newest results shrink before older turns go for them.
            (whole, with_it) = fitting(&results[..whole], with_it, bound, &saving);
        }
        let stays = at == 0 || with_it <= aim || (total < aim / 2 && with_it <= bound);
        if !stays {
            break;
        }
        total = with_it;
        seen += results.len();
        kept.cut = segment.start;
        kept.whole += segment.tokens();
        kept.minimal = at == 0;
        let (newest, old) = results.split_at(whole);
        kept.newest.extend(newest);
        kept.old.extend(old);
    }
    kept
}

/// How many of these results, newest first, are spared as the newest.
fn spared(newest_first: &[Row]) -> usize {
    newest_first.len().min(settings::KEEP_RESULTS.count() as usize)
}

fn newest_first(rows: &[Row]) -> Vec<Row> {
    rows.iter().rev().filter(|row| row.is_result()).copied().collect()
}

/// How many of the newest of these results can stay whole in a request that costs `tokens` with all of them and may
/// cost `most`; and what it costs then.
fn fitting(newest_first: &[Row], mut tokens: u64, most: u64, saving: impl Fn(&Row) -> u64) -> (usize, u64) {
    let mut whole = newest_first.len();
    while tokens > most && whole > 0 {
        whole -= 1;
        tokens -= saving(&newest_first[whole]);
    }
    (whole, tokens)
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
