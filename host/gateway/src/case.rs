//! Cases (specification 003 §11): what a channel is looking into. A case is opened with a title, and every question
//! asked in its channel or in a thread of it while it is open belongs to it; a direct message never does. The model's
//! notes on it, hypotheses and open questions, are [tracked](crate::directive::case_updates).
//!
//! [`case_service`](crate::operator::case_service) implements the commands, [`block`] shows a case to the model,
//! [`document`] writes the file that teams keep of it, and [`imported`] imports cases from pmk. Conversations are
//! unchanged, with or without a case.

mod block;
mod document;
mod imported;

use std::fmt;

use icu_normalizer::ComposingNormalizerBorrowed;
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

/// What ends a sentence, and so makes no other note.
const ENDS: [char; 9] = ['.', '!', '?', ',', ';', ':', '。', '、', ' '];

/// A request to change a case: by whom, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    pub front: FrontName,
    pub channel: String,
    pub user: String,
    /// The front's id of the event: the same order repeated, for instance after a crash, counts as one order.
    pub event_id: String,
}

/// Why nothing was done. The text for people is in [`case_refused`](crate::messages::Messages::case_refused).
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

/// The kind of a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NoteKind {
    /// A possible cause.
    Hypothesis,
    /// Something to find out next.
    Question,
}

impl NoteKind {
    /// Both kinds.
    pub const ALL: [NoteKind; 2] = [NoteKind::Hypothesis, NoteKind::Question];

    /// Returns its name in the store, and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            NoteKind::Hypothesis => "hypothesis",
            NoteKind::Question => "question",
        }
    }

    /// Returns the model's names for it: the one that it is told, and the one that a Chinese list of notes has.
    pub const fn keys(self) -> [&'static str; 2] {
        match self {
            NoteKind::Hypothesis => ["hypothesis", "假設"],
            NoteKind::Question => ["next-question", "待查問題"],
        }
    }

    /// Returns the kind with that name in the store.
    pub fn from_name(name: &str) -> Option<NoteKind> {
        NoteKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A note: one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub kind: NoteKind,
    pub text: String,
}

impl Note {
    /// Returns a note with this text; `None` if the text is empty apart from punctuation.
    pub fn new(kind: NoteKind, words: &str) -> Option<Note> {
        let text = text::shortened(&text::collapse_whitespace(&text::plain_line(words)), MAX_NOTE_CHARS).into_owned();
        (!plain(&text).is_empty()).then_some(Note { kind, text })
    }

    /// Returns the form by which notes are compared: letter case, character width, emphasis, and punctuation at the end
    /// do not matter. All other signs do: `C++` is not `C#`, and 1.5 is not 15.
    pub fn spelling(&self) -> String {
        let compatible = ComposingNormalizerBorrowed::new_nfkc().normalize(&self.text);
        let unmarked = compatible.to_lowercase().replace("**", "").replace('`', "");
        text::collapse_whitespace(&unmarked).trim_end_matches(ENDS).to_owned()
    }

    /// Returns whether two notes are the same.
    pub fn is(&self, other: &Note) -> bool {
        self.kind == other.kind && self.spelling() == other.spelling()
    }
}

/// A stored note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptNote {
    pub note: Note,
    /// Since when it is stored, in milliseconds since the epoch.
    pub at_ms: i64,
    /// The id of the answer that it comes from; `None` if it was imported.
    pub message: Option<i64>,
}

/// A case without its messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    pub id: CaseId,
    pub front: FrontName,
    pub channel: String,
    pub title: String,
    /// `None` for a case that was opened by pmk, if pmk did not say by whom.
    pub opened_by: Option<String>,
    pub opened_at_ms: i64,
    /// When it was closed, and by whom, if known; `None` if it is open.
    pub closed: Option<(i64, Option<String>)>,
    /// In the order in which they were added.
    pub notes: Vec<KeptNote>,
    /// The number of messages that belong to it.
    pub messages: u64,
}

impl Case {
    /// Returns its notes of a kind.
    pub fn notes_of(&self, kind: NoteKind) -> impl DoubleEndedIterator<Item = &KeptNote> {
        self.notes.iter().filter(move |kept| kept.note.kind == kind)
    }

    /// Returns whether it has this note.
    pub fn has(&self, note: &Note) -> bool {
        self.notes.iter().any(|kept| kept.note.is(note))
    }
}

/// A message that belongs to a case.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseMessage {
    pub id: i64,
    pub key: SessionKey,
    /// Its author; `None` if it is the model's, or if it is from several people, whom its text
    /// names.
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

    /// Regression: they were compared by letters and digits alone, look-alikes taken for one another, so that the
    /// second was lost.
    #[test]
    fn notes_that_differ_in_a_sign_or_a_letter_were_taken_for_one() {
        let note = |words: &str| Note::new(NoteKind::Hypothesis, words).expect("a note");
        for (one, other) in [
            ("C++ 的客戶端逾時", "C# 的客戶端逾時"),
            ("逾時是 1.5 秒", "逾時是 15 秒"),
            ("since 1.10", "since 11.0"),
            ("host I0 is down", "host l0 is down"),
            ("the modem is down", "the modern is down"),
        ] {
            assert!(!note(one).is(&note(other)), "{one} and {other}");
        }
        for (one, other) in [
            ("逾時是 15 秒", "逾時是　１５ 秒。"),
            ("Is it the `cache`?", "is it the **cache** ?"),
            ("快取過期！", "**快取**過期"),
        ] {
            assert!(note(one).is(&note(other)), "{one} and {other}");
        }
    }

    #[test]
    fn a_number_is_typed_with_or_without_its_sign() {
        assert_eq!(("7".parse(), "#7".parse()), (Ok(CaseId(7)), Ok(CaseId(7))));
        for none in ["", "#", "0", "-1", "C1", "7.5"] {
            assert!(none.parse::<CaseId>().is_err(), "{none}");
        }
    }
}
