//! Why a turn did not finish, and what is done about it.

use std::time::Duration;

use pmk_system::error::Failure;

/// Why a turn did not finish.
#[derive(Debug)]
pub enum TurnFailure {
    /// A retry a little later may succeed.
    Passing {
        why: String,
        /// The wait that the other side asked for.
        retry_after: Duration,
    },
    /// People have changed something about the turn: it is retried at once with the stored state.
    Anew,
    /// Another host works on the conversation, or must answer an earlier message of it: its open messages are looked up
    /// again.
    Elsewhere,
    /// Several messages are too long to be answered together: each is tried by itself.
    Apart,
    /// The other side refused, and is unlikely to accept soon; a few more attempts are made.
    Refused { why: String },
    /// It cannot succeed, however often it is tried.
    Hopeless { why: String },
    /// The gateway cannot go on; with the reason, if that is a failure.
    Over(Option<Failure>),
}
