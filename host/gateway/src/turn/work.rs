//! A turn under way: what it was begun with, its window, and what has come of it so far.

use std::sync::Arc;

use pmk_core::request::alternate;
use pmk_models::{Request, Usage};
use pmk_policy::{DecidedBy, Phase};

use super::{journal::Journal, recover::trial::Trial, window::Window};
use crate::preambles::Preamble;
use crate::{
    audience::Audience,
    calibration::TokenBudget,
    case::{Case, Note},
    directive::{self, Offer},
    policies::Deciding,
    progress::Progress,
    store::{Escalating, OpenTurn, Outgoing},
};

/// A turn under way.
pub(super) struct Work<'a> {
    pub turn: &'a OpenTurn,
    pub policies: Deciding,
    pub journal: Arc<Journal<'a>>,
    /// Turns that are answered along.
    pub also: Vec<OpenTurn>,
    /// So many of them stand in the new message.
    pub merged: usize,
    /// Who the answer is written for, as of now (seed 003 §12).
    pub audience: Audience,
    /// What can be done for the model, as of now.
    pub offer: Offer,
    pub preamble: Arc<Preamble>,
    pub room: TokenBudget,
    /// No request of this turn is as large as this: the smallest that got no answer because of its size, as far as
    /// anybody knows.
    pub below: Option<u64>,
    /// Smaller requests that are only tried.
    pub trial: Option<Trial>,
    pub window: Window,
    /// The case that the turn belongs to, as it was when the turn was begun.
    pub case: Option<Case>,
    /// The ids of the atoms that were found for the new message.
    pub atoms: Vec<String>,
    /// The placeholder that the answer will take the place of.
    pub placeholder: Option<String>,
    /// Shows on the placeholder how the turn is getting on, once there is something to show.
    pub progress: Option<Progress>,
    pub tally: Tally,
}

impl Work<'_> {
    /// The estimate of the whole prompt that is sent now.
    pub fn estimate(&self) -> u64 {
        self.tally.tokens_after + self.preamble.tokens
    }

    /// The room beside a preamble of so many tokens that this turn's refusals leave of what is there.
    pub fn capped(&self, room: TokenBudget, preamble_tokens: u64) -> TokenBudget {
        let most = self.below.map_or(u64::MAX, |below| below.saturating_sub(1).saturating_sub(preamble_tokens));
        let limit = room.limit.min(most);
        TokenBudget { limit, alone: room.alone.min(most), is_counted: room.is_counted && room.alone <= most, ..room }
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
            max_answer_tokens: self.room.answer,
            tools: Arc::clone(&self.preamble.tools),
        }
    }
}

/// What has come of the turn.
#[derive(Default)]
pub(super) struct Tally {
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
    /// Questions that were put to the model.
    pub calls: u32,
    pub usage: Usage,
    /// Goes before everything else: how late the answer comes.
    pub late: String,
    /// Goes before the answer.
    pub prefix: String,
    /// Goes before it, too, or is all that is said: that others were not asked, for there were too many questions.
    pub bounded: String,
    /// Goes before it, too: what had to be cut for it.
    pub cut: String,
    /// Rounds in which the model had something done.
    pub rounds: u32,
    /// Calls and directives of the model that were looked at, whatever became of them.
    pub wanted: u32,
    /// Questions put to `mra`.
    pub mra_asks: u32,
    /// What the model has noted of the case.
    pub notes: Vec<Note>,
    /// A question to the people who know, and the messages that ask them, or the one that asks their asker first.
    pub escalation: Option<(Escalating, Vec<Outgoing>)>,
}

impl Tally {
    /// Adds what one call used.
    pub fn add_usage(&mut self, usage: Usage) {
        self.usage.input_tokens += usage.input_tokens;
        self.usage.output_tokens += usage.output_tokens;
        self.usage.cache_read_tokens += usage.cache_read_tokens;
        self.usage.cache_creation_tokens += usage.cache_creation_tokens;
    }
}
