//! The operations on cases and the replies to them. Permission is checked by the caller; the commands are defined in
//! the command table.

use pmk_core::{FrontName, text};
use pmk_system::clock::Clock;
use thiserror::Error;

use crate::{
    case::{CaseRefusal, MAX_TITLE_CHARS, Order},
    messages::Messages,
    store::{Opened, Store, StoreError},
};

/// The most cases of a channel that are listed; the operator can list all.
const MOST_LISTED: usize = 20;

/// Why nothing was done.
#[derive(Debug, Error)]
pub enum CaseServiceError {
    /// The operation is not possible now.
    #[error(transparent)]
    Refused(#[from] CaseRefusal),
    /// The store could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Carries out the operations on cases.
#[derive(Clone, Copy)]
pub struct CaseService<'a> {
    pub store: &'a Store,
    pub messages: &'a Messages,
    pub clock: &'a Clock,
}

impl CaseService<'_> {
    /// Opens a case and returns the reply.
    ///
    /// # Errors
    /// A case is already open; the title is invalid; the place is not a channel; the store failed.
    pub async fn open(&self, order: &Order, title: &str) -> Result<String, CaseServiceError> {
        is_channel(&order.channel)?;
        let title = title_of(title)?;
        match self.store.open_case(order, &title, self.clock.now_ms()).await? {
            Opened::Other(case) => Err(CaseRefusal::OpenAlready(Box::new(case)).into()),
            Opened::Case { case, .. } => Ok(self.messages.case_opened(&case)),
        }
    }

    /// Returns a description of the open case of a channel.
    ///
    /// # Errors
    /// None is open; the place is not a channel; the store failed.
    pub async fn show(&self, front: FrontName, channel: &str) -> Result<String, CaseServiceError> {
        is_channel(channel)?;
        let case = self.store.open_case_of(front, channel).await?;
        Ok(self.messages.case_shown(&case.ok_or(CaseRefusal::NoneOpen)?))
    }

    /// Closes the open case of a channel and returns the reply.
    ///
    /// # Errors
    /// None is open; the place is not a channel; the store failed.
    pub async fn close(&self, order: &Order) -> Result<String, CaseServiceError> {
        is_channel(&order.channel)?;
        let closed = self.store.close_case(order, self.clock.now_ms()).await?;
        let (case, _) = closed.ok_or(CaseRefusal::NoneOpen)?;
        Ok(self.messages.case_closed(&case))
    }

    /// Lists the cases of a channel. Cases of other channels are not shown: a private channel's are its own.
    ///
    /// # Errors
    /// The place is not a channel; the store failed.
    pub async fn list(&self, front: FrontName, channel: &str) -> Result<String, CaseServiceError> {
        is_channel(channel)?;
        let cases = self.store.cases_of(front, channel).await?;
        let listed = &cases[..cases.len().min(MOST_LISTED)];
        Ok(self.messages.cases_listed(listed, cases.len() - listed.len()))
    }
}

/// Slack's ids of direct messages begin with a D.
fn is_channel(channel: &str) -> Result<(), CaseRefusal> {
    if channel.is_empty() || channel.starts_with('D') { Err(CaseRefusal::NotAChannel) } else { Ok(()) }
}

fn title_of(words: &str) -> Result<String, CaseRefusal> {
    let title = text::collapse_whitespace(&text::plain_line(words));
    match title.chars().count() {
        0 => Err(CaseRefusal::NoTitle),
        chars if chars > MAX_TITLE_CHARS => Err(CaseRefusal::TitleTooLong { chars }),
        _ => Ok(title),
    }
}

#[cfg(test)]
mod tests;
