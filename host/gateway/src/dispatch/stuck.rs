//! Why a turn did not come to its end, and what that calls for.

use std::time::Duration;

use pmk_system::error::Failure;

/// Why a turn did not come to its end.
#[derive(Debug)]
pub enum TurnFailure {
    /// It may go better a little later.
    Passing {
        why: String,
        /// How long the other side asked to be left alone.
        retry_after: Duration,
    },
    /// People have changed something about it: it is tried again at once, with what is stored now.
    Anew,
    /// Another host works on the conversation, or is owed an earlier message of it: what is open there is looked up anew.
    Elsewhere,
    /// Several messages are too much to be answered together: each is tried by itself.
    Apart,
    /// Somebody said no, and hardly says otherwise soon; it is tried a few times more.
    Refused { why: String },
    /// It cannot go on, however often it is tried.
    Hopeless { why: String },
    /// Nothing can go on: with why, where that is a failure.
    Over(Option<Failure>),
}
