//! What goes into the store and what comes out.

use std::{ops::Range, sync::Arc};

use pmk_core::{Entry, FrontName, Message, SessionKey};
use pmk_models::Usage;
use serde::{Deserialize, Serialize};

use super::{calibrations::ModelCalibration, experiments::TurnOutcome, proposals::Proposal, receipt::Receipts};
use crate::{
    calibration::Sizes,
    case::{CaseId, Note},
    chat::{Inbound, MessageBody},
    escalation::{EscalationRemark, Marker, Reading},
    ids::{InboxId, SessionId, TurnId},
    ledger::{TaggedEvent, Tags, report::TurnReport},
};

/// A question that is not done with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    pub inbox: InboxId,
    pub key: SessionKey,
    /// Its place among the questions of its conversation, as [`Inbound::ts`].
    pub ts: String,
}

/// Everything that is not done with and not parked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenWork {
    pub pending: Vec<Pending>,
    /// Questions of which nobody can tell whose they are, and why.
    pub unreadable: Vec<(InboxId, String)>,
}

/// A question that was set aside because it could not go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parked {
    pub inbox: InboxId,
    /// The conversation, as the store has it.
    pub key: String,
    /// Its place among the questions of its conversation.
    pub ts: String,
    /// When, milliseconds since the epoch.
    pub at_ms: i64,
    /// What stood in the way, for the operator.
    pub why: String,
    /// Whether the person knows.
    pub told: bool,
    /// What was asked; `None` where that cannot be read.
    pub message: Option<Inbound>,
    /// The message that shows the person that an answer is being made.
    pub placeholder: Option<String>,
    /// Whether the person has the whole answer, and only something beside it could not be delivered.
    pub answered: bool,
    /// Where it has an answer that could not be delivered: all that the answer is for, by the front's names.
    pub event_ids: Vec<String>,
}

/// Parked questions that were taken up again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unparked {
    pub pending: Vec<Pending>,
    /// So many stay parked, because nobody can tell whose they are.
    pub unreadable: usize,
}

/// What there is to do about a question.
#[derive(Debug)]
pub enum BeginOutcome {
    /// A command works on the conversation; try again in a moment.
    Busy,
    /// Another host works on the conversation, or is owed an earlier question in it: look what is open in it, and try again.
    Elsewhere,
    /// It has no answer yet.
    Ask(OpenTurn),
    /// A crash came between answer and delivery.
    Deliver(Answered),
    /// Nothing: it has been delivered.
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
    /// What an earlier attempt may have shown beside that.
    pub begun_with: Begun,
    /// It is remembered already that a placeholder may be shown.
    pub may_place: bool,
    /// What people of this conversation are shown of tool calls.
    pub verbosity: Verbosity,
    /// There was an earlier attempt, of which nobody knows how far it came.
    pub resumed: bool,
    /// What the message may answer, where it is by somebody who was asked.
    pub absorbs: Option<Box<Marker>>,
    /// What the message may be about, where it is by who has asked and waits.
    pub awaits: Option<Box<Marker>>,
    /// What an earlier attempt has read it as.
    pub reading: Option<Box<Reading>>,
    /// What the message lets go out, where it is its asker's yes.
    pub confirms: Option<Box<Marker>>,
    /// The case that it belongs to.
    pub case: Option<CaseId>,
    /// Why it gets no answer of the model's any more.
    pub called_off: Option<CalledOff>,
    pub live: Live,
    /// What the conversation's requests have met with.
    pub sizes: Sizes,
    /// How many messages of the conversation were recorded before this turn.
    pub archived: u32,
}

/// Who else is at work in the conversation when a turn begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    Alone,
    /// Nobody, and that a [placeholder](PreviewKind::Placeholder) may be shown is remembered at once.
    Showing,
    /// The turn that takes it along: the live window stays as that knows it.
    Along,
}

/// What people may see of an answer before it is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreviewKind {
    /// A message that the answer takes the place of.
    Placeholder,
    /// The answer itself, as far as it is made.
    Stream,
}

/// Which of these an attempt may have shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Begun {
    pub placeholder: bool,
    pub stream: bool,
}

impl Begun {
    /// Whether there is something that may have to be looked for.
    pub const fn is_any(self) -> bool {
        self.placeholder || self.stream
    }
}

/// Why a question that waits gets no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CalledOff {
    /// Its asker, or an admin, has said so.
    Stopped,
    /// It is not there any more.
    Deleted,
}

impl CalledOff {
    /// The word for it.
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

/// What a message may be about, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Concern {
    /// One of those who were asked.
    Contact(Marker),
    /// Who has asked.
    Asker(Marker),
}

/// What people are shown of tool calls (specification 004 §3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verbosity {
    /// Nothing at all, not even that something goes on.
    Off,
    /// How it is getting on, for as long as it does.
    #[default]
    Progress,
    /// One line a call.
    Summary,
    /// And what came of it.
    Full,
}

impl Verbosity {
    const ALL: [Verbosity; 4] = [Verbosity::Off, Verbosity::Progress, Verbosity::Summary, Verbosity::Full];

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Verbosity::Off => "off",
            Verbosity::Progress => "progress",
            Verbosity::Summary => "summary",
            Verbosity::Full => "full",
        }
    }

    /// The verbosity of that word.
    pub fn from_name(name: &str) -> Option<Verbosity> {
        Verbosity::ALL.into_iter().find(|verbosity| verbosity.name().eq_ignore_ascii_case(name))
    }
}

/// A turn whose answer is stored but not, or not wholly, delivered.
#[derive(Debug)]
pub struct Answered {
    pub turn: TurnId,
    pub session: SessionId,
    pub inbound: Inbound,
    /// When the question came in, milliseconds since the epoch.
    pub received_at_ms: i64,
    /// When the answer was recorded.
    pub answered_at_ms: i64,
    /// Whose decisions it went by.
    pub tags: Tags,
    pub placeholder: Option<String>,
    /// What its first part was sent as, where an earlier attempt has sent it.
    pub reply_ts: Option<String>,
    /// What is not known to be sent, in order.
    pub parts: Vec<Part>,
    /// There was an earlier attempt: the first of them may have been sent just before its end.
    pub resumed: bool,
    /// That attempt, or one before it, may have shown a part of the answer.
    pub is_streamed: bool,
    pub report: TurnReport,
}

impl Answered {
    /// One that was just recorded, of which nothing has gone out yet.
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
            is_streamed: turn.begun_with.stream,
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

/// What the readers of a message may press under it, beside what its purpose says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Offers {
    #[default]
    Nothing,
    /// What they think of the answer that it ends.
    Opinion,
    /// That the question is asked once more.
    Again,
}

impl Offers {
    pub(super) fn is_nothing(&self) -> bool {
        *self == Offers::Nothing
    }
}

/// One message on its way out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outgoing {
    pub speech: MessageBody,
    /// Another thread of the channel than the question's.
    pub thread_ts: Option<String>,
    /// A person who gets it in a direct message, where that is not the question's place; outside of threads unless
    /// `thread_ts` names one.
    pub to: Option<String>,
    pub purpose: Purpose,
    pub offers: Offers,
}

impl Outgoing {
    /// A piece of the reply.
    pub fn reply(text: impl Into<String>) -> Self {
        Outgoing { speech: MessageBody { text: text.into(), pings: vec![] }, ..Outgoing::default() }
    }
}

/// What an outgoing message is for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "for", rename_all = "kebab-case")]
pub enum Purpose {
    /// It answers the question; the first takes the placeholder's place.
    #[default]
    Reply,
    /// It passes an answer on to who asked for it, as a message of its own: an edit notifies nobody.
    PassedOn,
    /// It is the whole reply as a file, which the later parts of the reply are left out for; they are posted
    /// where the file is refused.
    Document,
    /// It asks the people who may know.
    Escalation,
    /// It asks the asker whether they are to be asked, or a contact whether they have answered.
    Proposal,
    /// It is a reaction to the question, which shows that it was taken in; where there can be none it is its words.
    Mark {
        /// The emoji, by Slack's name.
        emoji: String,
    },
    /// It is no message: an answer goes on to the conversation of who asked.
    HandOn {
        /// The answer, as the message that it is there.
        answer: Box<Inbound>,
    },
    /// It tells what the answer has added to a case.
    Tracked,
    /// It is no message: it takes away what shows that a question is being answered, where the answer takes the place of
    /// something else.
    Withdraw {
        /// The question, by which it is looked for, and its place.
        event_id: String,
        ts: String,
        /// The message, where it is known: else there may be none.
        placeholder: Option<String>,
    },
    /// It asks for a verdict on an atom, whose file is saved just before; it takes the placeholder's place.
    Notice {
        /// The file's text.
        atom: String,
    },
}

/// The live window: what the next request would hold, before the new message.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// Oldest first.
    pub entries: Vec<LiveEntry>,
    /// How many turns were dropped so far; the marker is made from it (guard rule 6).
    pub dropped_turns: u32,
    /// A policy's own words for the marker.
    pub marker_template: Option<String>,
    /// Which state of the conversation this is; `None` where nothing else can change it.
    pub revision: Option<i64>,
}

/// One message of the live window.
#[derive(Clone, Debug)]
pub struct LiveEntry {
    /// Where it stands: ascending, with gaps where messages were dropped.
    pub position: i64,
    pub entry: Entry,
}

/// What a plan does to the live window.
#[derive(Clone, Debug, Default)]
pub struct WindowEdit {
    /// Positions that leave it.
    pub removed: Vec<i64>,
    /// Messages that stand for the ones at these positions from now on.
    pub replaced: Vec<Replacement>,
    /// Turns dropped since the conversation began, these included.
    pub dropped_turns_total: u32,
    /// A policy's own words for the marker.
    pub marker_template: Option<String>,
    /// The state of the conversation that it was made for.
    pub revision: Option<i64>,
}

/// A part of the live window that gives way to a summary.
#[derive(Clone, Debug)]
pub struct FoldEdit {
    /// The first and last position that go.
    pub first: i64,
    pub last: i64,
    /// What stands in their place from now on, at the first position.
    pub summary: Option<Message>,
    /// Turns that the window's marker stands for from now on.
    pub dropped_turns: u32,
    pub marker_template: Option<String>,
    /// The state of the conversation that it was made for.
    pub revision: Option<i64>,
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
    /// Who wrote the question, where that was one person alone.
    pub user: Option<String>,
    pub asked_at_ms: i64,
    /// What the answer adds to the case; what it has already, it has once.
    pub notes: Vec<Note>,
}

/// An answer, and everything that is to be remembered of the turn.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// What the turn adds, in order: the question, what it produced, the answer. Those with the id 0 are
    /// new to the archive, the others were put there by [`Store::archive`](super::Store::archive).
    pub messages: Vec<Entry>,
    pub usage: Usage,
    /// Turns that this answer is for, too, and who wrote each; they are over with it.
    pub also: Vec<(TurnId, String)>,
    /// Where the first message is of several people's, or of several that one has written: whose bytes of its text are which.
    pub pieces: Vec<(TurnId, Range<usize>)>,
    /// The ids of the atoms that the model was shown for the answer.
    pub atoms: Vec<String>,
    /// What is to be delivered, in order.
    pub parts: Vec<Outgoing>,
    /// What was learnt of the model.
    pub calibration: Option<ModelCalibration>,
    /// What is known by now of the sizes of the conversation's requests; nothing where that is what it was.
    pub sizes: Option<Sizes>,
    /// What becomes of a question to people.
    pub escalation: Option<EscalationUpdate>,
    /// What is kept with a case.
    pub case: Option<CaseEntry>,
    /// What the front is told after delivery.
    pub report: TurnReport,
    /// What is counted of it.
    pub outturn: TurnOutcome,
    /// Whether the next request holds the messages. Not when the turn was given up: what could not be
    /// answered once must not make the next turn fail.
    pub keep_live: bool,
    /// What the ledger is to tell of it.
    pub events: Vec<TaggedEvent>,
    /// What its requests to the model were made from.
    pub receipts: Receipts,
    /// The state of the conversation that the turn was begun with; `None` where nothing else can change it.
    pub revision: Option<i64>,
    /// The message that the answer takes the place of; `None` where there is none but the one that was
    /// [placed](super::Store::placed).
    pub placeholder: Option<String>,
}

/// What becomes of a question to people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EscalationUpdate {
    /// It goes out: a thread waits for the answer from now on.
    Asked(FrontName, Marker),
    /// Its asker is shown it first.
    Proposed(Proposal),
    /// It was confirmed, by the message of this event id, and cannot go out now: it waits for a word again.
    Reopened(String),
    /// Somebody has said something about it, and it still waits.
    Said(FrontName, Marker, EscalationRemark),
    /// A contact is asked whether they have answered it.
    Unsure(Proposal),
    /// Its answer goes on to the conversation of who asked, where it is taken in.
    HandedOn,
    /// It is not waited for any more.
    Withdrawn(FrontName, Marker),
}

/// A part that went out: its number, and the front's id of it, where it has ids.
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
    /// A policy's own words for that marker.
    pub marker_template: Option<String>,
    /// When a message last came in, milliseconds since the epoch.
    pub active_at_ms: i64,
}

/// A stored message, as `sessions show` shows it.
#[derive(Clone, Debug)]
pub struct StoredMessage {
    /// The message, and what stands in its place where it was reduced.
    pub entry: Entry,
    /// Whether the live window holds it.
    pub live: bool,
    /// When it was stored, milliseconds since the epoch.
    pub created_at_ms: i64,
}

/// The right to change a conversation while no turn of it is under way.
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
