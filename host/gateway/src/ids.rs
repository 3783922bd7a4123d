//! The ids that the store assigns, as distinct types.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The greatest number of a message or a case that an import keeps. A new one is greater than all there are: from a
/// greater number on, the database, or what reads an export, would soon be out of numbers.
pub(crate) const GREATEST_KEPT: i64 = 1 << 48;

/// The id of a conversation's session in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub(crate) i64);

/// The id of a question in the inbox, in the order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InboxId(pub(crate) i64);

/// The id of a turn: that of the question it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TurnId(pub(crate) i64);

#[cfg(test)]
impl InboxId {
    /// Returns the id of some question.
    pub(crate) fn of(number: i64) -> Self {
        InboxId(number)
    }
}

#[cfg(test)]
impl TurnId {
    /// Returns the id of some turn.
    pub(crate) fn of(number: i64) -> Self {
        TurnId(number)
    }
}

impl SessionId {
    /// Returns the id of a session that is in no store.
    pub(crate) fn of(number: i64) -> Self {
        SessionId(number)
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for InboxId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for TurnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
