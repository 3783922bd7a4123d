//! A turn under way: what it was begun with, its exchange with the model, and what has come of it so far.

use std::sync::{Arc, OnceLock};

use super::{live::LivePorts, placeholder::Placeholder};
use crate::{
    case::{Case, Note},
    chat::Attachments,
    exchange::Exchange,
    front::progress::Progress,
    store::{EscalationUpdate, OpenTurn, Outgoing},
};

/// A turn under way.
pub(super) struct Work<'a> {
    pub turn: &'a OpenTurn,
    /// How its exchange reaches the world.
    pub ports: LivePorts<'a>,
    pub exchange: Exchange,
    /// Turns that are answered along.
    pub also: Vec<OpenTurn>,
    /// What came with the message and with those, as far as it was read.
    pub attached: Attachments,
    /// So many of them stand in the new message.
    pub merged: usize,
    /// The case that the turn belongs to, as it was when the turn was begun.
    pub case: Option<Case>,
    /// The ids of the atoms that were found for the new message.
    pub atoms: Vec<String>,
    /// What the answer will take the place of, once it is known.
    pub placeholder: Arc<OnceLock<Placeholder>>,
    /// Shows on the placeholder how the turn is getting on, once there is something to show.
    pub progress: Option<Progress>,
    pub tally: Tally,
}

/// What has come of the turn beside its exchange.
#[derive(Default)]
pub(super) struct Tally {
    /// Goes before everything else: how late the answer comes.
    pub late: String,
    /// Goes before the answer.
    pub prefix: String,
    /// Goes before it, too, or is all that is said: that others were not asked, for there were too many questions.
    pub bounded: String,
    /// Rounds in which the model had something done.
    pub rounds: u32,
    /// The last of those, as far as nothing could be done of what it wanted.
    pub idle_rounds: u32,
    /// Calls and directives of the model that were looked at, whatever became of them.
    pub wanted: u32,
    /// Questions put to `mra`.
    pub mra_asks: u32,
    /// What the model has noted of the case.
    pub notes: Vec<Note>,
    /// A question to the people who know, and the messages that ask them, or the one that asks their asker first.
    pub escalation: Option<(EscalationUpdate, Vec<Outgoing>)>,
}
