//! Fronts: where people talk. `slack` (Socket Mode) and `console` behind one trait.
//!
//! A front turns what people say into [`Inbound`] messages, passes them to the [`Intake`], and
//! acknowledges only what the intake has stored. It delivers the messages of the outbox.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use jiff::SignedDuration;
use pmk_core::session_key;
use pmk_models::Listener;
use pmk_system::error::Failure;
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::{
    chat::{
        Accepted, Addressing, Button, Change, Connection, File, FileSkipReason, Inbound, Invocation, MessageBody,
        Notice, Press, Reaction, Refusal, ReplyTo, Thread, ThreadMessage,
    },
    ledger::report::TurnReport,
};

pub mod console;
mod lines;
pub mod progress;
pub(crate) mod settled;
pub mod slack;

/// After a shorter outage, a front whose people are [elsewhere](Front::reaches_absent) sends everything again by itself.
pub(crate) const SENT_AGAIN_FOR: Duration = Duration::from_secs(4 * 60);

/// Returns the first of these named ids that is malformed. Every front checks this on intake: what is stored
/// under a malformed id cannot be read back, or belongs to something else.
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

    /// Does the same for a message in a thread of a channel, which may be for the bot without a mention. `None`: it is
    /// not for the bot, and nothing of it is stored. By default, only mentions are for the bot.
    ///
    /// # Errors
    /// The message could not be stored, or it could not be determined whether it is for the bot; it must not be
    /// acknowledged.
    async fn hear(&self, ThreadMessage { message, manner }: ThreadMessage) -> Result<Option<Accepted>, Failure> {
        match manner {
            Addressing::Mention { .. } => self.accept(message).await.map(Some),
            Addressing::Plain { .. } => Ok(None),
        }
    }

    /// Returns whether a person may be shown things that they have not asked for.
    fn may_hear(&self, _person: &str) -> bool {
        true
    }

    /// Does what a reaction asks for. When this returns, it is done and may be acknowledged; repeating it
    /// is harmless.
    ///
    /// # Errors
    /// It could not be done; it may be retried.
    async fn react(&self, reaction: Reaction) -> Result<(), Failure>;

    /// Takes in a change of a message. When this returns, the change survives a crash and may be acknowledged;
    /// repeating it is harmless.
    ///
    /// # Errors
    /// The change could not be stored; it must not be acknowledged.
    async fn change(&self, _change: Change) -> Result<(), Failure> {
        Ok(())
    }

    /// Stores that a button was pressed. When this returns, the press survives a crash and may be acknowledged;
    /// what it asks for is done a moment later.
    ///
    /// # Errors
    /// The store could not write; it must not be acknowledged.
    async fn press(&self, _press: Press) -> Result<(), Failure> {
        Ok(())
    }

    /// Takes in any other click. Does not block.
    fn invoke(&self, _invocation: Invocation) {}

    /// Notes something about the front's connection that an operator should know. Does not block.
    fn notice(&self, _notice: Notice) {}
}

/// One delivery: a part of a reply on its way to a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery<'a> {
    /// The question this answers; empty if it answers none.
    pub event_id: &'a str,
    /// All questions that it answers, if there are several.
    pub event_ids: &'a [String],
    /// The ids of the messages that are answered once this is delivered; none where more of the answer follows.
    pub answers: &'a [String],
    /// The number of the message within the turn, from 0.
    pub number: u32,
    pub reply_to: &'a ReplyTo,
    /// The message this one replaces; `None` posts a new one.
    pub replaces: Option<&'a str>,
    pub speech: &'a MessageBody,
    /// Its buttons, on fronts that have buttons; there is another way to say the same.
    pub buttons: &'a [Button],
    pub kind: Kind,
    /// Whether it belongs to an answer that was stopped: the last part says so.
    pub is_stopped: bool,
    /// When the message was parked that this notice tells of. It is found by that: an earlier one is not this one, nor is
    /// what was said while the turn ran.
    pub parked_at_ms: Option<i64>,
}

impl<'a> Delivery<'a> {
    /// Returns a notice, as a new message.
    pub const fn notice(event_id: &'a str, reply_to: &'a ReplyTo, speech: &'a MessageBody) -> Self {
        Delivery {
            event_id,
            event_ids: &[],
            answers: &[],
            number: 0,
            reply_to,
            replaces: None,
            speech,
            buttons: &[],
            kind: Kind::Notice,
            is_stopped: false,
            parked_at_ms: None,
        }
    }
}

/// What is delivered, for fronts that report it to programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The message that the reply will replace.
    Placeholder,
    /// A piece of the reply.
    Reply,
    /// The whole reply, as a file.
    Document,
    /// A question to the contacts.
    Escalation,
    /// Something to react to, or to know.
    Notice,
}

impl Kind {
    /// Returns the name.
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

/// The result of searching for a part that may have been delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// It was delivered, with this id.
    Yes(Option<String>),
    No,
    /// The front cannot search.
    Unknown,
}

/// The progress of a turn, for the person who waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The question.
    pub event_id: String,
    pub reply_to: ReplyTo,
    /// The placeholder to show it on, if there is one.
    pub placeholder: Option<String>,
    pub text: String,
}

/// Tells whether this process may still post anything: where several hosts share the work, others may have taken over
/// its turns.
#[async_trait]
pub trait Fence: fmt::Debug + Send + Sync {
    /// Returns `Ok` if this process may post.
    ///
    /// # Errors
    /// It may not, or this cannot be determined now.
    async fn holds(&self) -> Result<(), FrontError>;
}

/// Where people talk.
#[async_trait]
pub trait Front: Send + Sync {
    /// Takes messages in until the input ends or `stop` is cancelled. Returns once everything taken in
    /// has been passed to the intake.
    ///
    /// # Errors
    /// The front cannot go on.
    async fn listen(&self, intake: &dyn Intake, stop: CancellationToken) -> Result<(), FrontError>;

    /// Shows, with this text and without a message, that that question is being answered; returns false if that is
    /// impossible and a [placeholder](Front::placeholder) is needed. Dropping the future is harmless.
    async fn show(&self, _question: &Inbound, _text: &str) -> bool {
        false
    }

    /// Returns whether this is always shown by a message. If so, the store notes at the beginning of a turn that a
    /// placeholder may exist, which saves a separate commit.
    fn shows_by_messages(&self) -> bool {
        true
    }

    /// Posts a message that shows the same and that the answer can replace, and returns its id; `None` if nothing is
    /// shown.
    ///
    /// # Errors
    /// The front could not post.
    async fn placeholder(&self, question: &Inbound, text: &str) -> Result<Option<String>, FrontError>;

    /// Shows the progress of a turn.
    ///
    /// # Errors
    /// It was not shown, which does not matter; a rate limit does.
    async fn progress(&self, progress: &Progress) -> Result<(), FrontError>;

    /// Returns a listener for the answer to that question, on fronts that stream answers. `streamed` is told as which
    /// message, if that has an id to which people may react.
    fn listener(&self, _question: &Inbound, _streamed: OnStreamed) -> Option<Arc<dyn Listener>> {
        None
    }

    /// Splits a text into what the front accepts in one message of that kind.
    fn split(&self, text: &str, kind: Kind) -> Vec<String>;

    /// A reply of more parts than this is sent as its first part and a [`Kind::Document`] with all
    /// of it.
    fn most_parts(&self) -> usize {
        usize::MAX
    }

    /// Delivers one part and returns its id, if the front has ids.
    ///
    /// # Errors
    /// It was not delivered.
    async fn deliver(&self, part: Delivery<'_>) -> Result<Option<String>, FrontError>;

    /// Searches, after the message of that `ts`, for a part that may have been delivered by an attempt with unknown
    /// outcome; and, if it `is_streamed`, for what that attempt has streamed. A front whose readers can recognize a
    /// repetition by its id need not search.
    ///
    /// # Errors
    /// It could not search now.
    async fn find(&self, _part: &Delivery<'_>, _after: &str, _is_streamed: bool) -> Result<Lookup, FrontError> {
        Ok(Lookup::No)
    }

    /// Searches only for what an earlier attempt has streamed.
    ///
    /// # Errors
    /// It could not search now.
    async fn recall(&self, _event_id: &str, _reply_to: &ReplyTo, _after: &str) -> Result<(), FrontError> {
        Ok(())
    }

    /// Notes that the beginning of the answer to that question was streamed as this message, if it is still that and no
    /// answer: it can be [removed](Front::clear) by whoever has not streamed it, too.
    ///
    /// # Errors
    /// It is unknown now whether it is.
    async fn was_streamed(&self, _question: &Inbound, _id: &str) -> Result<(), FrontError> {
        Ok(())
    }

    /// Removes a placeholder that nothing will replace.
    ///
    /// # Errors
    /// It is still there.
    async fn withdraw(&self, _reply_to: &ReplyTo, _id: &str) -> Result<(), FrontError> {
        Ok(())
    }

    /// Removes a message that no other host knows of. Also allowed for a process that may no longer post.
    ///
    /// # Errors
    /// It is still there.
    async fn take_back(&self, reply_to: &ReplyTo, id: &str) -> Result<(), FrontError> {
        self.withdraw(reply_to, id).await
    }

    /// Returns whether people who have not just spoken can be told something, and whether messages sent while no
    /// gateway was running can be read back.
    fn reaches_absent(&self) -> bool {
        false
    }

    /// Returns how far this machine's clock is ahead of the clock that dates the messages, if they differ and that is
    /// known.
    fn clock_ahead(&self) -> Option<SignedDuration> {
        None
    }

    /// Returns the state of the connection, if the front has one.
    fn connection(&self) -> Option<Connection> {
        None
    }

    /// Returns what the front refuses now, until a person changes something.
    fn refusal(&self) -> Option<Refusal> {
        None
    }

    /// Returns for how long nothing that people said can have arrived, if nothing can now, or could lately; interruptions
    /// of that silence may be part of it. If nothing can arrive from now on, what was written since may not come again.
    fn deaf_for(&self) -> Option<Duration> {
        None
    }

    /// Notes that nothing that people said could be taken in for so long until now, and that this was not reported
    /// yet: no run was connected, the machine slept, or nothing could be stored.
    fn was_deaf(&self, _ago: Duration) {}

    /// Reads back what was asked in a conversation while no gateway was running. Takes as long as the
    /// front's rate limits require.
    ///
    /// # Errors
    /// It cannot be read: now, or ever.
    async fn look_back(&self, _place: &BackfillRequest) -> Result<Past, FrontError> {
        Ok(Past { is_whole: true, ..Past::default() })
    }

    /// Asks what a file is that came with a message as an id alone. What is returned has no such id.
    ///
    /// # Errors
    /// It could not be asked.
    async fn describe(&self, _id: &str) -> Result<Described, FrontError> {
        Ok(Err(FileSkipReason::NotFetched))
    }

    /// Fetches a file that came with a message from its address, if it has at most `most` bytes; `said_bytes` is its
    /// stated size.
    ///
    /// # Errors
    /// It could not be fetched.
    async fn fetch(&self, _address: &str, _said_bytes: Option<u64>, _most: u64) -> Result<Fetched, FrontError> {
        Ok(Err(FileSkipReason::NotFetched))
    }

    /// Returns what a person has written with the names of those whom it mentions by their ids, as far as they are known.
    async fn with_names(&self, text: String) -> String {
        text
    }

    /// Reads the messages of a thread before the message of that `ts`, as if those who are not heard had written none.
    ///
    /// # Errors
    /// They cannot be read: now, or ever.
    async fn read_thread(&self, _place: &ReplyTo, _before: &str, _is_heard: IsHeard<'_>) -> Result<Thread, FrontError> {
        Ok(Thread::default())
    }

    /// Adds a reaction to a message to show that it was taken in. Repeating it is harmless.
    ///
    /// # Errors
    /// It was not done; [`FrontError::Refused`] if it never will be.
    async fn mark(&self, _event_id: &str, _reply_to: &ReplyTo, _ts: &str, _emoji: &str) -> Result<(), FrontError> {
        Ok(())
    }

    /// Returns whether a text can be the id of a person here: any other that gateway.json has names nobody.
    fn is_person(&self, _id: &str) -> bool {
        true
    }

    /// Returns the channel of the direct message with a person.
    ///
    /// # Errors
    /// It cannot be determined now.
    async fn direct(&self, person: &str) -> Result<String, FrontError> {
        Ok(person.to_owned())
    }

    /// Returns the direct message with a person, for what another conversation refuses; `None` if that is the
    /// conversation which refuses it.
    ///
    /// # Errors
    /// As [`direct`](Front::direct).
    async fn direct_instead_of(&self, refusing: &ReplyTo, person: &str) -> Result<Option<ReplyTo>, FrontError> {
        let channel = self.direct(person).await?;
        Ok((channel != refusing.channel).then_some(ReplyTo { channel, thread_ts: None }))
    }

    /// Tells one person something, in a place that others share, that nobody else sees and that need not last; does
    /// nothing on fronts that cannot.
    ///
    /// # Errors
    /// They were not told.
    async fn whisper(&self, _person: &str, _place: &ReplyTo, _text: &str) -> Result<(), FrontError> {
        Ok(())
    }

    /// Returns whether a program reads what is delivered, and wants details that people are spared.
    fn tells_programs(&self) -> bool {
        false
    }

    /// Returns whether people have no reactions here and use `/yes` and `/no` instead.
    fn takes_words(&self) -> bool {
        false
    }

    /// Reports a finished turn, on fronts that do.
    ///
    /// # Errors
    /// It was not reported.
    async fn report(&self, event_id: &str, report: &TurnReport) -> Result<(), FrontError>;

    /// Removes what was streamed of an answer to that event, unless it became the answer.
    ///
    /// # Errors
    /// It may still be there; a retry may help.
    async fn clear(&self, _event_id: &str) -> Result<(), FrontError> {
        Ok(())
    }

    /// Removes what an earlier run may have shown to say that this question is being answered. Takes a moment at
    /// most.
    async fn resumed(&self, _question: &Inbound) {}

    /// Notes that nothing is being made for that event any more, and removes what showed it. Takes a moment at most;
    /// what cannot be done in that time is done later.
    async fn over(&self, _event_id: &str) {}

    /// Notes that the program is ending. Takes a moment at most.
    async fn leave(&self) {}
}

/// Is told the id of the message as which an answer grows, once there is one. Does not block.
pub type OnStreamed = Box<dyn Fn(&str) + Send + Sync>;

/// A conversation to read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackfillRequest {
    pub channel: String,
    /// The thread, if it is one. With a channel or a direct message, threads in which something was written are read.
    pub thread_ts: Option<String>,
    /// Reads messages after the one of this `ts`.
    pub after: String,
    /// Threads that are not read with it, because they are read on their own.
    pub read_apart: Vec<String>,
    /// How many threads are read with it at most.
    pub most_threads: usize,
    /// Whether it is not read once more for threads that fail.
    pub is_last: bool,
}

/// The result of reading back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Past {
    /// Questions that nobody has answered since, oldest first.
    pub messages: Vec<Inbound>,
    /// Messages in threads of channels, except for mentions that somebody has answered; oldest first.
    pub in_threads: Vec<ThreadMessage>,
    /// How many threads were read with it.
    pub threads: usize,
    /// Whether the history was read completely, except for threads in it that failed.
    pub is_whole: bool,
    /// Whether threads in it could not be read now.
    pub has_failed: bool,
}

/// Returns whether what the person or app of an id writes counts.
pub type IsHeard<'a> = &'a (dyn Fn(&str) -> bool + Sync);

/// The bytes of a file, or why it was not read.
pub type Fetched = Result<Vec<u8>, FileSkipReason>;

/// What a file is, or why nobody can say.
pub type Described = Result<File, FileSkipReason>;

/// Why a front could not do something.
#[derive(Clone, Debug, Error)]
pub enum FrontError {
    /// A retry may help; not before `retry_after`, if that is known.
    #[error("{what}")]
    Transient {
        what: String,
        retry_after: Option<std::time::Duration>,
        /// Whether the call that failed certainly had no effect.
        not_made: bool,
    },
    /// A retry will not help.
    #[error("{what}")]
    Fatal { what: String, hint: String },
    /// The target is gone or refuses this content: another way must be found.
    #[error("{what}")]
    Refused {
        what: String,
        /// The meaning of the refusal is unknown: a retry a little later may succeed.
        may_pass: bool,
    },
    /// Nobody reads the output any more.
    #[error("the output was closed")]
    Closed,
}
