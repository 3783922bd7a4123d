//! When a conversation has grown too long, the older half of its turns goes, and half of what is left until it fits.
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
        while plan.tokens() > budget.limit() && begin < stored_end {
            turns.truncate(turns.len() / 2);
            let oldest_kept = turns.last().copied().unwrap_or(stored_end);
            plan.clear();
            plan.remove(begin, oldest_kept);
            if turns.is_empty() {
                return;
            }
        }
    }
}

export!(Halves);
