//! What people and the gateway exchange, independent of the front: what somebody wrote or did and where, and what they
//! are told.

use icu_normalizer::ComposingNormalizerBorrowed;
use pmk_core::{Place, SessionKey, text};
use pmk_knowledge::reaction::ReactionVerdict;
use serde::{Deserialize, Serialize};

mod attached;

pub use attached::{Attachments, Content, File, FileSkipReason, Quote, QuoteKind, Thread, ThreadPost};

/// The prefix of a slash command's event id. Ids from outside never contain a colon, so nobody can send one first
/// and have the command taken for a duplicate.
pub const SLASH: &str = ":slash:";

/// A message from a person, as it is stored in the inbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inbound {
    /// The front's id of the event; a redelivery has the same one.
    pub event_id: String,
    /// Further keys of the same message: `ts:TEAM:CHANNEL:TS` on Slack, where one message can arrive
    /// as two events.
    pub aliases: Vec<String>,
    /// The conversation it belongs to.
    pub key: SessionKey,
    /// Its author.
    pub user: String,
    /// Where the reply goes.
    pub reply_to: ReplyTo,
    /// The text, without the mention of the bot.
    pub text: String,
    /// What came with it in addition to the text.
    #[serde(default, skip_serializing_if = "Attachments::is_empty")]
    pub attached: Attachments,
    /// Whether it is for the bot only if it is about a question that waits: it does not mention the bot.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub if_awaited: bool,
    /// Whether an app has written it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_app: bool,
    /// The workspace of its author, if that is not the bot's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<String>,
    /// Whether it says that it is in a direct message of several people, which nobody can be added to.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_group: bool,
    /// The front's time from which it is a question, if it was written before that: an edit has made it one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_at: Option<String>,
    /// The position within a conversation: Slack's `ts`; empty if the order of arrival counts.
    pub ts: String,
}

impl Inbound {
    /// Returns whether it is a command to the gateway, and so neither a question nor an answer.
    pub fn is_command(&self) -> bool {
        after_command(&self.text).is_some()
    }

    /// Returns the channel of its conversation, if the message tells it. A slash command in a direct message does not: it
    /// is the conversation with its author, wherever they gave it, even between two other people.
    pub fn channel(&self) -> Option<&str> {
        let is_elsewhere = self.event_id.starts_with(SLASH) && matches!(self.key.place, Place::Dm(_));
        (!is_elsewhere).then_some(&self.reply_to.channel)
    }

    /// Returns which message it is.
    pub fn message_ref(&self) -> MessageRef {
        MessageRef::new(&self.reply_to.channel, &self.ts)
    }

    /// Returns the thread that the message is in, or the one that begins with it.
    pub fn thread(&self) -> &str {
        match &self.reply_to.thread_ts {
            Some(thread_ts) => thread_ts,
            None if self.ts.is_empty() => &self.event_id,
            None => &self.ts,
        }
    }
}

/// A message in a thread of a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadMessage {
    pub message: Inbound,
    pub manner: Addressing,
}

/// Whom the message addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Addressing {
    /// It mentions the bot, which makes it a question. `alone`: as far as is known, nobody else has written in the
    /// thread before.
    Mention { alone: bool },
    /// It does not mention the bot, but these: people, groups, or everybody. It may be for the bot all the same.
    Plain { names: Vec<String>, answered: Option<AnsweredBy> },
}

/// Who has answered a message since, as far as is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnsweredBy {
    Bot,
    Others,
}

impl Addressing {
    /// Returns whether it goes on with a conversation with the bot, if its author has one there: it is for nobody else,
    /// and nobody has answered it.
    pub fn goes_on(&self) -> bool {
        matches!(self, Addressing::Plain { names, answered: None } if names.is_empty())
    }
}

/// The prefix of commands, independent of how they arrive.
const COMMAND: &str = "/pmk";

/// Returns the text after the command's name; `None` if the text is not a command. The name may consist of full-width
/// characters, as Chinese input methods produce them.
pub(crate) fn after_command(text: &str) -> Option<&str> {
    let text = text.trim();
    let (name, rest) = text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()));
    let signs = ComposingNormalizerBorrowed::new_nfkc().normalize_iter(name.chars());
    signs.map(|sign| sign.to_ascii_lowercase()).eq(COMMAND.chars()).then_some(rest.trim_start())
}

/// Returns a text preceded by its author. Lines after the first are indented, so that none looks like the beginning of
/// another author's text.
pub(crate) fn attributed(author: &str, text: &str) -> String {
    format!("{author}: {}", text::lines(text).collect::<Vec<_>>().join("\n  "))
}

/// Returns the text that [`attributed`] has put after its author; what has no such beginning is returned as it is.
pub(crate) fn unattributed(author: &str, said: &str) -> String {
    let Some(text) = said.strip_prefix(author).and_then(|rest| rest.strip_prefix(": ")) else {
        return said.to_owned();
    };
    // Earlier versions indented no line.
    match text.split('\n').skip(1).all(|line| line.starts_with("  ")) {
        true => text.replace("\n  ", "\n"),
        false => text.to_owned(),
    }
}

/// Which message is meant. Messages of two channels may have the same timestamp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageRef {
    pub channel: String,
    /// The front's id of the message.
    pub ts: String,
}

impl MessageRef {
    pub fn new(channel: impl Into<String>, ts: impl Into<String>) -> MessageRef {
        MessageRef { channel: channel.into(), ts: ts.into() }
    }
}

/// A change of a message after it was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Edited(Box<Edit>),
    Reattached(Box<Reattached>),
    Deleted(Deletion),
}

/// A deleted message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    pub message: MessageRef,
    /// The conversation of the thread, if the message was in one, or began it, and it is known whose conversation that is.
    pub thread: Option<SessionKey>,
    /// Its author.
    pub of: DeletedAuthor,
}

/// Whose message was deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeletedAuthor {
    /// It was for the gateway, or its addressee is unknown.
    Us,
    /// The gateway's own message.
    Own,
    /// A message among people; its thread may still be a conversation with the gateway.
    Others,
}

/// An edited message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The message after the edit.
    pub message: Inbound,
    /// The front's time of the edit, by which several edits are ordered.
    pub at: String,
    /// Whether the message is for the gateway after the edit.
    pub is_for_us: bool,
    /// Whether no other event brings the message, in case it was not for the gateway before.
    pub comes_alone: bool,
    /// Whom it addresses, if it is in a thread of a channel.
    pub manner: Option<Addressing>,
    /// Whether a file that came with it is gone.
    pub lost_files: bool,
}

/// A message with the same text as before, of which only what comes with it has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reattached {
    /// The message after the change.
    pub message: Inbound,
    /// Whether a file is gone; otherwise there is more, such as the preview of a link.
    pub lost_files: bool,
}

/// A person's reaction to a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reaction {
    /// The front's id of the event, if it has one; a redelivery has the same one.
    pub event_id: Option<String>,
    pub user: String,
    pub message: MessageRef,
    /// Slack's name of the emoji, or the emoji itself.
    pub reaction: String,
    pub author: ReactedAuthor,
}

/// Whose message somebody reacts to, as far as the front says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReactedAuthor {
    Unknown,
    /// The bot's.
    Bot,
    /// That of the person who reacts.
    Themselves,
    Another,
}

/// Returns whether this reaction stops an answer.
pub fn says_stop(reaction: &str) -> bool {
    let emoji = reaction.trim_matches(':');
    matches!(emoji, "black_square_for_stop" | "stop_button" | "octagonal_sign" | "stop_sign")
        || emoji.starts_with(['⏹', '🛑'])
}

/// A press of a button on one of the gateway's messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Press {
    /// The front's id of the press; a redelivery has the same one.
    pub id: String,
    pub user: String,
    pub message: MessageRef,
    /// The thread of the message, if it is in one.
    pub thread_ts: Option<String>,
    pub choice: Choice,
}

impl Press {
    /// Returns the reaction with the same meaning.
    pub fn reaction(&self) -> Reaction {
        Reaction {
            event_id: None,
            user: self.user.clone(),
            message: self.message.clone(),
            reaction: self.choice.reaction().to_owned(),
            author: ReactedAuthor::Bot,
        }
    }
}

/// The meaning of a button. For each there is a reaction with the same meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The answer was useful.
    Like,
    /// The answer was not useful.
    Dislike,
    Yes,
    No,
    /// The question is to be asked again.
    Again,
}

impl Choice {
    const ALL: [Choice; 5] = [Choice::Like, Choice::Dislike, Choice::Yes, Choice::No, Choice::Again];

    /// Returns the name.
    pub const fn name(self) -> &'static str {
        match self {
            Choice::Like => "like",
            Choice::Dislike => "dislike",
            Choice::Yes => "yes",
            Choice::No => "no",
            Choice::Again => "again",
        }
    }

    /// Returns the choice with that name.
    pub fn from_name(name: &str) -> Option<Choice> {
        Choice::ALL.into_iter().find(|choice| choice.name() == name)
    }

    /// Returns the yes or no that it means.
    pub const fn verdict(self) -> Option<ReactionVerdict> {
        match self {
            Choice::Yes => Some(ReactionVerdict::Approve),
            Choice::No => Some(ReactionVerdict::Reject),
            Choice::Like | Choice::Dislike | Choice::Again => None,
        }
    }

    /// Returns the reaction with the same meaning, by Slack's name of the emoji.
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

impl From<ReactionVerdict> for Choice {
    fn from(verdict: ReactionVerdict) -> Choice {
        match verdict {
            ReactionVerdict::Approve => Choice::Yes,
            ReactionVerdict::Reject => Choice::No,
        }
    }
}

/// A button under a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Button {
    pub choice: Choice,
    /// The text on it.
    pub label: String,
}

/// A click on anything else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    pub user: String,
    /// The channel, if there is one.
    pub channel: Option<String>,
}

/// Where a reply can be posted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplyTo {
    pub channel: String,
    pub thread_ts: Option<String>,
}

/// The result of taking a message in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// It is stored and will be answered.
    New,
    /// It was stored before.
    Duplicate,
}

/// A text for people. A `<@U1>` in the text pings that person only if they are listed; everything else
/// in it is plain text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageBody {
    pub text: String,
    /// User ids.
    pub pings: Vec<String>,
}

/// What a front reports about its connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Access is refused until a person changes something. Existing connections go on, and the front keeps
    /// trying.
    Refused(Refusal),
    /// Access is granted again. `muted`: until now, nothing that was said arrived.
    Accepted { muted: bool },
    /// The gateway was unreachable for this long; this many messages came late.
    ConnectedAgain { deaf: std::time::Duration, late: u64 },
    /// Messages that were written since so long ago may never arrive: the gateway was unreachable, or could store
    /// nothing, for so long that the front may have given up sending them again.
    MayHaveMissed { since: std::time::Duration },
    /// An event was refused: this id of it is invalid, or this part of it has the wrong shape.
    Malformed { field: &'static str },
}

/// What a front refuses until a person changes something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    pub what: String,
    pub hint: String,
    /// Whether it refuses everything that the gateway says; otherwise only new connections.
    pub mutes: bool,
}

/// The state of a front's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connection {
    /// Connections that work, as far as is known.
    pub open: usize,
    /// How many there should be.
    pub of: usize,
    /// How many were lost within the last ten minutes.
    pub reconnects: u32,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Regression: asked again, further lines began with two more spaces each time.
        #[test]
        fn what_was_answered_together_was_asked_again_with_its_lines_indented(
            text in "(\\PC|\n|  |U1: |\r|\u{2028}){0,20}",
        ) {
            prop_assert_eq!(unattributed("U1", &attributed("U1", &text)), text::lines(&text).collect::<Vec<_>>().join("\n"));
        }
    }

    #[test]
    fn what_was_stored_without_an_author_or_without_an_indent_stays() {
        for (said, text) in [("one\n  two", "one\n  two"), ("U1: one\n  two\n3", "one\n  two\n3"), ("U1:", "U1:")] {
            assert_eq!(unattributed("U1", said), text);
        }
    }
}
