//! Which messages may go? Asked at budgets from twice what a conversation takes down to next to nothing.

use std::{ops::Range, sync::Arc};

use pmk_core::{Applied, Guard, Message, Transcript, testing};
use pmk_policy::{Decision, Phase, PruneInput, Size, Stack};

use super::examiner::{Asked, Examiner};
use crate::desk::histories::Named;

/// Budgets in percent of what a conversation takes.
pub(super) const PERCENTS: [u64; 7] = [200, 100, 75, 50, 25, 10, 1];

/// The same where there is much else to vary.
pub(super) const FEWER_PERCENTS: [u64; 3] = [100, 40, 8];

pub(super) fn ask(examiner: &mut Examiner<'_>, stack: &Stack, histories: &[Named], percents: &[u64]) {
    for Named { name, transcript } in histories {
        for input in inputs(transcript, percents) {
            let guard = Guard { limit: input.limit, seed_may_go: input.seed_may_go, must_shrink: false };
            let situation = || situation(name, input);
            examiner.ask(Decision::Prune, situation, || {
                let decision = stack.prune(transcript, input);
                Asked {
                    answer: Shape::of(&decision.applied),
                    record: decision.records.into_iter().next(),
                    size: Size::of(transcript),
                    hopeless: !guard.whole_turns_can_fit(transcript),
                }
            });
        }
    }
}

fn inputs(transcript: &Transcript, percents: &[u64]) -> Vec<PruneInput> {
    let at_work = transcript.new_message().is_some_and(|new| new + 1 < transcript.len());
    let phase = if at_work { Phase::Synthesise } else { Phase::First };
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

/// What of a request the model would notice.
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
