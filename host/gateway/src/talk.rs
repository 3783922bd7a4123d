//! What passes between people and the gateway, whichever front it comes by: what somebody wrote or did and where, and what
//! they are told.

use pmk_core::SessionKey;
use serde::{Deserialize, Serialize};

mod attached;

pub use attached::{Attached, Content, File, Quote, QuoteKind, Said, Thread, Unread};

/// One message from a person, as it is stored in the inbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inbound {
    /// The front's id of the event; a redelivery carries the same one.
    pub event_id: String,
    /// Further keys that name the same message: `ts:TEAM:CHANNEL:TS` on Slack, where one message can
    /// arrive as two events.
    pub aliases: Vec<String>,
    /// The conversation it belongs to.
    pub key: SessionKey,
    /// Who wrote it.
    pub user: String,
    /// Where a reply goes.
    pub reply_to: ReplyTo,
    /// What was written, with the mention of the bot taken off.
    pub text: String,
    /// What came with it beside the text.
    #[serde(default, skip_serializing_if = "Attached::is_empty")]
    pub attached: Attached,
    /// The order of messages within a conversation: Slack's `ts`; empty where arrival decides.
    pub ts: String,
}

impl Inbound {
    /// Whether it is a command to the gateway: then it is neither a question nor anybody's answer.
    pub fn is_command(&self) -> bool {
        after_command(&self.text).is_some()
    }

    /// The thread that the message is in, or the one that begins with it.
    pub fn thread(&self) -> &str {
        match &self.reply_to.thread_ts {
            Some(thread_ts) => thread_ts,
            None if self.ts.is_empty() => &self.event_id,
            None => &self.ts,
        }
    }
}

/// What commands begin with, however they come in.
const COMMAND: &str = "/pmk";

/// What stands after the name of the command in a text that is one; `None` where it is none.
pub(crate) fn after_command(text: &str) -> Option<&str> {
    let (name, rest) = text.trim().split_at_checked(COMMAND.len())?;
    let is_command = name.eq_ignore_ascii_case(COMMAND) && (rest.is_empty() || rest.starts_with(char::is_whitespace));
    is_command.then_some(rest.trim_start())
}

/// Somebody's reaction to a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reaction {
    pub user: String,
    pub channel: String,
    /// The front's id of the message.
    pub ts: String,
    /// Slack's name of the emoji, or the emoji itself.
    pub reaction: String,
}

/// Somebody clicks something in a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    pub user: String,
    /// Where, as far as that is somewhere.
    pub channel: Option<String>,
}

/// A place that a reply can be posted to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplyTo {
    pub channel: String,
    pub thread_ts: Option<String>,
}

/// What became of a message that was handed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// It is stored and will be answered.
    New,
    /// It was stored before.
    Duplicate,
}

/// Something said to people. A `<@U1>` in the text pings that person only if they are listed; everything
/// else in it is plain text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Speech {
    pub text: String,
    /// User ids.
    pub pings: Vec<String>,
}

/// What a front notices about the way to people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// We are not let in any more, until a person changes something. What is connected goes on, and we keep
    /// trying.
    Refused { what: String, hint: String },
    /// We are let in again.
    Accepted,
    /// Nobody could reach us for so long; so many messages came late.
    ConnectedAgain { deaf: std::time::Duration, late: u64 },
    /// An event was refused: this id of it is none, or this part of it has the wrong shape.
    Malformed { field: &'static str },
}

/// How a front is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connection {
    /// Connections that work, as far as anybody knows.
    pub open: usize,
    /// So many there should be.
    pub of: usize,
    /// How often one was lost within the last ten minutes.
    pub reconnects: u32,
}
