//! The interface between an exchange and its environment.

use std::sync::{Arc, MutexGuard};

use async_trait::async_trait;
use pmk_core::{Entry, Language, Transcript};
use pmk_models::{Answer, ModelError, Request, Usage};
use pmk_policy::{OverflowInput, PruneDecision, PruneInput, Rung};

use super::{
    Exchange, Tally,
    budget::DecidedPlan,
    material::Material,
    window::{Fold, Window},
};
use crate::{
    calibration::{Calibration, TokenBudget},
    ids::SessionId,
    ledger::Event,
    preambles::Preamble,
    store::{LiveEntry, StoreError, WindowEdit},
};

/// Policies, model, store, ledger, admins and the clock, as far as an exchange needs them.
#[async_trait]
pub(crate) trait Ports: Send + Sync {
    /// Milliseconds since the epoch.
    fn now_ms(&self) -> i64;

    /// Returns what is known of how the model counts.
    fn calibration(&self) -> MutexGuard<'_, Calibration>;

    /// Returns how the model's window is divided for a conversation now, beside a preamble of this many
    /// tokens.
    fn token_budget(&self, session: SessionId, preamble_tokens: u64) -> TokenBudget;

    /// Returns whether the operator allows the seed to be dropped.
    fn seed_may_go(&self) -> bool;

    /// Has the policies decide what the model gets. `is_first`: this is the first decision of the turn.
    async fn prune(&self, transcript: &Arc<Transcript>, input: PruneInput, is_first: bool) -> PruneDecision;

    /// Has the policies choose the next rung.
    async fn choose_rung(&self, input: OverflowInput) -> Rung;

    /// Has the policies summarize a conversation.
    async fn summarize(&self, transcript: &Arc<Transcript>, most_tokens: u32) -> String;

    /// Calls the model. `estimate` is the host's estimate of the prompt. Adds what the call has cost, answered or not, to
    /// `spent`.
    async fn ask(&self, request: &Request, estimate: u64, spent: &mut Usage) -> Result<Answer, ModelError>;

    /// Calls the model for the answer itself, which may be streamed. Notes in the tally what the call has cost, and which
    /// of its images were not sent.
    async fn answer(&self, request: &Request, estimate: u64, tally: &mut Tally) -> Result<Answer, ModelError> {
        self.ask(request, estimate, &mut tally.usage).await
    }

    /// Has the model summarize a part of the conversation, apart from an earlier summary that is kept. Adds what its calls
    /// have cost to `spent`.
    async fn write_summary(&self, input: SummaryInput<'_>, spent: &mut Usage) -> Result<String, ModelError>;

    /// Returns whether the model is shown the images of a request, and not only told what they are.
    fn shows_images(&self) -> bool {
        false
    }

    /// Returns the most tokens of an answer that the model's server gives, if that may be less than is asked for.
    fn most_given(&self) -> Option<u32> {
        None
    }

    /// Returns the tool support of the model's server, if tools may be used with it.
    fn tools(&self) -> Option<&dyn ToolSupport> {
        None
    }

    /// Receives the basis of the next request: this window, and the plan that is carried out on it, if there was
    /// one.
    fn planned(&self, window: &Window, plan: Option<&DecidedPlan>);

    /// Receives a request that was sent, based on the latest plan, and the provider's token counts.
    fn sent(&self, _sent: Sent<'_>) {}

    /// Edits the stored live window, before the call and independent of its outcome. The events are stored with it.
    async fn edit_window(&self, session: SessionId, edit: WindowEdit, told: Vec<Event>) -> Result<(), StoreError>;

    /// Replaces a part of the stored live window, which corresponds to `window`, by a summary.
    async fn fold(
        &self,
        session: SessionId,
        window: &Window,
        fold: &Fold,
        told: Vec<Event>,
    ) -> Result<Option<LiveEntry>, StoreError>;

    /// Notes an event in the ledger.
    fn note(&self, event: Event);

    /// Alerts the admins.
    fn alarm(&self, alarm: AdminAlert);
}

/// A request that was sent for the answer.
pub(crate) struct Sent<'a> {
    pub exchange: &'a Exchange,
    pub request: &'a Request,
    /// Whether its history was repaired.
    pub is_repaired: bool,
    /// `None` if there was no answer.
    pub usage: Option<Usage>,
}

/// What is to be summarized.
pub(crate) struct SummaryInput<'a> {
    pub session: SessionId,
    /// The messages.
    pub part: &'a [Entry],
    /// What the summarizer reads of the messages.
    pub material: &'a Material,
    /// The summarizer's hard limit.
    pub limit: u64,
    /// The language of the summarizer's prompt.
    pub language: Language,
}

/// An alert to the admins about a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AdminAlert {
    /// Nothing made the prompt fit.
    GaveUp,
    /// The conversation continues in a fresh session; this many entries were left behind.
    Rotated { left_behind: usize },
}

/// Whether a model's server accepts tools, and what the model is told if it does not.
#[async_trait]
pub(crate) trait ToolSupport: Send + Sync {
    /// `None` if that is not known yet.
    fn takes_tools(&self) -> Option<bool>;

    /// A request with tools was answered.
    async fn were_taken(&self);

    /// Tools were refused: `how` that is known, and the server's own message.
    async fn were_refused(&self, how: &'static str, reason: &str);

    /// Returns the system prompt for a request without any tools.
    fn preamble_as_text(&self) -> Arc<Preamble>;
}
