//! Step 3: the policy decides which part of the conversation the model gets, and the live window is
//! edited accordingly before the model is called, independent of the outcome of the call.

use pmk_core::{Applied, Block, Message, Origin, floor};
use pmk_policy::{DecidedBy, PruneDecision, PruneInput};

use super::{
    Exchange, Ports, compact,
    trial::{self, Trial},
    window::Window,
};
use crate::{calibration::TokenBudget, ledger::Event, store::StoreError};

/// A plan that is carried out, and who made it.
#[derive(Clone)]
pub(crate) struct DecidedPlan {
    pub applied: Applied,
    pub decided_by: DecidedBy,
}

impl DecidedPlan {
    /// A plan of the host itself.
    pub fn of_floor(applied: Applied) -> Self {
        DecidedPlan { applied, decided_by: DecidedBy::Floor }
    }
}

/// Runs step 3.
pub(crate) async fn budget(ports: &dyn Ports, exchange: &mut Exchange) -> Result<(), StoreError> {
    if let Some(wanted) = decide(ports, exchange).await? {
        // Tried once per turn; if it fails, the accompanying plan applies. A trial must not store anything.
        let may_compact = exchange.trial.is_none() && !std::mem::replace(&mut exchange.tally.compacted, true);
        if may_compact && compact::ahead(ports, exchange, wanted.range).await? {
            decide(ports, exchange).await?;
            return Ok(());
        }
        carry_out(ports, exchange, &wanted.otherwise, wanted.told).await?;
    }
    Ok(())
}

/// A summary that a policy requests before the call, and the plan that applies without it.
struct Wanted {
    range: std::ops::Range<usize>,
    otherwise: DecidedPlan,
    told: Vec<Event>,
}

/// Asks the policy and carries out its plan, unless the policy requests a summary first.
async fn decide(ports: &dyn Ports, exchange: &mut Exchange) -> Result<Option<Wanted>, StoreError> {
    let transcript = exchange.window.transcript();
    exchange.budget = token_budget(ports, exchange, transcript.total_tokens());
    let is_alone = exchange.alone() > exchange.budget.limit;
    if !exchange.fits_at_all() || is_alone && exchange.below.is_some() {
        // There is nothing to decide, and the conversation must not lose anything because of it. Sending the
        // new message alone is recovery's own last step.
        let tokens = transcript.total_tokens();
        (exchange.tally.tokens_before, exchange.tally.draft.tokens_after) = (tokens, tokens);
        ports.planned(&exchange.window, None);
        return Ok(None);
    }
    if is_alone {
        // No history can be sent with the message. Leaving it out is stored only once the message
        // is answered.
        if exchange.tally.calls == 0 {
            exchange.tally.tokens_before = transcript.total_tokens();
        }
        Trial::begin(exchange);
        let plan = DecidedPlan::of_floor(floor::decide(&transcript, exchange.alone()));
        let told = pruned(exchange, &plan);
        carry_out(ports, exchange, &plan, told).await?;
        return Ok(None);
    }
    let input = PruneInput {
        limit: exchange.budget.limit,
        window: exchange.budget.window,
        phase: exchange.tally.phase,
        seed_may_go: ports.seed_may_go(),
    };
    let is_first = exchange.tally.decided_by.is_none();
    let PruneDecision { applied, decided_by, .. } = ports.prune(&transcript, input, is_first).await;
    if applied.turns_dropped > 0 {
        tracing::info!(
            session = exchange.key,
            "pruned session: dropped {} turn-pair(s); now {} approx tokens",
            applied.turns_dropped,
            applied.tokens_after
        );
    }
    if exchange.tally.calls == 0 {
        exchange.tally.tokens_before = applied.tokens_before;
    }
    exchange.tally.decided_by = Some(decided_by.clone());
    let plan = DecidedPlan { applied, decided_by };
    let told = pruned(exchange, &plan);
    match plan.applied.compaction.clone() {
        Some(range) if !exchange.tally.compacted => Ok(Some(Wanted { range, otherwise: plan, told })),
        _ => {
            carry_out(ports, exchange, &plan, told).await?;
            Ok(None)
        }
    }
}

/// Returns the current budget, which includes what the last call has shown of how the model counts and what it
/// accepts. A request over a bound may be used to test whether the bound still holds.
fn token_budget(ports: &dyn Ports, exchange: &Exchange, wanted: u64) -> TokenBudget {
    let (session, preamble_tokens) = (exchange.session, exchange.preamble.tokens);
    let mut budget = ports.token_budget(session, preamble_tokens);
    if wanted > budget.limit && exchange.below.is_none() && ports.calibration().may_try_more(session, ports.now_ms()) {
        budget = ports.token_budget(session, preamble_tokens);
    }
    // A new message that was answered in this turn fits, even if the provider's count leaves less than the usual room for
    // an answer. Of everything else, what takes that room can go.
    if exchange.alone() > budget.limit {
        budget.limit = budget.limit.max(exchange.tally.answered.saturating_sub(preamble_tokens));
    }
    exchange.capped(budget, preamble_tokens, ports.now_ms())
}

/// Returns the event of a plan; none if it does not change the window.
fn pruned(exchange: &Exchange, DecidedPlan { applied, decided_by }: &DecidedPlan) -> Vec<Event> {
    let sha256 = decided_by.identity().map(|identity| identity.sha256.clone());
    let event = || Event::ContextPruned {
        actor: exchange.asker.clone(),
        session: exchange.key.clone(),
        turns_dropped: applied.turns_dropped,
        messages_replaced: applied.replaced.len(),
        tokens_before: applied.tokens_before,
        tokens_after: applied.tokens_after,
        decided_by: decided_by.name().to_owned(),
        decided_by_sha256: sha256,
    };
    if applied.edits_window() { vec![event()] } else { vec![] }
}

/// Applies a decision to the turn's window and, together with its events, to the stored live window; during a
/// trial, the latter only once the trial has helped. Costs nothing if the decision changes nothing.
pub(super) async fn carry_out(
    ports: &dyn Ports,
    exchange: &mut Exchange,
    plan: &DecidedPlan,
    told: Vec<Event>,
) -> Result<(), StoreError> {
    ports.planned(&exchange.window, Some(plan));
    let applied = &plan.applied;
    exchange.tally.draft.tokens_after = applied.tokens_after;
    if !applied.changes_anything() {
        return Ok(());
    }
    let draft = &mut exchange.tally.draft;
    draft.turns_dropped += applied.turns_dropped;
    draft.results_dropped += results_in(&exchange.window, &applied.removed);
    if let Some(recall) = &applied.recall {
        draft.recalled.clone_from(&recall.ids);
        draft.messages_recalled += recall.ids.len();
    }
    draft.messages_replaced += applied.replaced.len();
    let edit = exchange.window.apply(applied);
    if !applied.edits_window() {
        return Ok(());
    }
    trial::edit_window(ports, exchange, edit, told).await
}

/// Returns the number of tool and `mra` results in these messages of a window.
fn results_in(window: &Window, indexes: &[u32]) -> usize {
    let messages: Vec<&Message> = window.messages().collect();
    let results = |message: &Message| {
        let blocks = message.blocks.iter().filter(|block| matches!(block, Block::ToolResult { .. }));
        blocks.count() + usize::from(message.origin == Origin::MraResult)
    };
    indexes.iter().map(|&at| results(messages[at as usize])).sum()
}
