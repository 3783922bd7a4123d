//! What passes between people and the gateway, whichever front it comes by: what somebody wrote or did and where, and what
//! they are told.

use icu_normalizer::ComposingNormalizerBorrowed;
use pmk_core::SessionKey;
use serde::{Deserialize, Serialize};

mod attached;

pub use attached::{Attachments, Content, File, FileSkipReason, Quote, QuoteKind, Thread, ThreadPost};

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
    #[serde(default, skip_serializing_if = "Attachments::is_empty")]
    pub attached: Attachments,
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

/// What a person has written in a thread of a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadMessage {
    pub message: Inbound,
    pub manner: Addressing,
}

/// How it is written there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addressing {
    /// With a mention of the bot, which makes it a question. `alone`: nobody else has written there before, as far as is
    /// known.
    Mention { alone: bool },
    /// Without one. It may be for the bot all the same, but not where `for_others`: it names somebody else, or somebody
    /// else has answered it.
    Plain { for_others: bool },
}

/// What commands begin with, however they come in.
const COMMAND: &str = "/pmk";

/// What stands after the name of the command in a text that is one; `None` where it is none. The name may be in full-width
/// signs, as input methods of Chinese make them.
pub(crate) fn after_command(text: &str) -> Option<&str> {
    let text = text.trim();
    let (name, rest) = text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()));
    let signs = ComposingNormalizerBorrowed::new_nfkc().normalize_iter(name.chars());
    signs.map(|sign| sign.to_ascii_lowercase()).eq(COMMAND.chars()).then_some(rest.trim_start())
}

/// What somebody has changed about a message after they had sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Edited(Box<Edit>),
    Deleted(Deletion),
}

/// A message that is there no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    pub channel: String,
    pub ts: String,
    /// Where it was an answer in a thread of a channel: the conversation of that thread.
    pub thread: Option<SessionKey>,
    /// Whose it was.
    pub of: DeletedAuthor,
}

/// Whose message was deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeletedAuthor {
    /// It was for the gateway, or nobody can tell.
    Us,
    /// The gateway had written it.
    Own,
    /// People's among themselves, but where their thread is a conversation with the gateway.
    Others,
}

/// A message that says something else now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// As it is now.
    pub message: Inbound,
    /// The front's time of the edit, by which several are in order.
    pub at: String,
    /// Whether it is for the gateway, as it is now.
    pub is_for_us: bool,
    /// Whether no other event brings it, where it was not for the gateway before.
    pub comes_alone: bool,
    /// How it is written, where it is in a thread of a channel.
    pub manner: Option<Addressing>,
}

/// Somebody's reaction to a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reaction {
    /// The front's id of the event, where it has one; a redelivery carries the same one.
    pub event_id: Option<String>,
    pub user: String,
    pub channel: String,
    /// The front's id of the message.
    pub ts: String,
    /// Slack's name of the emoji, or the emoji itself.
    pub reaction: String,
    /// Whether the front says that the message is somebody else's, and none of ours.
    pub of_another: bool,
}

/// Whether this reaction says that an answer is not to be made.
pub fn says_stop(reaction: &str) -> bool {
    let emoji = reaction.trim_matches(':');
    matches!(emoji, "black_square_for_stop" | "stop_button" | "octagonal_sign" | "stop_sign")
        || emoji.starts_with(['⏹', '🛑'])
}

/// Somebody presses a button that a message of ours has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Press {
    /// The front's id of it; a redelivery carries the same one.
    pub id: String,
    pub user: String,
    pub channel: String,
    /// The thread of the message, where it is in one.
    pub thread_ts: Option<String>,
    /// The front's id of the message.
    pub ts: String,
    pub choice: Choice,
}

impl Press {
    /// The reaction that says the same.
    pub fn reaction(&self) -> Reaction {
        Reaction {
            event_id: None,
            user: self.user.clone(),
            channel: self.channel.clone(),
            ts: self.ts.clone(),
            reaction: self.choice.reaction().to_owned(),
            of_another: false,
        }
    }
}

/// What a button says. Each says what a reaction says, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// An answer was of use.
    Like,
    /// An answer was of no use.
    Dislike,
    Yes,
    No,
    /// The question is to be asked once more.
    Again,
}

impl Choice {
    const ALL: [Choice; 5] = [Choice::Like, Choice::Dislike, Choice::Yes, Choice::No, Choice::Again];

    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            Choice::Like => "like",
            Choice::Dislike => "dislike",
            Choice::Yes => "yes",
            Choice::No => "no",
            Choice::Again => "again",
        }
    }

    /// The one of that name.
    pub fn from_name(name: &str) -> Option<Choice> {
        Choice::ALL.into_iter().find(|choice| choice.name() == name)
    }

    /// The reaction that says the same, by Slack's name of the emoji.
    const fn reaction(self) -> &'static str {
        match self {
            Choice::Like => "+1",
            Choice::Dislike => "-1",
            Choice::Yes => "white_check_mark",
            Choice::No => "x",
            Choice::Again => "repeat",
        }
    }
}

/// A button under a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Button {
    pub choice: Choice,
    /// The words on it.
    pub label: String,
}

/// Somebody clicks something else.
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
pub struct MessageBody {
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
