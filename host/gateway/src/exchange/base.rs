//! The window before a part of it is summarized or left behind, and the limits of such a step.

use pmk_core::{Applied, Guard, floor};
use pmk_policy::Rung;

use super::{
    Draft, Exchange, Ports,
    window::{Fold, Window},
};
use crate::{ledger::Event, store::StoreError};

/// The most requests that are retried after a refusal.
pub(crate) const MAX_RETRIES: usize = 3;

/// The window before recovery began.
#[derive(Clone)]
pub(crate) struct Base {
    pub window: Window,
    pub tokens: u64,
    draft: Draft,
}

impl Base {
    /// Keeps the window of an exchange as it is now; it has this many tokens.
    pub fn of(exchange: &Exchange, tokens: u64) -> Base {
        Base { window: exchange.window.clone(), tokens, draft: exchange.tally.draft.clone() }
    }

    /// Makes it the window of the exchange again, and forgets what was taken from it since.
    pub fn restore(&self, exchange: &mut Exchange) {
        exchange.window = self.window.clone();
        exchange.tally.draft = self.draft.clone();
    }

    /// Returns whether a request of this size is at least a tenth smaller.
    pub fn shrinks_to(&self, tokens: u64) -> bool {
        tokens.saturating_mul(10) <= self.tokens.saturating_mul(9)
    }

    /// Returns the rungs that were not tried and can still help.
    pub fn available(&self, tried: &[Rung], limit: u64) -> Vec<Rung> {
        let helps = |rung: &Rung| match rung {
            Rung::Trim => self.trimmed(limit).is_some(),
            Rung::Compact => self.window.middle().is_some(),
            Rung::Rotate => self.window.before_this_turn().is_some(),
            Rung::GiveUp => true,
        };
        Rung::ALL.into_iter().filter(|rung| !tried.contains(rung)).filter(helps).collect()
    }

    /// Returns what the trim rung leaves of the window, if it helps.
    pub fn trimmed(&self, limit: u64) -> Option<Applied> {
        let transcript = self.window.transcript();
        let guard = Guard { limit: limit.max(self.tokens), seed_may_go: false, must_shrink: true };
        guard.apply(&transcript, &floor::trim(&transcript)).ok()
    }
}

/// Replaces a part of the base window by a summary, in the stored live window, too, and stores the events with it.
pub(super) async fn fold(
    ports: &dyn Ports,
    exchange: &mut Exchange,
    base: &Base,
    fold: Fold,
    told: Vec<Event>,
) -> Result<(), StoreError> {
    let stored = ports.fold(exchange.session, &base.window, &fold, told).await?;
    base.restore(exchange);
    let transcript = base.window.transcript();
    let turns = u32::try_from(transcript.turns_in(fold.range.start, fold.range.end)).unwrap_or(u32::MAX);
    let draft = &mut exchange.tally.draft;
    if fold.summary.is_some() {
        draft.turns_summarised += turns;
        draft.summarised.extend(transcript.entries()[fold.range.clone()].iter().map(|entry| entry.id));
    } else {
        draft.turns_dropped += turns;
    }
    exchange.window.fold(fold, stored);
    Ok(())
}
