//! The exchange with the model within a turn: what it gets of the conversation, the call, and what is done when that was
//! too much.
//!
//! [`budget`] has the policy decide and carries its plan out, [`call`] asks the model and [`recover`] climbs down where the
//! prompt was too long; what may not help is only a [`trial`]. All of it works on one [`Exchange`] and reaches the world by
//! its [`Ports`] alone; so the same code runs whether people wait for the answer ([`turn`](crate::turn)) or a recording is
//! replayed ([`compare`](crate::evaluation::compare)).

mod base;
pub(crate) mod budget;
pub(crate) mod call;
mod compact;
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
    calibration::{LEAST_LIMIT, Sizes, TokenBudget},
    directive,
    ids::SessionId,
    preambles::Preamble,
};

pub(crate) use ports::{AdminAlert, Ports, Sent, SummaryInput, ToolSupport};
use trial::Trial;
use window::Window;

/// The exchange of one turn, under way.
pub(crate) struct Exchange {
    pub session: SessionId,
    /// The conversation, as text, and who has asked: for the log and the ledger.
    pub key: String,
    pub asker: String,
    /// What goes along with every request.
    pub preamble: Arc<Preamble>,
    pub budget: TokenBudget,
    /// No request of this turn is as large as this: the smallest that got no answer because of its size, as far as
    /// anybody knows.
    pub below: Option<u64>,
    /// What this conversation's requests have met with.
    pub sizes: Sizes,
    /// Smaller requests that are only tried.
    pub trial: Option<Trial>,
    pub window: Window,
    /// So many atoms were found for the new message.
    pub atoms: usize,
    pub tally: Tally,
}

/// What has come of it.
#[derive(Default)]
pub(crate) struct Tally {
    pub phase: Phase,
    /// The first decision's.
    pub tokens_before: u64,
    /// The last request's.
    pub tokens_after: u64,
    pub turns_dropped: u32,
    pub messages_replaced: usize,
    /// The ids of the archived messages that the model was shown again last.
    pub recalled: Vec<i64>,
    /// Who made the last decision; nobody where there was none to make.
    pub decided_by: Option<DecidedBy>,
    /// Whether a policy has had its wish to sum something up before the call.
    pub compacted: bool,
    /// Whether the model has refused a prompt as too long.
    pub overflowed: bool,
    /// Whether nothing made it fit.
    pub gave_up: bool,
    /// Rungs of recovery that were used, by name.
    pub rungs: Vec<&'static str>,
    /// Whether the model's server has refused images that were answered without.
    pub images_refused: bool,
    /// What had to be cut for an answer.
    pub cut: Option<Cut>,
    /// Questions that were put to the model.
    pub calls: u32,
    pub usage: Usage,
}

/// What had to be cut, in turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// They were dropped.
    Trimmed(u32),
    /// A summary by the model stands for them.
    Compacted(u32),
    /// The conversation goes on in a fresh session without them.
    Rotated(u32),
}

impl Exchange {
    /// The estimate of the whole prompt that is sent now.
    pub fn estimate(&self) -> u64 {
        self.tally.tokens_after + self.preamble.tokens
    }

    /// What the new message takes.
    pub fn alone(&self) -> u64 {
        u64::from(self.window.new_message().tokens)
    }

    /// Whether the new message alone may fit: the halfway limit is for what goes along with it.
    pub fn fits_at_all(&self) -> bool {
        self.alone() <= self.budget.limit.max(self.budget.alone)
    }

    /// The budget beside a preamble of so many tokens that the refusals of this turn and of this conversation leave of what is
    /// there. A message of which nothing can be left out is held back by those of this turn alone.
    pub fn capped(&self, budget: TokenBudget, preamble_tokens: u64, now_ms: i64) -> TokenBudget {
        let beside = |most: u64| most.saturating_sub(preamble_tokens);
        let most_here = self.sizes.most(now_ms).map_or(u64::MAX, |most| beside(most).max(LEAST_LIMIT));
        let most = self.below.map_or(u64::MAX, |below| beside(below.saturating_sub(1)));
        let limit = budget.limit.min(most).min(most_here);
        TokenBudget {
            limit,
            alone: budget.alone.min(most),
            is_counted: budget.is_counted && budget.alone <= most,
            ..budget
        }
    }

    /// What is sent to the model now.
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
