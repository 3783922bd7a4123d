//! The result of a yes or no to a message.

use crate::chat::ReplyTo;

/// The result of a verdict.
pub(super) enum VerdictOutcome {
    /// No verdict is awaited there, or no longer.
    NotAwaited,
    /// The atom's file cannot be read, so that the verdict does not count yet; with the text that says what is wrong.
    Unreadable(String),
    /// Another person's verdict is awaited.
    NotTheirs,
    /// It counts, and an answer will show it.
    Taken,
    /// It counted before; the message shows this text, unless a crash intervened.
    Known(String),
    /// It counts, and the text that the message is to show is stored with it.
    Kept(String),
    /// It counts, and the message at this place is to show this text.
    Shown(ReplyTo, String),
}
