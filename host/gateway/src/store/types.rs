//! Types that the store takes and returns.

use std::{collections::HashSet, ops::Range, sync::Arc};

use pmk_core::{Entry, FrontName, Message, SessionKey};
use pmk_models::Usage;
use serde::{Deserialize, Serialize};

use super::{
    Verbosity, calibrations::ModelCalibration, experiments::TurnOutcome, proposals::Proposal, receipt::Receipts,
};
use crate::{
    calibration::Sizes,
    case::{CaseId, Note},
    chat::{Inbound, MessageBody},
    escalation::{EscalationRemark, Marker, Reading},
    ids::{InboxId, SessionId, TurnId},
    ledger::{TaggedEvent, Tags, report::TurnReport},
};

/// A question that is not finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    pub inbox: InboxId,
    pub key: SessionKey,
    /// Its position among the questions of its conversation, as [`Inbound::ts`].
    pub ts: String,
}

/// All questions that are neither finished nor parked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenWork {
    pub pending: Vec<Pending>,
    /// Questions whose conversation cannot be read, and why.
    pub unreadable: Vec<(InboxId, String)>,
    /// Those of the questions that a command reopened while it was not at work itself, see [`Store::reopen`].
    ///
    /// [`Store::reopen`]: super::Store::reopen
    pub reopened: HashSet<InboxId>,
}

/// A question that was set aside because it could not be processed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parked {
    pub inbox: InboxId,
    /// The conversation's key, as stored.
    pub key: String,
    /// Its position among the questions of its conversation.
    pub ts: String,
    /// When it was parked, milliseconds since the epoch.
    pub at_ms: i64,
    /// Why it was parked, for the operator.
    pub why: String,
    /// Whether the person who asked was told.
    pub told: bool,
    /// Whether an earlier attempt to tell them may have reached them.
    pub maybe_told: bool,
    /// The question; `None` where it cannot be read.
    pub message: Option<Inbound>,
    /// The message that shows the person that an answer is being made.
    pub placeholder: Option<String>,
    /// Whether the whole answer was delivered, and only something beside it could not be.
    pub answered: bool,
    /// Where its answer could not be delivered: the event ids of all messages that the answer is for.
    pub event_ids: Vec<String>,
}

/// Parked questions that were reopened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unparked {
    pub pending: Vec<Pending>,
    /// How many stay parked, because their conversation cannot be read.
    pub unreadable: usize,
}

/// What remains to be done for a question.
#[derive(Debug)]
pub enum BeginOutcome {
    /// A command is working on the conversation; try again in a moment.
    Busy,
    /// Another host is working on the conversation, or has an earlier question in it to answer: read what is open
    /// in it, and try again.
    Elsewhere,
    /// It has no answer yet.
    Ask(OpenTurn),
    /// The answer is stored but not delivered, because of a crash.
    Deliver(Answered),
    /// Nothing: the answer was delivered.
    Done,
}

/// A turn without an answer. The conversation is leased to this `run` until the turn is finished.
#[derive(Debug)]
pub struct OpenTurn {
    pub turn: TurnId,
    pub session: SessionId,
    pub inbound: Inbound,
    /// When the question came in, milliseconds since the epoch.
    pub received_at_ms: i64,
    /// The placeholder of an earlier attempt.
    pub placeholder: Option<String>,
    /// What an earlier attempt may have shown beside the placeholder.
    pub begun_with: Begun,
    /// Whether it is already stored that a placeholder may be shown.
    pub may_place: bool,
    /// What people in this conversation see of tool calls.
    pub verbosity: Verbosity,
    /// There was an earlier attempt, and it is unknown how far it got.
    pub resumed: bool,
    /// The escalation that the message may answer, where its author is one of the contacts asked.
    pub absorbs: Option<Box<Marker>>,
    /// The escalation that the message may be about, where its author is the asker and still waits.
    pub awaits: Option<Box<Marker>>,
    /// How an earlier attempt has interpreted the message.
    pub reading: Option<Box<Reading>>,
    /// The proposal that the message confirms, where it is its asker's consent.
    pub confirms: Option<Box<Marker>>,
    /// The case that the turn belongs to.
    pub case: Option<CaseId>,
    /// Why the model is not to answer it any more.
    pub called_off: Option<CalledOff>,
    pub live: Live,
    /// Sizes of the conversation's earlier requests, refused and answered.
    pub sizes: Sizes,
    /// How many messages of the conversation were recorded before this turn.
    pub archived: u32,
}

/// Who else is working in the conversation when a turn begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    Alone,
    /// As `Alone`, and it is stored at once that a [placeholder](PreviewKind::Placeholder) may be shown.
    Showing,
    /// The turn that answers this one along with its own: the live window stays as that turn knows it.
    Along,
}

/// What people may see of an answer before it is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreviewKind {
    /// A message that the answer replaces.
    Placeholder,
    /// The answer itself, as far as it has been generated.
    Stream,
}

/// Which previews an attempt may have shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Begun {
    pub placeholder: bool,
    pub stream: bool,
}

impl Begun {
    /// Whether there may be a preview to look for.
    pub const fn is_any(self) -> bool {
        self.placeholder || self.stream
    }
}

/// Why a waiting question gets no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CalledOff {
    /// Its asker or an admin has stopped it.
    Stopped,
    /// The message was deleted.
    Deleted,
}

impl CalledOff {
    /// Returns its name, as stored.
    pub(super) const fn name(self) -> &'static str {
        match self {
            CalledOff::Stopped => "stopped",
            CalledOff::Deleted => "deleted",
        }
    }

    pub(super) fn from_name(name: &str) -> Option<CalledOff> {
        [CalledOff::Stopped, CalledOff::Deleted].into_iter().find(|off| off.name() == name)
    }
}

#[cfg(test)]
impl OpenTurn {
    /// A first turn of a new conversation.
    pub(crate) fn asked(key: &str, user: &str, text: &str) -> OpenTurn {
        let reply_to = crate::chat::ReplyTo { channel: "C1".into(), thread_ts: None };
        let inbound = Inbound {
            event_id: text.into(),
            aliases: vec![],
            key: key.parse().expect("a key"),
            user: user.into(),
            reply_to,
            text: text.into(),
            attached: crate::chat::Attachments::default(),
            if_awaited: false,
            ts: String::new(),
        };
        OpenTurn {
            turn: TurnId::of(1),
            session: SessionId::of(1),
            inbound,
            received_at_ms: 0,
            placeholder: None,
            begun_with: Begun::default(),
            may_place: false,
            verbosity: Verbosity::Off,
            resumed: false,
            absorbs: None,
            awaits: None,
            reading: None,
            confirms: None,
            case: None,
            called_off: None,
            live: Live::default(),
            sizes: Sizes::default(),
            archived: 0,
        }
    }
}

/// The escalation that a message may be about, by the role of the message's author.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Concern {
    /// The author is one of the contacts who were asked.
    Contact(Marker),
    /// The author is the one who asked.
    Asker(Marker),
}

/// A turn whose answer is stored but not, or not fully, delivered.
#[derive(Debug)]
pub struct Answered {
    pub turn: TurnId,
    pub session: SessionId,
    pub inbound: Inbound,
    /// When the question came in, milliseconds since the epoch.
    pub received_at_ms: i64,
    /// When the answer was recorded.
    pub answered_at_ms: i64,
    /// The policies that decided for it.
    pub tags: Tags,
    pub placeholder: Option<String>,
    /// The id of its first part, where an earlier attempt has sent it.
    pub reply_ts: Option<String>,
    /// The parts that are not known to be sent, in order.
    pub parts: Vec<Part>,
    /// There was an earlier attempt: the first of these parts may have been sent just before it ended.
    pub resumed: bool,
    /// That attempt, or one before it, may have shown a part of the answer.
    pub is_streamed: bool,
    pub report: TurnReport,
}

impl Answered {
    /// Returns an answer that was just recorded and of which nothing was sent yet.
    pub(crate) fn recorded(
        turn: &OpenTurn,
        tags: Tags,
        placeholder: Option<String>,
        parts: Vec<Outgoing>,
        report: TurnReport,
        answered_at_ms: i64,
    ) -> Answered {
        Answered {
            turn: turn.turn,
            session: turn.session,
            inbound: turn.inbound.clone(),
            received_at_ms: turn.received_at_ms,
            answered_at_ms,
            tags,
            placeholder,
            reply_ts: None,
            parts: (0..).zip(parts).map(|(number, outgoing)| Part { number, outgoing }).collect(),
            resumed: false,
            is_streamed: turn.resumed && turn.begun_with.stream,
            report,
        }
    }
}

/// One part of an answer, counted from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub number: u32,
    pub outgoing: Outgoing,
}

/// Which button a message has, beside those that follow from its purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Offers {
    #[default]
    Nothing,
    /// To rate the answer that the message ends.
    Opinion,
    /// To ask the question once more.
    Again,
}

impl Offers {
    pub(super) fn is_nothing(&self) -> bool {
        *self == Offers::Nothing
    }
}

/// One message to be sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outgoing {
    pub speech: MessageBody,
    /// The thread to post in, where that is another of the channel than the question's.
    pub thread_ts: Option<String>,
    /// The person who gets it as a direct message, where the question was asked elsewhere; outside of threads
    /// unless `thread_ts` names one.
    pub to: Option<String>,
    pub purpose: Purpose,
    pub offers: Offers,
}

impl Outgoing {
    /// Returns a part of the reply.
    pub fn reply(text: impl Into<String>) -> Self {
        Outgoing { speech: MessageBody { text: text.into(), pings: vec![] }, ..Outgoing::default() }
    }
}

/// What an outgoing message is for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "for", rename_all = "kebab-case")]
pub enum Purpose {
    /// It answers the question; the first replaces the placeholder.
    #[default]
    Reply,
    /// It passes an answer on to the asker, as a new message, because an edit notifies nobody.
    PassedOn,
    /// It is the whole reply as a file, sent in place of the later parts of the reply; those are posted if the file
    /// is refused.
    Document,
    /// It asks the contacts.
    Escalation,
    /// It asks the asker whether the contacts are to be asked, or a contact whether they have answered.
    Proposal,
    /// It is a reaction to the question that acknowledges it; on a front without reactions its text is posted.
    Mark {
        /// The emoji, by Slack's name.
        emoji: String,
    },
    /// Not a message: an answer is handed on to the conversation of the asker.
    HandOn {
        /// The answer, as the message it becomes there.
        answer: Box<Inbound>,
    },
    /// It says what the answer has added to a case.
    Tracked,
    /// Not a message: removes the placeholder of a question, where the answer replaces another message.
    Withdraw {
        /// The question's event id, by which the placeholder is looked for, and the question's position.
        event_id: String,
        ts: String,
        /// The placeholder, where it is known: otherwise there may be none.
        placeholder: Option<String>,
    },
    /// It asks for a verdict on an atom, whose file is saved just before; it replaces the placeholder.
    Notice {
        /// The file's text.
        atom: String,
        /// Where an earlier attempt has saved the file, whatever became of it since.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        saved_in: Option<String>,
    },
}

/// The live window: what the next request would hold, before the new message.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// Oldest first.
    pub entries: Vec<LiveEntry>,
    /// How many turns were dropped so far; the marker is made from it (guard rule 6).
    pub dropped_turns: u32,
    /// A policy's own text for the marker.
    pub marker_template: Option<String>,
    /// The revision of the conversation.
    pub revision: i64,
}

/// One message of the live window.
#[derive(Clone, Debug)]
pub struct LiveEntry {
    /// Its position: ascending, with gaps where messages were dropped.
    pub position: i64,
    pub entry: Entry,
}

/// What a plan does to the live window.
#[derive(Clone, Debug, Default)]
pub struct WindowEdit {
    /// Positions to remove.
    pub removed: Vec<i64>,
    /// Reduced messages that replace the ones at these positions.
    pub replaced: Vec<Replacement>,
    /// Turns dropped since the conversation began, including the ones dropped by this edit.
    pub dropped_turns_total: u32,
    /// A policy's own text for the marker.
    pub marker_template: Option<String>,
    /// The revision of the conversation that the edit was made for.
    pub revision: i64,
}

/// A range of the live window that is replaced by a summary.
#[derive(Clone, Debug)]
pub struct FoldEdit {
    /// The first and last position to remove.
    pub first: i64,
    pub last: i64,
    /// What replaces them, at the first position.
    pub summary: Option<Message>,
    /// Turns that the window's marker then stands for.
    pub dropped_turns: u32,
    pub marker_template: Option<String>,
    /// The revision of the conversation that the edit was made for.
    pub revision: i64,
}

/// A reduced message and the position it takes.
#[derive(Clone, Debug)]
pub struct Replacement {
    pub position: i64,
    pub message: Arc<Message>,
    /// The estimate of `message`.
    pub tokens: u32,
    /// The length of `message` in characters.
    pub chars: u32,
}

/// What a turn adds to its case, beside its messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseEntry {
    pub case: CaseId,
    /// Who wrote the question, where that was one person only.
    pub user: Option<String>,
    pub asked_at_ms: i64,
    /// What the answer adds to the case; notes that the case already has are not repeated.
    pub notes: Vec<Note>,
}

/// An answer, and everything that is to be stored of the turn.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// What the turn adds, in order: the question, what it produced, the answer. Entries with the id 0 are new to
    /// the archive; [`Store::archive`](super::Store::archive) has already stored the others.
    pub messages: Vec<Entry>,
    pub usage: Usage,
    /// Other turns that this answer also closes, and who wrote each.
    pub also: Vec<(TurnId, String)>,
    /// Where the first message combines the messages of several turns: the byte range of each turn's text in it.
    pub pieces: Vec<(TurnId, Range<usize>)>,
    /// The ids of the atoms that the model was shown for the answer.
    pub atoms: Vec<String>,
    /// What is to be delivered, in order.
    pub parts: Vec<Outgoing>,
    /// What was learnt about the model.
    pub calibration: Option<ModelCalibration>,
    /// The updated sizes of the conversation's requests; `None` where they have not changed.
    pub sizes: Option<Sizes>,
    /// What happens to an escalation.
    pub escalation: Option<EscalationUpdate>,
    /// What is stored with a case.
    pub case: Option<CaseEntry>,
    /// What the front is told after delivery.
    pub report: TurnReport,
    /// What is counted of the turn for experiments.
    pub outturn: TurnOutcome,
    /// Whether the messages enter the live window. Not when the turn was given up: what could not be answered once
    /// must not make the next turn fail.
    pub keep_live: bool,
    /// The events that the ledger gets.
    pub events: Vec<TaggedEvent>,
    /// What the turn's requests to the model were made from.
    pub receipts: Receipts,
    /// The revision of the conversation when the turn began.
    pub revision: i64,
    /// The message that the answer replaces; `None` where that can only be the one that was
    /// [placed](super::Store::placed).
    pub placeholder: Option<String>,
}

impl Recorded {
    /// Returns what a turn stores that ends with these parts, and nothing else.
    pub fn of(report: TurnReport, parts: Vec<Outgoing>, revision: i64) -> Recorded {
        Recorded {
            messages: vec![],
            usage: Usage::default(),
            also: vec![],
            pieces: vec![],
            atoms: vec![],
            parts,
            calibration: None,
            sizes: None,
            escalation: None,
            case: None,
            report,
            outturn: TurnOutcome::default(),
            keep_live: false,
            events: vec![],
            receipts: Receipts::default(),
            revision,
            placeholder: None,
        }
    }
}

/// What happens to an escalation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EscalationUpdate {
    /// It is sent: from now on a thread waits for the answer.
    Asked(FrontName, Marker),
    /// It is first shown to its asker for confirmation.
    Proposed(Proposal),
    /// It was confirmed, by the message with this event id, but cannot be sent now: it waits for confirmation
    /// again.
    Reopened(String),
    /// Somebody has commented on it, and it still waits.
    Said(FrontName, Marker, EscalationRemark),
    /// A contact is asked whether they have answered it.
    Unsure(Proposal),
    /// Its answer is handed on to the conversation of the asker, where it is accepted as a message.
    HandedOn,
    /// It is no longer waited for.
    Withdrawn(FrontName, Marker),
}

/// A part that was sent: its number, and the front's id of it, where the front has ids.
pub type Sent = (u32, Option<String>);

/// What `sessions list` shows of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionSummary {
    pub key: SessionKey,
    /// Questions answered.
    pub turns: u64,
    pub live_messages: u64,
    pub live_tokens: u64,
    /// Messages that are no longer in the live window.
    pub archived_messages: u64,
    /// Turns that the live window's marker stands for.
    pub dropped_turns: u32,
    /// A policy's own text for that marker.
    pub marker_template: Option<String>,
    /// When a message last arrived, milliseconds since the epoch.
    pub active_at_ms: i64,
}

/// A stored message, as `sessions show` shows it.
#[derive(Clone, Debug)]
pub struct StoredMessage {
    /// The message, and what replaces it where it was reduced.
    pub entry: Entry,
    /// Whether the live window holds it.
    pub live: bool,
    /// When it was stored, milliseconds since the epoch.
    pub created_at_ms: i64,
}

/// The right to change a conversation while none of its turns is under way.
#[derive(Debug)]
#[must_use = "a lease that is not released blocks the conversation until it runs out"]
pub struct Lease {
    pub(super) session: SessionId,
    pub(super) key: SessionKey,
    pub(super) owner: String,
}

impl Lease {
    /// The conversation.
    pub fn session(&self) -> SessionId {
        self.session
    }
}
