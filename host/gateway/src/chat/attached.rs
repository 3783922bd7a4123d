//! What comes with a message in addition to its text: forwarded messages, files, and the earlier messages of its
//! thread. What was read is stored with the question, so that a turn that is run again reads the same.

use pmk_core::Image;
use serde::{Deserialize, Serialize};

/// What comes with a message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Attachments {
    pub quotes: Vec<Quote>,
    pub files: Vec<File>,
    /// The number of further files, which are not read.
    #[serde(skip_serializing_if = "is_none")]
    pub left_out: usize,
    /// The earlier messages of its thread; `None` until they were read.
    pub thread: Option<Thread>,
}

fn is_none(count: &usize) -> bool {
    *count == 0
}

/// A text that somebody else may have written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quote {
    pub kind: QuoteKind,
    /// The author, by whatever name was given; may be empty.
    pub by: String,
    pub text: String,
    /// Whether more of it was left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_cut: bool,
}

/// How such a text came with the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QuoteKind {
    /// A message that was forwarded or shared.
    Forwarded,
    /// The preview of a link, or what an app has added.
    Aside,
}

/// A file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    /// The id by which the front has to be asked what it is; until then, no more is known than a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    pub name: String,
    /// Its stated size in bytes.
    pub bytes: Option<u64>,
    /// Where it can be fetched.
    pub address: Option<String>,
    /// Where a smaller preview of an image can be fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
    pub content: Content,
}

/// What is known of a file's content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// A text, according to its description, that is still to be fetched.
    Awaited,
    /// An image, according to its description, that is still to be fetched.
    AwaitedImage,
    /// `is_lossy`: some of it could not be decoded.
    Text {
        text: String,
        is_lossy: bool,
    },
    /// A stored image.
    Image(Image),
    Unread(FileSkipReason),
}

/// Why a file is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileSkipReason {
    /// It is not text.
    NoText,
    /// An image of a type that no model accepts.
    OddImage,
    /// An image, and the model accepts none.
    NoImages,
    TooLarge,
    /// An image with too many bytes or pixels.
    LargeImage,
    /// It was deleted.
    Gone,
    /// It is stored on another server, to which the token is never sent.
    Elsewhere,
    /// The app is not allowed to read files.
    NotAllowed,
    /// It belongs to others, who do not share it with the app.
    NotShared,
    /// It could not be fetched.
    NotFetched,
    /// Reading files is turned off.
    Off,
}

impl FileSkipReason {
    /// All reasons.
    pub const ALL: [FileSkipReason; 11] = [
        FileSkipReason::NoText,
        FileSkipReason::OddImage,
        FileSkipReason::NoImages,
        FileSkipReason::TooLarge,
        FileSkipReason::LargeImage,
        FileSkipReason::Gone,
        FileSkipReason::Elsewhere,
        FileSkipReason::NotAllowed,
        FileSkipReason::NotShared,
        FileSkipReason::NotFetched,
        FileSkipReason::Off,
    ];

    /// Returns the name.
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
            FileSkipReason::NotShared => "not-shared",
            FileSkipReason::NotFetched => "not-fetched",
            FileSkipReason::Off => "off",
        }
    }
}

/// The earlier messages of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Thread {
    /// Oldest first.
    pub said: Vec<ThreadPost>,
    /// The ids of the people who have written in it, each once.
    pub people: Vec<String>,
    /// Whether more of it was left out.
    pub is_cut: bool,
}

impl Thread {
    /// Returns whether it has any messages.
    pub fn says(&self) -> bool {
        !self.said.is_empty()
    }
}

/// A message of a thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadPost {
    /// The id of a person or an app.
    pub by: String,
    pub text: String,
}

impl Attachments {
    /// Returns whether nothing came with the message.
    pub fn is_empty(&self) -> bool {
        self.quotes.is_empty() && self.files.is_empty() && self.thread.is_none()
    }

    /// Returns whether there is anything for the model.
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

    /// Returns the files that were not read, with the reasons.
    pub fn unread(&self) -> impl Iterator<Item = (&str, FileSkipReason)> {
        self.files.iter().filter_map(|file| match file.content {
            Content::Unread(why) => Some((file.name.as_str(), why)),
            Content::Awaited | Content::AwaitedImage | Content::Text { .. } | Content::Image(_) => None,
        })
    }
}
