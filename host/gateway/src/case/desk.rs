//! What people can do about cases, and what they are told. Who may is asked before; the words that lead here are the table
//! of commands'.

use pmk_core::{FrontName, text};
use thiserror::Error;

use super::Case;
use crate::{
    clock,
    say::Say,
    store::{Opened, Store, StoreError},
};

/// The longest title, in characters.
pub const MAX_TITLE_CHARS: usize = 200;

/// So many cases of a channel are listed; the operator sees all.
const MOST_LISTED: usize = 20;

/// Who wants something of a case, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    pub front: FrontName,
    pub channel: String,
    pub user: String,
    /// The front's id of what was said: the same order that comes again, after a crash for one, is one order.
    pub event_id: String,
}

/// Why nothing was done. [`Say::case_refused`] has the words for it.
#[derive(Debug, Error)]
pub enum CaseError {
    #[error("case {} is open in this channel", .0.id)]
    OpenAlready(Box<Case>),
    #[error("no case is open in this channel")]
    NoneOpen,
    #[error("a case needs a title")]
    NoTitle,
    #[error("the title has {chars} characters and may have {MAX_TITLE_CHARS}")]
    TitleTooLong { chars: usize },
    #[error("cases are of channels, and this is a direct message")]
    NotAChannel,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The desk of a gateway.
#[derive(Clone, Copy)]
pub struct Cases<'a> {
    pub store: &'a Store,
    pub say: &'a Say,
}

impl Cases<'_> {
    /// Opens a case, and says so.
    ///
    /// # Errors
    /// One is open already; the title is none; the place is no channel; the store failed.
    pub async fn open(&self, order: &Order, title: &str) -> Result<String, CaseError> {
        is_channel(&order.channel)?;
        let title = title_of(title)?;
        match self.store.open_case(order, &title, clock::now_ms()).await? {
            Opened::Other(case) => Err(CaseError::OpenAlready(Box::new(case))),
            Opened::Case { case, .. } => Ok(self.say.case_opened(&case)),
        }
    }

    /// What is known of the case that is open in a channel.
    ///
    /// # Errors
    /// None is; the place is no channel; the store failed.
    pub async fn show(&self, front: FrontName, channel: &str) -> Result<String, CaseError> {
        is_channel(channel)?;
        let case = self.store.open_case_of(front, channel).await?;
        Ok(self.say.case_shown(&case.ok_or(CaseError::NoneOpen)?))
    }

    /// Closes the case that is open in a channel, and says so.
    ///
    /// # Errors
    /// None is; the place is no channel; the store failed.
    pub async fn close(&self, order: &Order) -> Result<String, CaseError> {
        is_channel(&order.channel)?;
        let closed = self.store.close_case(order, clock::now_ms()).await?;
        let (case, _) = closed.ok_or(CaseError::NoneOpen)?;
        Ok(self.say.case_closed(&case))
    }

    /// The cases of a channel. Those of others are not told here: a private channel's are its own.
    ///
    /// # Errors
    /// The place is no channel; the store failed.
    pub async fn list(&self, front: FrontName, channel: &str) -> Result<String, CaseError> {
        is_channel(channel)?;
        let cases = self.store.cases_of(front, channel).await?;
        let listed = &cases[..cases.len().min(MOST_LISTED)];
        Ok(self.say.cases_listed(listed, cases.len() - listed.len()))
    }
}

/// Slack's ids of direct messages begin with a D.
fn is_channel(channel: &str) -> Result<(), CaseError> {
    if channel.is_empty() || channel.starts_with('D') { Err(CaseError::NotAChannel) } else { Ok(()) }
}

fn title_of(words: &str) -> Result<String, CaseError> {
    let title = text::plain_line(words).split_whitespace().collect::<Vec<_>>().join(" ");
    match title.chars().count() {
        0 => Err(CaseError::NoTitle),
        chars if chars > MAX_TITLE_CHARS => Err(CaseError::TitleTooLong { chars }),
        _ => Ok(title),
    }
}

#[cfg(test)]
mod tests;
