//! What a policy may decide: one trait per decision.

use crate::{Budget, CapVerdict, Description, Incoming, Overflow, Plan, Recovery, Summary, Transcript, rung};

/// Every policy says what it is. The other traits build on this one; implement those whose decisions you
/// want to make, and list them in [`export!`](crate::export).
pub trait Policy {
    /// Gives name, version and one line of what it does, and declares the settings.
    fn describe(description: &Description);
}

/// May a large message be stored whole?
pub trait Cap: Policy {
    /// Asked before a seed, a code-search result, a tool result or an attachment is stored. A verdict that is not
    /// touched keeps it whole.
    fn cap(incoming: &Incoming, verdict: &CapVerdict);
}

/// Which messages does the model get to see?
pub trait Prune: Policy {
    /// Asked before every model call, retries included. A plan that is not touched sends everything.
    fn prune(transcript: &Transcript, budget: &Budget, plan: &Plan);
}

/// What is worth carrying into a fresh session?
pub trait Summarize: Policy {
    /// Asked when a conversation must go on in a fresh session; there is no model to ask.
    fn summarize(transcript: &Transcript, summary: &Summary);
}

/// What to try after the model has said that a request is too long?
pub trait Recover: Policy {
    /// Asked once per overflow. A recovery that is not touched leaves the choice to the next policy.
    fn recover(overflow: &Overflow, recovery: &Recovery);
}

impl Recovery {
    /// Chooses the first of these [rungs](crate::rung) that is available and was not tried, else to give up.
    pub fn climb(&self, overflow: &Overflow, ladder: &[u8]) {
        let (tried, available) = (overflow.tried(), overflow.available());
        let next = ladder.iter().copied().find(|rung| available.contains(rung) && !tried.contains(rung));
        self.choose(next.unwrap_or(rung::GIVE_UP));
    }
}
