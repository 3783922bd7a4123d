//! Judges an answer by the host's rules, with a hint for its author.

use pmk_policy::Outcome;

pub(super) enum Judgement {
    Passed,
    Corrected,
    HandedOn,
    Failed { reason: String, hint: &'static str },
}

/// The rules that a plan of whole turns must break if it cannot fit: it must not grow, nor exceed the hard limit.
const SIZE: [u8; 2] = [5, 9];

/// Judges an answer. `hopeless` means that no plan of whole turns fits the hard limit: then a plan that leaves too much
/// is not a breach, and the layer below decides.
pub(super) fn of(outcome: &Outcome, hopeless: bool) -> Judgement {
    match outcome {
        Outcome::Accepted => Judgement::Passed,
        Outcome::Corrected { .. } => Judgement::Corrected,
        Outcome::Rejected { rule, .. } if hopeless && SIZE.contains(rule) => Judgement::HandedOn,
        Outcome::Rejected { rule, reason } => {
            Judgement::Failed { reason: format!("guard rule {rule}: {reason}"), hint: of_rule(*rule) }
        }
        // Policies are not suspended here; a suspended one would not have been asked.
        Outcome::Skipped { .. } => Judgement::HandedOn,
        Outcome::Failed { reason, .. } if is_stack_overflow(reason) => Judgement::Failed {
            reason: format!("it {reason}"),
            hint: "let the recursion end sooner, or go through a list in a loop instead",
        },
        Outcome::Failed { reason, .. } if reason.ends_with(" for the archive") => Judgement::Failed {
            reason: format!("it {reason}"),
            hint: "the policy itself is fine; check that the disk or the server of the store is not overloaded",
        },
        Outcome::Failed { kind, reason, .. } => {
            Judgement::Failed { reason: format!("it {reason}"), hint: of_failure(kind) }
        }
    }
}

/// The judgement if the same question had another answer.
pub(super) fn not_repeated() -> Judgement {
    Judgement::Failed {
        reason: "the same question got a different answer the second time".to_owned(),
        hint: "decide only by the arguments and the settings; the order of a hash map is another cause",
    }
}

fn of_rule(rule: u8) -> &'static str {
    match rule {
        1 => "remove from one legal cut to another; `transcript.cuts` lists them, and the `flags` mark them",
        2 => "leave the message at `transcript.current` as it is",
        3 => "keep the first `transcript.seed-end` messages, unless `budget.seed-may-go`",
        4 => "let what is left begin with a message of role 1",
        5 => "compare `plan.tokens` with `transcript.total-tokens`, and `plan.clear` a plan that gains nothing",
        9 => "keep only what fits `budget.limit`; a setting is a target below it, never above",
        _ => "see `wit/policy.wit` for what is legal",
    }
}

/// Whether it trapped because its stack was full.
fn is_stack_overflow(reason: &str) -> bool {
    ["probably a stack overflow", "call stack exhausted"].iter().any(|words| reason.contains(words))
}

fn of_failure(kind: &str) -> &'static str {
    match kind {
        "fuel" | "time" => "read columns from the newest message back, and stop early",
        "memory" | "table" => "keep less at once, or ask the operator to raise the limit",
        "host-allocation" => "pass shorter texts to the host",
        "system" => "the policy itself is fine; check that memory and address space are not exhausted",
        "exit" => "return instead of ending the program",
        _ => "its last output and the stack say where; build it with `strip = \"debuginfo\"` to see names",
    }
}
