//! The exchange with the model within a turn: which part of the conversation the model gets, the model call, and the
//! recovery if the prompt was too long.
//!
//! [`budget`] asks the policy and carries out its plan, [`call`] calls the model, and [`recover`] shrinks a prompt that
//! was too long; a change that may not help is only a [`trial`]. All of it works on one [`Exchange`] and reaches its
//! environment only through its [`Ports`]. So the same code runs whether people wait for the answer
//! ([`turn`](crate::turn)) or a recording is replayed ([`compare`](crate::evaluation::compare)).

mod base;
pub(crate) mod budget;
pub(crate) mod call;
mod compact;
mod given_up;
mod invariants;
pub(crate) mod material;
mod ports;
pub(crate) mod recover;
mod summary;
mod trial;
pub(crate) mod window;

use std::sync::Arc;

use pmk_core::request::alternate;
use pmk_models::{Request, Usage};
use pmk_policy::{DecidedBy, Phase};

use crate::{
    calibration::{Sizes, TokenBudget},
    directive,
    ids::SessionId,
    preambles::Preamble,
};

pub use given_up::GivenUp;
pub(crate) use ports::{AdminAlert, Ports, Sent, SummaryInput, ToolSupport};
use trial::Trial;
use window::Window;

/// The exchange of one running turn.
pub(crate) struct Exchange {
    pub session: SessionId,
    /// The conversation, as text, and the asker: for log and ledger.
    pub key: String,
    pub asker: String,
    /// The system prompt and tools of every request.
    pub preamble: Arc<Preamble>,
    pub budget: TokenBudget,
    /// Every request of this turn must be smaller than this: the size of the smallest one that got no answer,
    /// apparently because of its size.
    pub below: Option<u64>,
    /// What is known of the sizes of this conversation's requests.
    pub sizes: Sizes,
    /// Whether the new message is several in one, each of which is asked by itself if they are too long together.
    pub is_collected: bool,
    /// The changes that are only tried, if any.
    pub trial: Option<Trial>,
    pub window: Window,
    /// The number of atoms found for the new message.
    pub atoms: usize,
    pub tally: Tally,
}

/// The results of the exchange so far.
#[derive(Default)]
pub(crate) struct Tally {
    pub phase: Phase,
    /// Of the first decision.
    pub tokens_before: u64,
    pub draft: Draft,
    /// Who made the latest decision; `None` if there was none to make.
    pub decided_by: Option<DecidedBy>,
    /// Whether a policy has already requested a summary before the call.
    pub compacted: bool,
    /// Whether the model has refused a prompt as too long.
    pub overflowed: bool,
    /// Whether nothing made the prompt fit.
    pub gave_up: bool,
    /// Rungs of recovery that were used, by name.
    pub rungs: Vec<&'static str>,
    /// Whether the model's server refused images and answered without them.
    pub images_refused: bool,
    /// The estimate of the images of the latest request that were not sent, because there was no room for their bytes or
    /// they are gone.
    pub of_images_left_out: u32,
    /// Number of model calls for the answer.
    pub calls: u32,
    /// The estimate of the largest request that the model has answered in this turn; 0 if there is none.
    pub answered: u64,
    pub usage: Usage,
}

/// What the latest request has of the conversation; a [trial] may take it back, with its window.
#[derive(Clone, Default)]
pub(crate) struct Draft {
    pub tokens_after: u64,
    pub turns_dropped: u32,
    /// Tool and `mra` results that were dropped.
    pub results_dropped: usize,
    pub messages_replaced: usize,
    /// Ids of the archived messages that the model is shown again.
    pub recalled: Vec<i64>,
    /// How many archived messages were shown again, counted at every plan.
    pub messages_recalled: usize,
    /// Turns that a summary replaced, and the ids of their messages.
    pub turns_summarised: u32,
    pub summarised: Vec<i64>,
    /// What was removed so that an answer was possible.
    pub cut: Option<Cut>,
}

/// What was removed, in turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The turns were dropped.
    Trimmed(u32),
    /// A summary by the model replaces the turns.
    Compacted(u32),
    /// The conversation continues in a fresh session without the turns.
    Rotated(u32),
}

impl Cut {
    /// Returns two cuts as one; the later one was made in what the earlier one had left.
    pub fn both(earlier: Option<Cut>, later: Option<Cut>) -> Option<Cut> {
        match (earlier, later) {
            (Some(Cut::Trimmed(before)), Some(Cut::Trimmed(turns))) => Some(Cut::Trimmed(before + turns)),
            // What became of most turns.
            (Some(earlier), Some(Cut::Trimmed(_))) => Some(earlier),
            (earlier, later) => later.or(earlier),
        }
    }
}

impl Draft {
    /// Notes that turns were cut if more were dropped than these.
    pub fn cut_since(&mut self, dropped: u32) {
        let turns = self.turns_dropped.saturating_sub(dropped);
        self.cut = Cut::both(self.cut, (turns > 0).then_some(Cut::Trimmed(turns)));
    }
}

impl Exchange {
    /// Returns what was removed for good; what a trial removes is only stored once it has helped.
    pub fn cut(&self) -> Option<Cut> {
        self.trial.as_ref().map_or(self.tally.draft.cut, Trial::cut_before)
    }

    /// Returns the estimate of the whole current prompt.
    pub fn estimate(&self) -> u64 {
        self.tally.draft.tokens_after + self.preamble.tokens
    }

    /// Returns the tokens of the new message.
    pub fn alone(&self) -> u64 {
        u64::from(self.window.new_message().tokens)
    }

    /// Returns whether the new message alone may fit: the halfway limit only applies to what is
    /// sent with it.
    pub fn fits_at_all(&self) -> bool {
        self.alone() <= self.budget.limit.max(self.budget.alone)
    }

    /// Limits a budget, beside a preamble of this many tokens, by the refusals of this turn and of this conversation. A
    /// new message sent alone, from which nothing can be removed, is limited by the refusals of this turn only.
    pub fn capped(&self, budget: TokenBudget, preamble_tokens: u64, now_ms: i64) -> TokenBudget {
        let most = self.below.map_or(u64::MAX, |below| below.saturating_sub(1).saturating_sub(preamble_tokens));
        let budget = self.sizes.capped(budget, preamble_tokens, now_ms);
        TokenBudget {
            limit: budget.limit.min(most),
            alone: budget.alone.min(most),
            is_counted: budget.is_counted && budget.alone <= most,
            ..budget
        }
    }

    /// Returns the request as it would be sent now.
    pub fn request(&self) -> Request {
        Request {
            system: self.preamble.system.clone(),
            messages: if self.preamble.as_text {
                alternate(self.window.shared().map(directive::as_text))
            } else {
                alternate(self.window.shared())
            },
            max_answer_tokens: self.budget.answer,
            tools: Arc::clone(&self.preamble.tools),
            ..Request::default()
        }
    }
}
