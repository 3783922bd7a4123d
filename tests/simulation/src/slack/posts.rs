//! The bot's messages, and what Slack refused of them.

use pmk_host::{
    chat::{Choice, ReplyTo},
    front::{Delivery, Kind},
};
use serde_json::Value;

use super::{Known, Question};

/// A message of the bot.
#[derive(Clone, Debug)]
pub struct Post {
    pub ts: String,
    /// What it was posted as, by which it can be found again.
    pub tag: Tag,
    /// What it shows now.
    pub shows: Tag,
    pub text: String,
    pub is_deleted: bool,
    /// It was deleted by somebody other than the bot.
    pub is_erased: bool,
    pub place: ReplyTo,
    /// Its buttons.
    pub buttons: Vec<Choice>,
    /// What they and those before them are called, in worlds over calls: a press may come later.
    pub named_buttons: Vec<(String, Choice)>,
    /// The name of the file that it is.
    pub file: Option<String>,
    pub posted_at: u64,
    /// When an attempt to delete it last failed.
    pub kept_at: Option<u64>,
    /// Since when it has shown its current content.
    pub at: u64,
    pub known: Known,
    /// The metadata that the bot gave it, in worlds [over calls](super::wired).
    pub metadata: Value,
    /// It is streamed, since this time, and more can be appended.
    pub grows_since: Option<u64>,
    /// A person has stopped it by Slack's own button.
    pub is_stopped: bool,
}

/// The relation of a message to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tag {
    pub event_id: String,
    pub event_ids: Vec<String>,
    pub number: u32,
    pub kind: Kind,
    pub parked_at_ms: Option<i64>,
}

impl Tag {
    pub(super) fn of(part: &Delivery<'_>) -> Tag {
        Tag {
            event_id: part.event_id.to_owned(),
            event_ids: part.event_ids.to_vec(),
            number: part.number,
            kind: part.kind,
            parked_at_ms: part.parked_at_ms,
        }
    }

    /// The questions that it is about.
    pub fn numbers(&self) -> impl Iterator<Item = usize> {
        std::iter::once(&self.event_id).chain(&self.event_ids).filter_map(|id| number(id))
    }

    /// Whether it is about a question, by any of the question's events.
    pub fn is_about(&self, question: &Question) -> bool {
        self.numbers().any(|number| number == question.number)
    }

    pub(super) fn is(&self, part: &Delivery<'_>) -> bool {
        let is_same = self.event_id == part.event_id && self.number == part.number && self.kind == part.kind;
        is_same && self.parked_at_ms == part.parked_at_ms
    }
}

/// The channel of the direct messages with a person.
pub fn direct(person: &str) -> String {
    format!("D{}", person.trim_start_matches('U'))
}

impl Post {
    /// Whether it is in a person's direct messages.
    pub fn is_direct(&self) -> bool {
        self.place.channel.starts_with('D')
    }

    pub fn is_there(&self) -> bool {
        !self.is_deleted && !self.is_erased
    }
}

/// The number of the question of an event: all events of a question begin with the first event's name.
pub fn number(event_id: &str) -> Option<usize> {
    let name = event_id.strip_prefix("Ev")?;
    let digits = name.find(|c: char| !c.is_ascii_digit()).unwrap_or(name.len());
    name[..digits].parse().ok()
}

/// A part that Slack refused permanently.
#[derive(Clone, Debug)]
pub struct Refused {
    pub tag: Tag,
    /// The message that it was to replace.
    pub replaces: Option<String>,
}
