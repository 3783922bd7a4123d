//! A running turn: its inputs, its exchange with the model, and its results so far.

use std::sync::{Arc, OnceLock, atomic::AtomicUsize};

use super::{batching, live::LivePorts, placeholder::Placeholder};
use crate::{
    case::{Case, Note},
    chat::Attachments,
    exchange::Exchange,
    front::progress::Progress,
    store::{EscalationUpdate, OpenTurn, Outgoing, Verbosity},
};

/// A running turn.
pub(super) struct Work<'a> {
    pub turn: &'a OpenTurn,
    /// Its ports to policies, model and store.
    pub ports: LivePorts<'a>,
    pub exchange: Exchange,
    /// Turns whose messages are merged into its own, all older.
    pub merged: Vec<OpenTurn>,
    /// Turns whose messages came while it was being answered, and follow its own.
    pub steered: Vec<Steered>,
    /// What came with its message and with those merged into it, as far as it was read.
    pub attached: Attachments,
    /// The case that the turn belongs to, as it was when the turn began.
    pub case: Option<Case>,
    /// Ids of the atoms found for the new message.
    pub atoms: Vec<String>,
    /// The message that the answer will replace, once it is known.
    pub placeholder: Arc<OnceLock<Placeholder>>,
    /// What people see of tool calls; they may change that while the turn runs.
    pub verbosity: Verbosity,
    /// Shows the progress of the turn on the placeholder, once there is something to show.
    pub progress: Option<Progress>,
    pub tally: Tally,
}

/// A turn whose message came while another was being answered.
pub(super) struct Steered {
    pub turn: OpenTurn,
    /// Archive ids of what came with its message, if anything did, and of the message.
    pub entries: Vec<i64>,
    /// Names the files that came with it and could not be read.
    pub not_read: String,
    /// The sizes, in characters, of those that were capped, before and after.
    pub capped: Vec<(usize, usize)>,
}

impl Work<'_> {
    /// Returns the turns whose messages came while it was being answered.
    pub fn steered(&self) -> impl Iterator<Item = &OpenTurn> {
        self.steered.iter().map(|steered| &steered.turn)
    }

    /// Returns the turns that are answered together with it.
    pub fn others(&self) -> impl Iterator<Item = &OpenTurn> {
        self.merged.iter().chain(self.steered())
    }

    /// Returns the author of its message and of those merged into it, if that was one person; `None` for an answer that
    /// is passed on, whose text the gateway composes. Messages that arrived later are not considered: each is a message
    /// of its own turn.
    pub fn asked_by(&self) -> Option<&str> {
        batching::author(self.turn, &self.merged).filter(|_| self.turn.absorbs().is_none())
    }
}

/// Results of the turn other than its exchange.
#[derive(Default)]
pub(super) struct Tally {
    /// Precedes everything else: how late the answer is.
    pub late: String,
    /// Precedes the answer.
    pub prefix: String,
    /// Precedes the answer, too, or is the whole reply: nobody was asked because the hourly limit is reached.
    pub bounded: String,
    /// Rounds in which the model requested something.
    pub rounds: u32,
    /// The latest consecutive rounds in which nothing could be done of what the model requested.
    pub idle_rounds: u32,
    /// Calls and directives of the model that were examined, whatever became of them.
    pub wanted: u32,
    /// Number of `mra` questions.
    pub mra_asks: u32,
    /// Those of them that count against the hourly limit and were not put: not begun, or ended by the gateway's stop.
    pub mra_not_put: AtomicUsize,
    /// Why the model gave no answer: the class of the error.
    pub unanswered: Option<&'static str>,
    /// Whether the model's latest answer has used up the room for it.
    pub is_used_up: bool,
    /// The model's case notes.
    pub notes: Vec<Note>,
    /// An escalation, and the messages that ask the contacts, or the one that proposes it to the asker first.
    pub escalation: Option<(EscalationUpdate, Vec<Outgoing>)>,
}
