//! What an exchange needs of the world.

use std::sync::{Arc, MutexGuard};

use async_trait::async_trait;
use pmk_core::{Applied, Entry, Language, Transcript};
use pmk_models::{Answer, ModelError, Request, Usage};
use pmk_policy::{DecidedBy, OverflowInput, PruneDecision, PruneInput, Rung};

use super::{
    Exchange,
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

/// The ports: policies, model, store, ledger, admins and the clock, as far as these steps go.
#[async_trait]
pub(crate) trait Ports: Send + Sync {
    /// Milliseconds since the epoch.
    fn now_ms(&self) -> i64;

    /// What is known of how the model counts.
    fn calibration(&self) -> MutexGuard<'_, Calibration>;

    /// How the model's window is shared out for a conversation now, beside a preamble of so many tokens.
    fn token_budget(&self, session: SessionId, preamble_tokens: u64) -> TokenBudget;

    /// Whether the operator lets the seed go.
    fn seed_may_go(&self) -> bool;

    /// Has the policies decide what the model gets. `is_first`: nothing was decided in this turn before.
    async fn prune(&self, transcript: &Arc<Transcript>, input: PruneInput, is_first: bool) -> PruneDecision;

    /// Has the policies choose the next rung.
    async fn choose_rung(&self, input: OverflowInput) -> Rung;

    /// Has the policies sum a conversation up.
    async fn summarize(&self, transcript: &Arc<Transcript>, most_tokens: u32) -> String;

    /// Asks the model. `estimate` is what we think the prompt costs.
    async fn ask(&self, request: &Request, estimate: u64) -> Result<Answer, ModelError>;

    /// Asks the model for the answer itself, which may be shown while it is made.
    async fn answer(&self, request: &Request, estimate: u64) -> Result<Answer, ModelError> {
        self.ask(request, estimate).await
    }

    /// Has the model sum a part of the conversation up, beside what an earlier summary says. What that has used is added.
    async fn write_summary(&self, input: SummaryInput<'_>, usage: &mut Usage) -> Result<String, ModelError>;

    /// Whether the model's server takes tools, where it may be asked with any.
    fn tools(&self) -> Option<&dyn ToolSupport> {
        None
    }

    /// Sees what the next request is made from: this window, and the plan that is carried out on it, where there was
    /// one to make.
    fn planned(&self, window: &Window, plan: Option<(&Applied, &DecidedBy)>);

    /// Sees a request that was sent, made from what was planned last, and what the provider counted of it.
    fn sent(&self, _sent: Sent<'_>) {}

    /// Edits the stored live window, before the call and whatever becomes of it. What there is to tell of it is stored
    /// with it.
    async fn edit_window(&self, session: SessionId, edit: WindowEdit, told: Vec<Event>) -> Result<(), StoreError>;

    /// Puts a summary in the place of a part of the stored live window, which was this one.
    async fn fold(
        &self,
        session: SessionId,
        window: &Window,
        fold: &Fold,
        told: Vec<Event>,
    ) -> Result<Option<LiveEntry>, StoreError>;

    /// Notes what has happened.
    fn note(&self, event: Event);

    /// Tells the admins.
    fn alarm(&self, alarm: AdminAlert);
}

/// A request that was sent for the answer.
pub(crate) struct Sent<'a> {
    pub exchange: &'a Exchange,
    pub request: &'a Request,
    /// Whether its history was repaired.
    pub is_repaired: bool,
    /// Nothing where there was no answer.
    pub usage: Option<Usage>,
}

/// What is to be summed up.
pub(crate) struct SummaryInput<'a> {
    pub session: SessionId,
    /// The messages.
    pub part: &'a [Entry],
    /// What the summariser reads of them.
    pub material: &'a Material,
    /// Its hard limit.
    pub limit: u64,
    /// What it is asked in.
    pub language: Language,
}

/// What the admins are told of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AdminAlert {
    /// Nothing made it fit.
    GaveUp,
    /// It goes on in a fresh session; so many entries were left behind.
    Rotated { left_behind: usize },
}

/// Whether a model's server takes tools, and what the model is told where it does not.
#[async_trait]
pub(crate) trait ToolSupport: Send + Sync {
    /// `None` until that was seen.
    fn takes_tools(&self) -> Option<bool>;

    /// A request with tools was answered.
    async fn were_taken(&self);

    /// Tools were refused: `how` that is known, and the server's words.
    async fn were_refused(&self, how: &'static str, reason: &str);

    /// What goes along with a request that speaks of no tools at all.
    fn preamble_as_text(&self) -> Arc<Preamble>;
}
