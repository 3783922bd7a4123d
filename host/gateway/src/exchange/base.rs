//! The window before something is summed up or left behind, and what such a step is bound by.

use pmk_core::{Applied, Guard, floor};
use pmk_policy::Rung;

use super::{
    Exchange, Ports,
    window::{Fold, Window},
};
use crate::{ledger::Event, store::StoreError};

/// Requests that are made again after a refusal, at most.
pub(crate) const MAX_RETRIES: usize = 3;

/// The window as it was before recovery began.
#[derive(Clone)]
pub(crate) struct Base {
    pub window: Window,
    pub tokens: u64,
}

impl Base {
    /// Whether a request of this size is a tenth smaller.
    pub fn shrinks_to(&self, tokens: u64) -> bool {
        tokens.saturating_mul(10) <= self.tokens.saturating_mul(9)
    }

    /// The rungs that were not tried and can still help.
    pub fn available(&self, tried: &[Rung], limit: u64) -> Vec<Rung> {
        let helps = |rung: &Rung| match rung {
            Rung::Trim => self.trimmed(limit).is_some(),
            Rung::Compact => self.window.middle().is_some(),
            Rung::Rotate => self.window.before_this_turn().is_some(),
            Rung::GiveUp => true,
        };
        Rung::ALL.into_iter().filter(|rung| !tried.contains(rung)).filter(helps).collect()
    }

    /// What the trim rung leaves of the window, if that helps.
    pub fn trimmed(&self, limit: u64) -> Option<Applied> {
        let transcript = self.window.transcript();
        let guard = Guard { limit: limit.max(self.tokens), seed_may_go: false, must_shrink: true };
        guard.apply(&transcript, &floor::trim(&transcript)).ok()
    }
}

/// Puts a summary in the place of a part of the base window, in the stored live window, too, with what there is to tell
/// of it.
pub(super) async fn fold(
    ports: &dyn Ports,
    exchange: &mut Exchange,
    base: &Base,
    fold: Fold,
    told: Vec<Event>,
) -> Result<(), StoreError> {
    let mut window = base.window.clone();
    let stored = ports.fold(exchange.session, &window, &fold, told).await?;
    window.fold(fold, stored);
    exchange.window = window;
    Ok(())
}
