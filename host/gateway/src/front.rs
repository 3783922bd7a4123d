//! Fronts: where people talk. `slack` (Socket Mode) and `console` behind one trait.
//!
//! A front turns what people say into [`Inbound`] messages, hands them to the [`Intake`] and
//! acknowledges only what the intake has made durable. It delivers what the outbox holds.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use jiff::SignedDuration;
use pmk_core::session_key;
use pmk_models::Listener;
use pmk_system::error::Failure;
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::{
    chat::{
        Accepted, Addressing, Button, Change, Connection, FileSkipReason, Inbound, Invocation, MessageBody, Notice,
        Press, Reaction, ReplyTo, Thread, ThreadMessage,
    },
    ledger::report::TurnReport,
};

pub mod console;
pub mod progress;
pub(crate) mod settled;
pub mod slack;

/// The first of these named ids that is none. Every front asks this at its door: what is stored under such an id
/// cannot be read back, or is somebody else's.
pub(crate) fn malformed<'a>(ids: impl IntoIterator<Item = (&'static str, &'a str)>) -> Option<&'static str> {
    ids.into_iter().find(|(_, id)| !session_key::is_id(id)).map(|(name, _)| name)
}

/// Takes messages in.
#[async_trait]
pub trait Intake: Send + Sync {
    /// Stores a message. When this returns, the message survives a crash and may be acknowledged.
    ///
    /// # Errors
    /// The store could not write; the message must not be acknowledged.
    async fn accept(&self, message: Inbound) -> Result<Accepted, Failure>;

    /// The same for what is written in a thread of a channel, where it may be for the bot without a mention. `None`: it is
    /// not, and nothing of it is kept. Without anything to rule on that, mentions are.
    ///
    /// # Errors
    /// It could not be stored, or nobody can tell whether it has to be; it must not be acknowledged.
    async fn hear(&self, ThreadMessage { message, manner }: ThreadMessage) -> Result<Option<Accepted>, Failure> {
        match manner {
            Addressing::Mention { .. } => self.accept(message).await.map(Some),
            Addressing::Plain { .. } => Ok(None),
        }
    }

    /// Whether somebody is to be shown things that they have not asked for.
    fn may_hear(&self, _person: &str) -> bool {
        true
    }

    /// Does what a reaction asks for. When this returns, it is done and may be acknowledged; taken in twice
    /// it does no harm.
    ///
    /// # Errors
    /// It could not be done and may be tried again.
    async fn react(&self, reaction: Reaction) -> Result<(), Failure>;

    /// Takes in what was changed about a message. When this returns, the change survives a crash and may be acknowledged;
    /// taken in twice it does no harm.
    ///
    /// # Errors
    /// It could not be stored; it must not be acknowledged.
    async fn change(&self, _change: Change) -> Result<(), Failure> {
        Ok(())
    }

    /// Stores that a button was pressed. When this returns, it survives a crash and may be acknowledged; what it
    /// asks for is done a moment later.
    ///
    /// # Errors
    /// The store could not write; it must not be acknowledged.
    async fn press(&self, _press: Press) -> Result<(), Failure> {
        Ok(())
    }

    /// Takes in any other click. Does not block.
    fn invoke(&self, _invocation: Invocation) {}

    /// Takes note of something about the way to people that an operator should know. Does not block.
    fn notice(&self, _notice: Notice) {}
}

/// One delivery: a part of a reply on its way to a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery<'a> {
    /// The question this answers; empty where it answers none.
    pub event_id: &'a str,
    /// All questions that it answers, where there are several.
    pub event_ids: &'a [String],
    /// Which of the turn's messages it is, from 0.
    pub number: u32,
    pub reply_to: &'a ReplyTo,
    /// The message this one takes the place of; `None` posts a new one.
    pub replaces: Option<&'a str>,
    pub speech: &'a MessageBody,
    /// What it offers to press, on fronts that have buttons: what they say can be said without them, too.
    pub buttons: &'a [Button],
    pub kind: Kind,
}

impl<'a> Delivery<'a> {
    /// Something to react to, or to know, as a new message.
    pub const fn notice(event_id: &'a str, reply_to: &'a ReplyTo, speech: &'a MessageBody) -> Self {
        Delivery {
            event_id,
            event_ids: &[],
            number: 0,
            reply_to,
            replaces: None,
            speech,
            buttons: &[],
            kind: Kind::Notice,
        }
    }
}

/// What is delivered, for fronts that tell programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// What the reply takes the place of.
    Placeholder,
    /// A piece of the reply.
    Reply,
    /// The whole reply, as a file.
    Document,
    /// A question to the people who may know.
    Escalation,
    /// Something to react to, or to know.
    Notice,
}

impl Kind {
    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Placeholder => "placeholder",
            Kind::Reply => "reply",
            Kind::Document => "document",
            Kind::Escalation => "escalation",
            Kind::Notice => "notice",
        }
    }
}

/// What became of a look for a part that may have been delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// It is there, under this id.
    Yes(Option<String>),
    No,
    /// The front cannot look.
    Unknown,
}

/// How a turn is getting on, for the person who waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The question.
    pub event_id: String,
    pub reply_to: ReplyTo,
    /// The placeholder to show it on, where there is one.
    pub placeholder: Option<String>,
    pub text: String,
}

/// Tells whether this process may say anything still: where several share the work, others may have taken over what it was at.
#[async_trait]
pub trait Fencing: fmt::Debug + Send + Sync {
    /// Comes back where it may.
    ///
    /// # Errors
    /// It may not, or not now.
    async fn holds(&self) -> Result<(), FrontError>;
}

/// Where people talk.
#[async_trait]
pub trait Front: Send + Sync {
    /// Takes messages in until the input ends or `stop` is cancelled. Returns once everything taken in
    /// has been handed to the intake.
    ///
    /// # Errors
    /// The front cannot go on.
    async fn listen(&self, intake: &dyn Intake, stop: CancellationToken) -> Result<(), FrontError>;

    /// Shows with this text that an answer to that question is being made, where that can be done without a message; false where
    /// it cannot, and a [placeholder](Front::placeholder) has to do. Who stops waiting for this loses nothing.
    async fn show(&self, _question: &Inbound, _text: &str) -> bool {
        false
    }

    /// Whether it is shown by messages alone. Then it is remembered when a turn begins that one may be there, and none waits for
    /// another commit.
    fn shows_by_messages(&self) -> bool {
        true
    }

    /// Shows the same by a message that the answer can take the place of, and returns its id; `None` where nothing is shown.
    ///
    /// # Errors
    /// The front could not post.
    async fn placeholder(&self, question: &Inbound, text: &str) -> Result<Option<String>, FrontError>;

    /// Shows how a turn is getting on.
    ///
    /// # Errors
    /// It was not shown, and that does not matter; a rate limit does.
    async fn progress(&self, progress: &Progress) -> Result<(), FrontError>;

    /// Who hears the answer to that question while it is made, on fronts that show it before it is whole.
    fn listener(&self, _question: &Inbound) -> Option<Arc<dyn Listener>> {
        None
    }

    /// Cuts what is to be said into what the front can take in one message of that kind.
    fn split(&self, text: &str, kind: Kind) -> Vec<String>;

    /// A reply of more parts than this goes as its first part and a [`Kind::Document`] of all of it.
    fn most_parts(&self) -> usize {
        usize::MAX
    }

    /// Delivers one part and returns its id, where the front has ids.
    ///
    /// # Errors
    /// It was not delivered.
    async fn deliver(&self, part: Delivery<'_>) -> Result<Option<String>, FrontError>;

    /// Looks whether a part was delivered by an attempt whose end nobody knows, after the message of that
    /// `ts`; and for what that attempt has shown of an answer before it was whole, if it `is_streamed`. A front whose readers can
    /// tell a repeat by its id need not look.
    ///
    /// # Errors
    /// It could not look now.
    async fn find(&self, _part: &Delivery<'_>, _after: &str, _is_streamed: bool) -> Result<Lookup, FrontError> {
        Ok(Lookup::No)
    }

    /// Looks only for what an earlier attempt has shown of an answer before it was whole.
    ///
    /// # Errors
    /// It could not look now.
    async fn recall(&self, _event_id: &str, _reply_to: &ReplyTo, _after: &str) -> Result<(), FrontError> {
        Ok(())
    }

    /// Takes a placeholder back that nothing will take the place of.
    ///
    /// # Errors
    /// It is still there.
    async fn withdraw(&self, _reply_to: &ReplyTo, _id: &str) -> Result<(), FrontError> {
        Ok(())
    }

    /// Takes a message away that nobody else knows of. May be done also by a process that may say nothing any more.
    ///
    /// # Errors
    /// It is still there.
    async fn take_back(&self, reply_to: &ReplyTo, id: &str) -> Result<(), FrontError> {
        self.withdraw(reply_to, id).await
    }

    /// Whether people who have not just spoken can be told something, and whether what was said while nobody listened
    /// can be read.
    fn reaches_absent(&self) -> bool {
        false
    }

    /// How far this machine's clock is ahead of the one that gives messages their times, where they differ and that is known.
    fn clock_ahead(&self) -> Option<SignedDuration> {
        None
    }

    /// How it is connected, where it has to be.
    fn connection(&self) -> Option<Connection> {
        None
    }

    /// Reads what was asked at a place while nobody listened. Takes as long as the front has to be spared.
    ///
    /// # Errors
    /// It cannot be read; now, or at all.
    async fn look_back(&self, _place: &BackfillRequest) -> Result<Past, FrontError> {
        Ok(Past { is_whole: true, ..Past::default() })
    }

    /// Fetches a file that came with a message from its address, where it has at most so many bytes; `said_bytes` is how
    /// many it is said to have.
    ///
    /// # Errors
    /// It could not be fetched.
    async fn fetch(&self, _address: &str, _said_bytes: Option<u64>, _most: u64) -> Result<Fetched, FrontError> {
        Ok(Err(FileSkipReason::NotFetched))
    }

    /// Reads what people have said in a thread before the message of that `ts`.
    ///
    /// # Errors
    /// It cannot be read; now, or at all.
    async fn read_thread(&self, _place: &ReplyTo, _before: &str) -> Result<Thread, FrontError> {
        Ok(Thread::default())
    }

    /// Reacts to a message, which shows that it was taken in. Once more does no harm.
    ///
    /// # Errors
    /// It was not done; [`FrontError::Refused`] where it never will be.
    async fn mark(&self, _event_id: &str, _reply_to: &ReplyTo, _ts: &str, _emoji: &str) -> Result<(), FrontError> {
        Ok(())
    }

    /// The channel of the direct message with a person.
    ///
    /// # Errors
    /// It cannot be told now.
    async fn direct(&self, person: &str) -> Result<String, FrontError> {
        Ok(person.to_owned())
    }

    /// Tells one person something that nobody else sees, and that need not last, at the place of others; nothing on
    /// fronts that cannot.
    ///
    /// # Errors
    /// They were not told.
    async fn whisper(&self, _person: &str, _place: &ReplyTo, _text: &str) -> Result<(), FrontError> {
        Ok(())
    }

    /// Whether a program reads what is delivered, and wants to know of what people are spared.
    fn tells_programs(&self) -> bool {
        false
    }

    /// Whether people have no reactions here and give their word by `/yes` and `/no`.
    fn takes_words(&self) -> bool {
        false
    }

    /// Tells about a finished turn, on fronts that do.
    ///
    /// # Errors
    /// It was not told.
    async fn report(&self, event_id: &str, report: &TurnReport) -> Result<(), FrontError>;

    /// Takes away what was shown of an answer to that event before it was whole, where it is not part of the answer.
    ///
    /// # Errors
    /// It may be there still; trying again may help.
    async fn clear(&self, _event_id: &str) -> Result<(), FrontError> {
        Ok(())
    }

    /// An earlier run may have shown that an answer to this question is being made: that goes, in a moment at most.
    async fn resumed(&self, _question: &Inbound) {}

    /// Nothing is made for that event any more: what showed it goes. Takes a moment at most; what cannot be done in it is
    /// done later.
    async fn over(&self, _event_id: &str) {}

    /// The program ends, and nothing is made any more. Takes a moment at most.
    async fn leave(&self) {}
}

/// A place whose past is to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackfillRequest {
    pub channel: String,
    /// The thread, where it is one; what is said in threads is not in the past of their channel.
    pub thread_ts: Option<String>,
    /// After the message of this `ts`.
    pub after: String,
}

/// What was found there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Past {
    /// What people have asked and nobody has answered since, the oldest first.
    pub messages: Vec<Inbound>,
    /// What people have written in threads of channels, but for mentions that somebody has answered; the oldest first.
    pub in_threads: Vec<ThreadMessage>,
    /// Whether there was not more of it than anybody reads.
    pub is_whole: bool,
}

/// The bytes of a file, or why they are not there.
pub type Fetched = Result<Vec<u8>, FileSkipReason>;

/// Why a front could not do something.
#[derive(Clone, Debug, Error)]
pub enum FrontError {
    /// Trying again may help; not before `retry_after`, where it is known.
    #[error("{what}")]
    Transient { what: String, retry_after: Option<std::time::Duration> },
    /// Trying again will not help.
    #[error("{what}")]
    Fatal { what: String, hint: String },
    /// The target is gone or refuses this content: another way must be found.
    #[error("{what}")]
    Refused {
        what: String,
        /// Nobody knows what the refusal means: it may be another a little later.
        may_pass: bool,
    },
    /// Nobody reads our output any more.
    #[error("the output was closed")]
    Closed,
}
