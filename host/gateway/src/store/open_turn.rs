//! A turn that is not finished: how far it has come, and what it goes on with.

use crate::{
    calibration::Sizes,
    case::CaseId,
    chat::Inbound,
    escalation::{Marker, Reading},
    ids::{SessionId, TurnId},
    ledger::{Tags, report::TurnReport},
    store::{CalledOff, Concern, Live, Outgoing, Part, Verbosity},
};

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
    /// When that attempt began, milliseconds since the epoch; `None` if the message was edited since.
    pub begun_at_ms: Option<i64>,
    /// The escalation that the message may be about.
    pub concern: Option<Box<Concern>>,
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
            by_app: false,
            team: None,
            in_group: false,
            asked_at: None,
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
            begun_at_ms: None,
            concern: None,
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

impl OpenTurn {
    /// The escalation that the message may answer, where its author is one of the contacts asked.
    pub fn absorbs(&self) -> Option<&Marker> {
        match self.concern.as_deref() {
            Some(Concern::Contact(marker)) => Some(marker),
            Some(Concern::Asker(..)) | None => None,
        }
    }
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
