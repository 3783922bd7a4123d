//! First removes messages, then recalls others.

use pmk_policy_sdk::{Budget, Older, Plan, Prune, Transcript, origin};

use crate::{Recall, matches, question, quotes, settings, window};

/// The percentages of the room to try, in case a shortened quote is larger than estimated.
const ROOM: [u64; 3] = [100, 75, 40];

impl Prune for Recall {
    fn prune(transcript: &Transcript, budget: &Budget, plan: &Plan) {
        let (stored_end, current) = (transcript.stored_end(), transcript.current());
        let beside = transcript.origins(stored_end, current);
        let recalled = beside.contains(&origin::RECALL);
        if recalled && transcript.total_tokens() <= budget.limit() {
            // A further call of the same turn keeps the block that the first one was shown.
            return;
        }
        window::prune(transcript, budget, plan);
        if recalled && plan.tokens() > budget.limit() {
            // What came with the question precedes what was found and recalled for it, and stays.
            let attached = beside.iter().take_while(|&&origin| origin == origin::ATTACHMENT).count() as u32;
            plan.remove(stored_end + attached, current);
        }
        if plan.tokens() > budget.limit() {
            // The newest turns keep their share beside what is left of this one.
            let older = |bound| Older { bound, turns: transcript.turns() };
            plan.keep_current_turn(transcript, budget, older(0));
            let bound = plan.tokens() + settings::RECENT.percent_of(budget.limit());
            plan.keep_current_turn(transcript, budget, older(bound));
            return;
        }
        let has_question = current < transcript.length();
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
