//! What came of somebody's word on a message.

use crate::chat::ReplyTo;

/// What came of a word.
pub(super) enum VerdictOutcome {
    /// None is awaited there, or not any more.
    NotAwaited,
    /// Somebody else's is.
    NotTheirs,
    /// It counts, and an answer will show it.
    Taken,
    /// It has counted before, and the message says this, if no crash came in between.
    Known(String),
    /// It counts, and that the message is to say this is stored with it.
    Kept(String),
    /// It counts, and the message, which is at that place, is to say this from now on.
    Shown(ReplyTo, String),
}
