//! The messages to be sent, and how one is stored: its text, which goes once it is sent, and all the rest.

use serde::{Deserialize, Serialize};

use super::codec;
use crate::chat::{Inbound, MessageBody};

pub(super) const UNSENT_PARTS: &str =
    "SELECT part, body, how FROM outbox WHERE turn_id = ?1 AND sent_at IS NULL ORDER BY part";

/// What the part `o` of the outbox is for, by the name of its [`Purpose`]; a plain part of the reply is stored without.
macro_rules! purpose {
    () => {
        "coalesce(CASE WHEN json_valid(o.how) THEN json_extract(o.how, '$.purpose.for') END, 'reply')"
    };
}
pub(super) use purpose;

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
    Withdraw(Withdrawal),
    /// It asks for a verdict on an atom, whose file is saved just before; it replaces the placeholder.
    Notice {
        /// The file's text.
        atom: String,
        /// Where an earlier attempt has saved the file, whatever became of it since.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        saved_in: Option<String>,
    },
}

/// A placeholder to be removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Withdrawal {
    /// The question's event id, by which the placeholder is looked for, and the question's position.
    pub event_id: String,
    pub ts: String,
    /// The placeholder, where it is known: otherwise there may be none.
    pub placeholder: Option<String>,
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

/// One part of an answer, counted from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub number: u32,
    pub outgoing: Outgoing,
}

/// A part that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Its number.
    pub part: u32,
    /// The front's id of it, where the front has ids.
    pub id: Option<String>,
}

/// What an outgoing message consists of beside its text.
#[derive(Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct How {
    pings: Vec<String>,
    thread_ts: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    to: Option<String>,
    pub(super) purpose: Purpose,
    #[serde(default, skip_serializing_if = "Offers::is_nothing")]
    offers: Offers,
}

impl How {
    /// Returns the message with this text.
    pub(super) fn with_text(self, text: String) -> Outgoing {
        let How { pings, thread_ts, to, purpose, offers } = self;
        Outgoing { speech: MessageBody { text, pings }, thread_ts, to, purpose, offers }
    }
}

/// Returns the text and the rest, as they are stored.
pub(super) fn encode(outgoing: &Outgoing) -> (String, Option<String>) {
    let Outgoing { speech: MessageBody { text, pings }, thread_ts, to, purpose, offers } = outgoing.clone();
    let how = How { pings, thread_ts, to, purpose, offers };
    (text, (how != How::default()).then(|| codec::to_json(&how)))
}
