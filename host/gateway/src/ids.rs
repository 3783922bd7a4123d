//! The numbers that the store gives, so that one kind is never taken for another.

use std::fmt;

/// A conversation's number in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub(crate) i64);

/// A question's number in the inbox, in the order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InboxId(pub(crate) i64);

/// A turn's number: that of the question it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TurnId(pub(crate) i64);

#[cfg(test)]
impl InboxId {
    /// Some question's number.
    pub(crate) fn of(number: i64) -> Self {
        InboxId(number)
    }
}

#[cfg(test)]
impl TurnId {
    /// Some turn's number.
    pub(crate) fn of(number: i64) -> Self {
        TurnId(number)
    }
}

impl SessionId {
    /// Some conversation's number, of one that is in no store.
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
