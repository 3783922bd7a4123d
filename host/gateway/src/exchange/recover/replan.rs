//! Replanning, when no rung is left: the request is planned again, smaller than any that was refused. First the
//! policies plan under the limit just learnt, then the floor under half of what was refused, and finally the new
//! message is sent alone. If that is refused, too, nothing is left to try.
//!
//! There is at most one call per step, and all of it is a [`Trial`]: it is stored only if it helped.

use pmk_core::floor;

use super::super::{
    Exchange, Ports,
    budget::{self, DecidedPlan},
    trial::Trial,
};
use crate::{ledger::Event, store::StoreError};

/// Its name in lists of rungs.
pub(crate) const NAME: &str = "replan";

/// One way to a smaller request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The policies plan again.
    Policies,
    /// The floor plans under half of what was refused.
    Half,
    /// The floor leaves only the new message.
    Alone,
}

const STEPS: [Step; 3] = [Step::Policies, Step::Half, Step::Alone];

/// The next step, for one model call.
#[derive(Default)]
pub(super) struct Replanning(usize);

impl Replanning {
    /// Plans a request that is smaller than all that were refused. Returns false if there is none.
    pub async fn next(&mut self, ports: &dyn Ports, exchange: &mut Exchange) -> Result<bool, StoreError> {
        Trial::begin(exchange);
        let (before, dropped) = (exchange.tally.draft.tokens_after, exchange.tally.draft.turns_dropped);
        while let Some(&step) = STEPS.get(self.0) {
            self.0 += 1;
            plan(ports, exchange, step).await?;
            if !is_smaller(exchange) {
                continue;
            }
            exchange.tally.rungs.push(NAME);
            exchange.tally.draft.cut_since(dropped);
            ports.note(Event::ContextReplanned {
                actor: exchange.asker.clone(),
                session: exchange.key.clone(),
                limit: exchange.budget.limit,
                tokens_before: before,
                tokens_after: exchange.tally.draft.tokens_after,
            });
            return Ok(true);
        }
        Ok(false)
    }
}

/// Returns whether the next request is smaller than every refused one of this turn.
pub(super) fn is_smaller(exchange: &Exchange) -> bool {
    exchange.below.is_none_or(|below| exchange.estimate() < below)
}

async fn plan(ports: &dyn Ports, exchange: &mut Exchange, step: Step) -> Result<(), StoreError> {
    let refused = exchange.below.unwrap_or_else(|| exchange.estimate());
    let half = refused.saturating_sub(exchange.preamble.tokens) / 2;
    let limit = match step {
        Step::Policies if exchange.trial.as_ref().is_some_and(Trial::is_suspicion) => {
            // Nothing has been learnt from a suspicion yet, so the limit is unchanged.
            exchange.below = Some(exchange.preamble.tokens + half + 1);
            let planned = budget::budget(ports, exchange).await;
            exchange.below = Some(refused);
            return planned;
        }
        Step::Policies => return budget::budget(ports, exchange).await,
        Step::Half => half,
        Step::Alone => u64::from(exchange.window.new_message().tokens),
    };
    let floor = DecidedPlan::of_floor(floor::decide(&exchange.window.transcript(), limit));
    budget::carry_out(ports, exchange, &floor, vec![]).await
}
