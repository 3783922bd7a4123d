//! Asks which messages to prune, at budgets from twice the size of a conversation down to almost nothing.

use std::{ops::Range, sync::Arc};

use pmk_core::{Applied, Guard, Message, Plan, Transcript, replace::Reduction, testing};
use pmk_policy::{Decision, Phase, PruneInput, Size, Stack};

use super::examiner::{Asked, Examiner};
use crate::evaluation::authoring::{histories::Named, recorded::phase};

/// Budgets in percent of the size of a conversation.
pub(super) const PERCENTS: [u64; 7] = [200, 100, 75, 50, 25, 10, 1];

/// The same where much else varies.
pub(super) const FEWER_PERCENTS: [u64; 3] = [100, 40, 8];

/// Less than this fraction of the limit counts as almost nothing, and this many characters are enough to recognize a
/// text.
const USED_PARTS: u64 = 4;
const SHORT: u32 = 500;

pub(super) fn ask(examiner: &mut Examiner<'_>, stack: &Stack, histories: &[Named], percents: &[u64]) {
    for Named { name, transcript } in histories {
        for input in inputs(transcript, percents) {
            let guard = Guard { limit: input.limit, seed_may_go: input.seed_may_go, must_shrink: false };
            let situation = || situation(name, input);
            examiner.ask(Decision::Prune, situation, || {
                let decision = stack.prune(transcript, input);
                Asked {
                    answer: Shape::of(&decision.applied),
                    size: Size::of(transcript),
                    hopeless: !guard.whole_turns_can_fit(transcript),
                    wasteful: is_wasteful(transcript, &decision.applied, guard),
                    record: decision.records.into_iter().next(),
                }
            });
        }
    }
}

fn inputs(transcript: &Transcript, percents: &[u64]) -> Vec<PruneInput> {
    let phase = phase(transcript);
    let seeds: &[bool] = if transcript.seed_end() > 0 { &[false, true] } else { &[false] };
    let limits = testing::budgets(transcript, percents).into_iter();
    let of = |limit: u64| {
        seeds.iter().map(move |&seed_may_go| PruneInput {
            limit,
            window: limit.saturating_mul(4) / 3,
            phase,
            seed_may_go,
        })
    };
    limits.flat_map(of).collect()
}

fn situation(name: &str, input: PruneInput) -> String {
    let phase = match input.phase {
        Phase::First => "",
        Phase::Synthesise => ", at work on a result",
    };
    let seed = if input.seed_may_go { ", the seed may go" } else { "" };
    format!("history `{name}`, {} tokens allowed{phase}{seed}", input.limit)
}

/// Whether no stored turn is kept and almost nothing of the limit is used, although the most recent turn would have
/// fitted with its texts shortened.
fn is_wasteful(transcript: &Transcript, applied: &Applied, guard: Guard) -> bool {
    let (seed_end, stored_end) = (transcript.seed_end(), transcript.shown_part());
    let is_stored = |index: &&u32| (seed_end..stored_end).contains(&(**index as usize));
    let leaves_little = applied.tokens_before > guard.limit
        && applied.tokens_after < guard.limit / USED_PARTS
        && applied.compaction.is_none()
        && !applied.kept.iter().any(|index| is_stored(&index));
    let cuts = &transcript.structure().cuts;
    let Some(&last) = cuts.iter().rfind(|&&cut| (cut as usize) < stored_end).filter(|_| leaves_little) else {
        return false;
    };
    let mut plan = Plan::new();
    if seed_end < last as usize {
        plan.remove(transcript, seed_end as u32, last);
    }
    for index in last..stored_end as u32 {
        plan.replace(transcript, index, Reduction::Shorten { head: SHORT - SHORT / 3, tail: SHORT / 3 });
    }
    guard.apply(transcript, &plan).is_ok()
}

/// The parts of a request that the model would see.
#[derive(PartialEq)]
struct Shape {
    kept: Vec<u32>,
    replaced: Vec<(u32, Arc<Message>)>,
    marker: Option<String>,
    compaction: Option<Range<usize>>,
    tokens: u64,
}

impl Shape {
    fn of(applied: &Applied) -> Shape {
        Shape {
            kept: applied.kept.clone(),
            replaced: applied.replaced.iter().map(|by| (by.index, Arc::clone(&by.message))).collect(),
            marker: applied.marker.as_ref().map(|(marker, _)| marker.text()),
            compaction: applied.compaction.clone(),
            tokens: applied.tokens_after,
        }
    }
}
