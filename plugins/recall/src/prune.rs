//! First removes messages, then recalls others.

use pmk_policy_sdk::{Budget, Plan, Prune, Transcript, origin};

use crate::{Recall, matches, question, quotes, window};

/// The percentages of the room to try, in case a shortened quote is larger than estimated.
const ROOM: [u64; 3] = [100, 75, 40];

impl Prune for Recall {
    fn prune(transcript: &Transcript, budget: &Budget, plan: &Plan) {
        let shown = transcript.stored_end()..transcript.current();
        let recalled = transcript.origins(shown.start, shown.end).contains(&origin::RECALL);
        if recalled && transcript.total_tokens() <= budget.limit() {
            // A further call of the same turn keeps the block that the first one was shown.
            return;
        }
        window::prune(transcript, budget, plan);
        if recalled && plan.tokens() > budget.limit() {
            plan.remove(shown.start, shown.end);
        }
        if plan.tokens() > budget.limit() {
            plan.keep_current_turn(transcript, budget);
            return;
        }
        let has_question = transcript.current() < transcript.length();
        if recalled || !has_question || transcript.archived() == 0 || quotes::most() == 0 {
            return;
        }
        let questions = question::asked(transcript);
        let found = matches::find(transcript, &questions);
        for percent in ROOM {
            if quotes::show(transcript, budget, plan, &found, percent) {
                return;
            }
            plan.clear();
            window::prune(transcript, budget, plan);
        }
    }
}
