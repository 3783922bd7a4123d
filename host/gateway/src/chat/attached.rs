//! What comes with a message beside its text: messages that it forwards, files, and what was said before it in its thread.
//! What is read of that is stored with the question, so that a turn that is run again reads the same.

use pmk_core::Image;
use serde::{Deserialize, Serialize};

/// What comes with a message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Attachments {
    pub quotes: Vec<Quote>,
    pub files: Vec<File>,
    /// How many more files there were, which are not read.
    #[serde(skip_serializing_if = "is_none")]
    pub left_out: usize,
    /// What was said in its thread before; none until that was looked for.
    pub thread: Option<Thread>,
}

fn is_none(count: &usize) -> bool {
    *count == 0
}

/// Words that somebody else may have written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quote {
    pub kind: QuoteKind,
    /// Who wrote it, by whatever name it came under; may be empty.
    pub by: String,
    pub text: String,
    /// Whether there is more of it, which is left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_cut: bool,
}

/// How such words come along.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QuoteKind {
    /// A message that was forwarded or shared.
    Forwarded,
    /// What a link leads to, or what an app has put beside the text.
    Aside,
}

/// A file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    pub name: String,
    /// How long it is said to be, in bytes.
    pub bytes: Option<u64>,
    /// Where it can be fetched.
    pub address: Option<String>,
    /// Where a smaller picture of it can be fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
    pub content: Content,
}

/// What is known of what is in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// A text, by what is said of it, that is still to be fetched.
    Awaited,
    /// An image, by what is said of it, that is still to be fetched.
    AwaitedImage,
    /// `is_lossy`: some of it was no text in any encoding that is known here.
    Text {
        text: String,
        is_lossy: bool,
    },
    /// One that is kept.
    Image(Image),
    Unread(FileSkipReason),
}

/// Why a file is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileSkipReason {
    /// It holds no text.
    NoText,
    /// An image of a kind that no model takes.
    OddImage,
    /// An image, and the model takes none.
    NoImages,
    TooLarge,
    /// An image with more bytes or pixels than are sent.
    LargeImage,
    /// It was deleted.
    Gone,
    /// It is kept somewhere else, and the token goes nowhere else.
    Elsewhere,
    /// The app may not read files.
    NotAllowed,
    /// It could not be fetched.
    NotFetched,
    /// Files are not read here.
    Off,
}

impl FileSkipReason {
    /// Every reason.
    pub const ALL: [FileSkipReason; 10] = [
        FileSkipReason::NoText,
        FileSkipReason::OddImage,
        FileSkipReason::NoImages,
        FileSkipReason::TooLarge,
        FileSkipReason::LargeImage,
        FileSkipReason::Gone,
        FileSkipReason::Elsewhere,
        FileSkipReason::NotAllowed,
        FileSkipReason::NotFetched,
        FileSkipReason::Off,
    ];

    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            FileSkipReason::NoText => "no-text",
            FileSkipReason::OddImage => "odd-image",
            FileSkipReason::NoImages => "no-images",
            FileSkipReason::TooLarge => "too-large",
            FileSkipReason::LargeImage => "large-image",
            FileSkipReason::Gone => "gone",
            FileSkipReason::Elsewhere => "elsewhere",
            FileSkipReason::NotAllowed => "not-allowed",
            FileSkipReason::NotFetched => "not-fetched",
            FileSkipReason::Off => "off",
        }
    }
}

/// What was said in a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Thread {
    /// Oldest first.
    pub said: Vec<ThreadPost>,
    /// The ids of the people who have written in it, each once.
    pub people: Vec<String>,
    /// Whether there is more of it than was read.
    pub is_cut: bool,
}

impl Thread {
    /// Whether anything was said in it.
    pub fn says(&self) -> bool {
        !self.said.is_empty()
    }
}

/// What somebody said there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadPost {
    /// The id of a person, or of an app.
    pub by: String,
    pub text: String,
}

impl Attachments {
    /// Whether there is nothing at all.
    pub fn is_empty(&self) -> bool {
        self.quotes.is_empty() && self.files.is_empty() && self.thread.is_none()
    }

    /// Whether there is something in it for the model.
    pub fn has_content(&self) -> bool {
        let is_read = |file: &File| matches!(file.content, Content::Text { .. } | Content::Image(_));
        !self.quotes.is_empty() || self.files.iter().any(is_read) || self.thread.as_ref().is_some_and(Thread::says)
    }

    /// Adds what came with a later message.
    pub fn append(&mut self, mut later: Attachments) {
        self.quotes.append(&mut later.quotes);
        self.files.append(&mut later.files);
        self.left_out += later.left_out;
        self.thread = self.thread.take().or(later.thread);
    }

    /// The files that are not read, with the reasons.
    pub fn unread(&self) -> impl Iterator<Item = (&str, FileSkipReason)> {
        self.files.iter().filter_map(|file| match file.content {
            Content::Unread(why) => Some((file.name.as_str(), why)),
            Content::Awaited | Content::AwaitedImage | Content::Text { .. } | Content::Image(_) => None,
        })
    }
}
