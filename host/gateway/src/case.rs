//! Cases (specification 003 §11): what a channel is looking into. A case is opened with a title, and every question that is asked in
//! its channel while it is open belongs to it, those of the channel's threads too; a direct message never does. What the
//! model makes of it, hypotheses and open questions, is [tracked](crate::directive::case_updates).
//!
//! [`case_service`](crate::operator::case_service) is what people can do about them, [`block`] how the model is shown one, [`document`] the file that teams keep
//! of it, [`imported`] what is taken over from pmk. Conversations stay as they are, case or not.

mod block;
mod document;
mod imported;

use std::fmt;

use pmk_core::{FrontName, Message, SessionKey, text};
use thiserror::Error;

pub use block::block;
pub use document::document;
pub use imported::{BadCase, ImportedCase, imported};

use crate::spelling::plain;

/// The longest title, in characters.
pub const MAX_TITLE_CHARS: usize = 200;

/// The most characters of a note; a longer one is cut.
const MAX_NOTE_CHARS: usize = 500;

/// Who wants something of a case, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    pub front: FrontName,
    pub channel: String,
    pub user: String,
    /// The front's id of what was said: the same order that comes again, after a crash for one, is one order.
    pub event_id: String,
}

/// Why nothing was done. [What people are told](crate::messages::Messages::case_refused) has the words for it.
#[derive(Debug, Error)]
pub enum CaseRefusal {
    #[error("case {} is open in this channel", .0.id)]
    OpenAlready(Box<Case>),
    #[error("no case is open in this channel")]
    NoneOpen,
    #[error("a case needs a title")]
    NoTitle,
    #[error("the title has {chars} characters, more than the limit of {MAX_TITLE_CHARS}")]
    TitleTooLong { chars: usize },
    #[error("cases belong to channels, and this is a direct message")]
    NotAChannel,
}

/// A case's number, which people type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CaseId(pub i64);

impl fmt::Display for CaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::str::FromStr for CaseId {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = text.strip_prefix('#').unwrap_or(text).parse().ok().filter(|number| *number > 0);
        number.map(CaseId).ok_or("a case number is a whole number, as listed by `case list`")
    }
}

/// What is noted of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NoteKind {
    /// What may be the reason.
    Hypothesis,
    /// What is to be found out next.
    Question,
}

impl NoteKind {
    /// Both of them.
    pub const ALL: [NoteKind; 2] = [NoteKind::Hypothesis, NoteKind::Question];

    /// Its name in the store, and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            NoteKind::Hypothesis => "hypothesis",
            NoteKind::Question => "question",
        }
    }

    /// What the model calls it.
    pub const fn key(self) -> &'static str {
        match self {
            NoteKind::Hypothesis => "hypothesis",
            NoteKind::Question => "next-question",
        }
    }

    /// The kind of that name in the store.
    pub fn from_name(name: &str) -> Option<NoteKind> {
        NoteKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// One thing that is noted: one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub kind: NoteKind,
    pub text: String,
}

impl Note {
    /// A note of these words; `None` where they say nothing.
    pub fn new(kind: NoteKind, words: &str) -> Option<Note> {
        let text = text::shortened(&text::collapse_whitespace(&text::plain_line(words)), MAX_NOTE_CHARS).into_owned();
        (!plain(&text).is_empty()).then_some(Note { kind, text })
    }

    /// By which it is the same again: marks, case and width make no other note.
    pub fn spelling(&self) -> String {
        plain(&self.text)
    }

    /// Whether this says what another does.
    pub fn is(&self, other: &Note) -> bool {
        self.kind == other.kind && self.spelling() == other.spelling()
    }
}

/// A note as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptNote {
    pub note: Note,
    /// Since when, milliseconds since the epoch.
    pub at_ms: i64,
    /// The answer that it comes from; none where it was imported.
    pub message: Option<i64>,
}

/// A case without its messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    pub id: CaseId,
    pub front: FrontName,
    pub channel: String,
    pub title: String,
    /// Nobody knows of a case that pmk had opened.
    pub opened_by: Option<String>,
    pub opened_at_ms: i64,
    /// Where it is closed: when, and by whom, where that is known.
    pub closed: Option<(i64, Option<String>)>,
    /// In the order in which they came.
    pub notes: Vec<KeptNote>,
    /// How many messages belong to it.
    pub messages: u64,
}

impl Case {
    /// Its notes of a kind.
    pub fn notes_of(&self, kind: NoteKind) -> impl DoubleEndedIterator<Item = &KeptNote> {
        self.notes.iter().filter(move |kept| kept.note.kind == kind)
    }

    /// Whether it has this note.
    pub fn has(&self, note: &Note) -> bool {
        self.notes.iter().any(|kept| kept.note.is(note))
    }
}

/// A message that belongs to a case.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseMessage {
    pub id: i64,
    pub key: SessionKey,
    /// Who wrote it; nobody where it is the model's, or several people's, whom it names.
    pub user: Option<String>,
    pub at_ms: i64,
    pub message: Message,
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// Case 7 of a channel, with these notes.
    pub(crate) fn case(title: &str, notes: &[(NoteKind, &str)]) -> Case {
        let kept = |&(kind, text): &(NoteKind, &str)| KeptNote {
            note: Note { kind, text: text.to_owned() },
            at_ms: 1_760_000_060_000,
            message: None,
        };
        Case {
            id: CaseId(7),
            front: FrontName::Slack,
            channel: "C1".into(),
            title: title.into(),
            opened_by: Some("U1".into()),
            opened_at_ms: 1_760_000_000_000,
            closed: None,
            notes: notes.iter().map(kept).collect(),
            messages: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_one_line_that_says_something() {
        let note = |words: &str| Note::new(NoteKind::Hypothesis, words);
        assert_eq!(note(" the cache\u{2028}is\tstale ").map(|note| note.text), Some("the cache is stale".into()));
        for nothing in ["", " ", "\u{200b}", "…?!"] {
            assert_eq!(note(nothing), None, "{nothing:?}");
        }
        let long = note(&"預".repeat(900)).expect("a note");
        assert_eq!(long.text.chars().count(), MAX_NOTE_CHARS + 1);
        assert!(note("The cache is STALE.").expect("a note").is(&note("the cache is stale").expect("a note")));
        let question = Note::new(NoteKind::Question, "the cache is stale").expect("a note");
        assert!(!question.is(&note("the cache is stale").expect("a note")));
    }

    #[test]
    fn a_number_is_typed_with_or_without_its_sign() {
        assert_eq!(("7".parse(), "#7".parse()), (Ok(CaseId(7)), Ok(CaseId(7))));
        for none in ["", "#", "0", "-1", "C1", "7.5"] {
            assert!(none.parse::<CaseId>().is_err(), "{none}");
        }
    }
}
