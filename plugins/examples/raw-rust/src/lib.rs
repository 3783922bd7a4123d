//! When a conversation has grown too long, the older half of its turns goes, and half of what is left until it fits. A
//! last turn that does not fit whole is shortened.
//! Without the SDK: nothing but the contract and `wit-bindgen`.

wit_bindgen::generate!({ path: "../../../wit", world: "prune-policy" });

use exports::pmk::policy::{
    describe::{Description, Guest as Describe},
    prune::{Budget, Guest as Prune, Plan, Transcript},
};

struct Halves;

impl Describe for Halves {
    fn describe(description: &Description) {
        description.name(env!("CARGO_PKG_NAME"));
        description.version(env!("CARGO_PKG_VERSION"));
        description.about("the older half of the turns goes, and half of the rest until it fits");
    }
}

impl Prune for Halves {
    fn prune(transcript: &Transcript, budget: &Budget, plan: &Plan) {
        let (begin, mut stored_end) = (transcript.seed_end(), transcript.current());
        // What came with the new message (origin 7) or was found (10) or recalled (11) for it precedes it and stays.
        while begin < stored_end && matches!(transcript.origins(stored_end - 1, stored_end)[..], [7 | 10 | 11]) {
            stored_end -= 1;
        }
        // Where the stored turns begin, the newest first.
        let mut turns = transcript.cuts(stored_end, transcript.turns());
        let last = turns.first().copied();
        while plan.tokens() > budget.limit() && begin < stored_end {
            turns.truncate(turns.len() / 2);
            let oldest_kept = turns.last().copied().unwrap_or(stored_end);
            plan.clear();
            plan.remove(begin, oldest_kept);
            if turns.is_empty() {
                if let Some(last) = last {
                    keep_last_turn(transcript, budget, plan, last, stored_end);
                }
                return;
            }
        }
    }
}

/// Keeps the last turn instead of removing it, if the request fits with its messages shortened.
fn keep_last_turn(transcript: &Transcript, budget: &Budget, plan: &Plan, last: u32, stored_end: u32) {
    let begin = transcript.seed_end();
    let chars = transcript.chars(last, stored_end);
    // In characters, one after the other.
    for length in [8_000, 2_000, 500] {
        plan.clear();
        if begin < last {
            plan.remove(begin, last);
        }
        for (index, _) in (last..).zip(&chars).filter(|&(_, &chars)| chars > length) {
            // Two thirds stay from the start, where texts state their subject; one from the end, where logs have results.
            plan.shorten(index, length - length / 3, length / 3);
        }
        if plan.tokens() <= budget.limit() {
            return;
        }
    }
    plan.clear();
    plan.remove(begin, stored_end);
}

export!(Halves);
