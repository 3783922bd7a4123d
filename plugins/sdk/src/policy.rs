//! The decisions of a policy: one trait per decision.

use crate::{Budget, CapVerdict, Description, Incoming, Overflow, Plan, Recovery, Summary, Transcript, rung};

/// Every policy describes itself. The other traits require this one; implement those whose decisions you want to make,
/// and list them in [`export!`](crate::export).
pub trait Policy {
    /// Sets name, version and one line about the policy, and declares the settings.
    fn describe(description: &Description);
}

/// Decides how much of a large message is stored.
pub trait Cap: Policy {
    /// Called before a seed, a code-search result, a tool result or an attachment is stored. An unchanged verdict keeps
    /// all of it.
    fn cap(incoming: &Incoming, verdict: &CapVerdict);
}

/// Decides which messages the model sees.
pub trait Prune: Policy {
    /// Called before every model call, including retries. An unchanged plan sends everything.
    fn prune(transcript: &Transcript, budget: &Budget, plan: &Plan);
}

/// Decides what is carried over into a fresh session.
pub trait Summarize: Policy {
    /// Called when a conversation must continue in a fresh session, without a model call.
    fn summarize(transcript: &Transcript, summary: &Summary);
}

/// Decides what to try after the model has refused a request as too long.
pub trait Recover: Policy {
    /// Called until a chosen rung helps. An unchanged recovery leaves the choice to the next policy.
    fn recover(overflow: &Overflow, recovery: &Recovery);
}

impl Recovery {
    /// Chooses the first of these [rungs](crate::rung) that is available and was not tried; if there is none, gives up.
    pub fn climb(&self, overflow: &Overflow, ladder: &[u8]) {
        let (tried, available) = (overflow.tried(), overflow.available());
        let next = ladder.iter().copied().find(|rung| available.contains(rung) && !tried.contains(rung));
        self.choose(next.unwrap_or(rung::GIVE_UP));
    }
}
