//! Keeps the newest turns of a conversation that has grown too long.

use pmk_policy_sdk::{Budget, Description, IntegerSetting, Older, Plan, Policy, Prune, Transcript, export};

const KEEP_TURNS: IntegerSetting =
    IntegerSetting::new("keep-turns", 20, 1..=1_000, "stored turns that stay, as far as they fit");

pub struct {{Type}};

impl Policy for {{Type}} {
    fn describe(description: &Description) {
        description.name(env!("CARGO_PKG_NAME"));
        description.version(env!("CARGO_PKG_VERSION"));
        description.about("keeps the newest turns");
        KEEP_TURNS.declare(description);
    }
}

impl Prune for {{Type}} {
    fn prune(transcript: &Transcript, budget: &Budget, plan: &Plan) {
        if plan.tokens() <= budget.limit() {
            return;
        }
        let oldest_kept = transcript.newest_within(budget).take(KEEP_TURNS.value() as usize).last();
        // A last turn that does not fit whole is shortened, and the turns before it stay as far as they fit beside it.
        let older = Older { bound: budget.limit(), turns: KEEP_TURNS.count() };
        if oldest_kept.is_none() && plan.keep_last_turn(transcript, budget.limit(), older) {
            return;
        }
        plan.remove_before(transcript, oldest_kept.map_or(transcript.stored_end(), |segment| segment.start));
    }
}

export!({{Type}}: prune);
