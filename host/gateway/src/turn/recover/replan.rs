//! When no rung is left: the request is planned again, smaller than anything that was refused, by the policies under
//! the limit just learnt, then by the floor under half of what was refused, and at last the new message goes alone. Only
//! where that is refused, too, there is nothing left to try.
//!
//! That many calls at most, and all of it is a [`Trial`]: stored once it has helped.

use pmk_core::floor;

use super::{
    super::{TurnError, budget, work::Work},
    trial::Trial,
};
use crate::{gateway::Gateway, ledger::Event};

/// What is said of it where rungs are named.
pub(super) const NAME: &str = "replan";

/// One way to a smaller request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The policies plan once more.
    Policies,
    /// The floor, under half of what was refused.
    Half,
    /// The floor leaves nothing but the new message.
    Alone,
}

const STEPS: [Step; 3] = [Step::Policies, Step::Half, Step::Alone];

/// How far it got with one call to the model.
#[derive(Default)]
pub(super) struct Replanning(usize);

impl Replanning {
    /// Plans a request that is smaller than all that were refused. False: there is none.
    pub async fn next(&mut self, gateway: &Gateway, work: &mut Work<'_>) -> Result<bool, TurnError> {
        Trial::begin(work);
        let (before, dropped) = (work.tally.tokens_after, work.tally.turns_dropped);
        while let Some(&step) = STEPS.get(self.0) {
            self.0 += 1;
            plan(gateway, work, step).await?;
            if !is_smaller(work) {
                continue;
            }
            work.tally.rungs.push(NAME);
            let turns = work.tally.turns_dropped - dropped;
            if turns > 0 && work.tally.cut.is_empty() {
                work.tally.cut = gateway.say.trimmed(turns);
            }
            work.journal.note(Event::ContextReplanned {
                actor: work.turn.inbound.user.clone(),
                session: work.turn.inbound.key.to_string(),
                limit: work.room.limit,
                tokens_before: before,
                tokens_after: work.tally.tokens_after,
            });
            return Ok(true);
        }
        Ok(false)
    }
}

/// Whether the next request is smaller than every one of this turn that was refused.
pub(super) fn is_smaller(work: &Work<'_>) -> bool {
    work.below.is_none_or(|below| work.estimate() < below)
}

async fn plan(gateway: &Gateway, work: &mut Work<'_>, step: Step) -> Result<(), TurnError> {
    let refused = work.below.unwrap_or_else(|| work.estimate());
    let half = refused.saturating_sub(work.preamble.tokens) / 2;
    let limit = match step {
        Step::Policies if work.trial.as_ref().is_some_and(Trial::is_suspicion) => {
            // Nothing is learnt of a suspicion yet, so the limit is what it was.
            work.below = Some(work.preamble.tokens + half + 1);
            let planned = budget::budget(gateway, work).await;
            work.below = Some(refused);
            return planned;
        }
        Step::Policies => return budget::budget(gateway, work).await,
        Step::Half => half,
        Step::Alone => u64::from(work.window.new_message().tokens),
    };
    let floor = floor::decide(&work.window.transcript(), limit);
    budget::carry_out(gateway, work, &floor, vec![]).await
}
