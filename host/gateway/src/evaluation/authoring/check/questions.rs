//! The questions: prune, cap, summarize and recover.

use std::sync::Arc;

use pmk_core::Origin;
use pmk_policy::{Decision, Exports, IncomingInput, OverflowInput, Phase, Rung, Size, Stack};

use super::{
    examiner::{Asked, Examiner},
    prune,
};
use crate::evaluation::authoring::histories::Named;

/// The origins that are capped.
const KINDS: [Origin; 4] = [Origin::Seed, Origin::MraResult, Origin::ToolResult, Origin::Attachment];

/// The hard limits under which a message is stored.
const LIMITS: [u64; 3] = [180_000, 8_000, 100];

/// The largest sizes of a summary, in tokens.
const SUMMARIES: [u32; 3] = [6_000, 500, 1];

/// Asks for every decision that the policy makes; `percents` are the budgets of a prune.
pub(super) fn all(examiner: &mut Examiner<'_>, exports: Exports, stack: &Stack, histories: &[Named], percents: &[u64]) {
    if exports.prune {
        prune::ask(examiner, stack, histories, percents);
    }
    if exports.cap {
        cap(examiner, stack);
    }
    if exports.summarize {
        summarize(examiner, stack, histories);
    }
    if exports.recover {
        recover(examiner, stack);
    }
}

fn cap(examiner: &mut Examiner<'_>, stack: &Stack) {
    let texts: [(&str, Arc<str>); 5] = [
        ("an empty text", "".into()),
        ("a short text", "一行".into()),
        ("a long text", "line of a log 42\n".repeat(20_000).into()),
        ("a long chinese text", "三月的預算由王經理核准。\n".repeat(8_000).into()),
        ("a long line of emoji", "👨‍👩‍👧".repeat(20_000).into()),
    ];
    for kind in KINDS {
        for (name, text) in &texts {
            for limit in LIMITS {
                let situation = || format!("{name} as {}, hard limit {limit}", kind.name());
                let incoming = || IncomingInput { kind, name: "erp".to_owned(), text: Arc::clone(text), limit };
                examiner.ask(Decision::Cap, situation, || {
                    let decision = stack.cap(incoming());
                    let record = decision.records.into_iter().next();
                    Asked {
                        answer: decision.verdict,
                        record,
                        size: Size::of_text(text),
                        hopeless: false,
                        wasteful: false,
                    }
                });
            }
        }
    }
}

fn summarize(examiner: &mut Examiner<'_>, stack: &Stack, histories: &[Named]) {
    for Named { name, transcript } in histories {
        for max_tokens in SUMMARIES {
            let situation = || format!("history `{name}`, a summary of {max_tokens} tokens allowed");
            examiner.ask(Decision::Summarize, situation, || {
                let decision = stack.summarize(transcript, max_tokens);
                let record = decision.records.into_iter().next();
                Asked { answer: decision.text, record, size: Size::of(transcript), hopeless: false, wasteful: false }
            });
        }
    }
}

/// Every set of rungs that may have been tried, with every set that may be available, in either phase: trying a rung
/// changes no phase.
fn recover(examiner: &mut Examiner<'_>, stack: &Stack) {
    for overflow in overflows() {
        let situation = || situation(&overflow);
        examiner.ask(Decision::Recover, situation, || {
            let decision = stack.recover(overflow.clone());
            let record = decision.records.into_iter().next();
            Asked { answer: decision.rung, record, size: Size::small(), hopeless: false, wasteful: false }
        });
    }
}

fn overflows() -> Vec<OverflowInput> {
    const RUNGS: [Rung; 3] = [Rung::Trim, Rung::Compact, Rung::Rotate];
    let chosen = |bits: u32| {
        let rungs = RUNGS.into_iter().enumerate();
        rungs.filter(move |(at, _)| bits & (1 << at) != 0).map(|(_, rung)| rung).collect::<Vec<_>>()
    };
    let mut all = Vec::new();
    for (available, tried) in (0..8).flat_map(|available| (0..8).map(move |tried| (available, tried))) {
        let numbers = if (available + tried) % 2 == 0 { (None, None) } else { (Some(213_462), Some(200_000)) };
        all.extend([Phase::First, Phase::Synthesise].map(|phase| OverflowInput {
            phase,
            tried: chosen(tried),
            available: chosen(available),
            observed_tokens: numbers.0,
            allowed_tokens: numbers.1,
        }));
    }
    all
}

fn situation(overflow: &OverflowInput) -> String {
    let names = |rungs: &[Rung]| match rungs {
        [] => "nothing".to_owned(),
        rungs => rungs.iter().map(|rung| rung.name()).collect::<Vec<_>>().join(", "),
    };
    let phase = match overflow.phase {
        Phase::First => "",
        Phase::Synthesise => ", at work on a result",
    };
    format!("an overflow, {} tried, {} available{phase}", names(&overflow.tried), names(&overflow.available))
}
