//! A turn under way: what it was begun with, its window, and what has come of it so far.

use std::sync::Arc;

use pmk_core::request::alternate;
use pmk_policy::{DecidedBy, Phase};

use super::{journal::Journal, preamble::Preamble, recover::trial::Trial, window::Window};
use crate::{
    audience::Audience,
    calibration::Calibration,
    case::{Case, Note},
    directive::{self, Offer},
    model::{Request, Usage},
    policies::Deciding,
    progress::Progress,
    store::{Escalating, OpenTurn, Outgoing, SessionId},
};

/// Room for the answer, in tokens; never more than a quarter of the window.
const ANSWER_TOKENS: u64 = 8_192;

/// The least hard limit that anything learnt of a model may leave, in tokens. A conversation within it is always tried,
/// and never suspected of being too large.
pub(super) const LEAST_LIMIT: u64 = 1_024;

/// A turn under way.
pub(super) struct Work<'a> {
    pub turn: &'a OpenTurn,
    pub policies: Deciding,
    pub journal: Arc<Journal>,
    /// Turns that are answered along.
    pub also: Vec<OpenTurn>,
    /// So many of them stand in the new message.
    pub merged: usize,
    /// Who the answer is written for, as of now (seed 003 §12).
    pub audience: Audience,
    /// What can be done for the model, as of now.
    pub offer: Offer,
    pub preamble: Arc<Preamble>,
    pub room: Room,
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
    pub fn capped(&self, room: Room, preamble_tokens: u64) -> Room {
        let most = self.below.map_or(u64::MAX, |below| below.saturating_sub(1).saturating_sub(preamble_tokens));
        let limit = room.limit.min(most);
        Room { limit, alone: room.alone.min(most), is_counted: room.is_counted && room.alone <= most, ..room }
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

/// How the model's window is shared out, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    pub window: u64,
    pub answer: u32,
    /// What is left for messages: the hard limit of guard rule 9.
    pub limit: u64,
    /// What the new message alone may take: below what was refused, it is asked.
    pub alone: u64,
    /// Whether that is what fits, by the window, rather than what nobody has tried yet.
    pub is_counted: bool,
}

impl Room {
    /// The room that a model of this window leaves beside a preamble of so many tokens, where nothing is known
    /// of how it counts.
    pub(crate) fn of(window: u64, preamble_tokens: u64) -> Room {
        Room::counted(window, preamble_tokens, |tokens| tokens)
    }

    /// The same where something is known: `estimate_for` gives the largest estimate of a whole prompt that
    /// the provider counts as so many tokens.
    pub(crate) fn counted(window: u64, preamble_tokens: u64, estimate_for: impl Fn(u64) -> u64) -> Room {
        let answer = ANSWER_TOKENS.min(window / 4);
        let limit = estimate_for(window.saturating_sub(answer)).saturating_sub(preamble_tokens);
        Room { window, answer: u32::try_from(answer).unwrap_or(u32::MAX), limit, alone: limit, is_counted: true }
    }

    /// The same with what was learnt of the model and of this conversation, as of now.
    pub(crate) fn calibrated(
        window: u64,
        preamble_tokens: u64,
        session: SessionId,
        calibration: &Calibration,
        now_ms: i64,
    ) -> Room {
        let stated = Room::of(window, preamble_tokens);
        let bounds = calibration.bounds();
        // A model that counts less than we estimate gives no room beyond its window.
        let mut learnt = Room::counted(bounds.window(window, session, now_ms), preamble_tokens, |tokens| {
            calibration.estimate_for(session, tokens).min(tokens)
        });
        if let Some(most) = bounds.most(session, now_ms) {
            learnt.limit = learnt.limit.min(most.saturating_sub(preamble_tokens));
        }
        if let Some(most) = bounds.most_alone(session, now_ms).map(|most| most.saturating_sub(preamble_tokens)) {
            learnt.is_counted = learnt.alone <= most;
            learnt.alone = learnt.alone.min(most);
        }
        if learnt.limit >= LEAST_LIMIT || learnt.limit >= stated.limit {
            return learnt;
        }
        // What was learnt may be wrong, and nobody must be locked out by it: a short question is always tried.
        tracing::error!(
            window = learnt.window,
            factor = calibration.fit().factor(),
            overhead = calibration.fit().overhead(),
            most = bounds.most(session, now_ms),
            "what was learnt of the model leaves no room for a conversation; `pmk-host model forget` forgets it"
        );
        let limit = stated.limit.min(LEAST_LIMIT);
        Room { limit, alone: limit.max(learnt.alone), is_counted: false, ..stated }
    }
}
