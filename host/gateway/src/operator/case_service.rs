//! What people can do about cases, and what they are told. Who may is asked before; the words that lead here are the table
//! of commands'.

use pmk_core::{FrontName, text};
use pmk_system::clock::Clock;
use thiserror::Error;

use crate::{
    case::{CaseRefusal, MAX_TITLE_CHARS, Order},
    messages::Messages,
    store::{Opened, Store, StoreError},
};

/// So many cases of a channel are listed; the operator sees all.
const MOST_LISTED: usize = 20;

/// Why nothing was done.
#[derive(Debug, Error)]
pub enum CaseServiceError {
    /// It makes no sense now.
    #[error(transparent)]
    Refused(#[from] CaseRefusal),
    /// It could not be kept, or looked up.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Carries it out.
#[derive(Clone, Copy)]
pub struct CaseService<'a> {
    pub store: &'a Store,
    pub messages: &'a Messages,
    pub clock: &'a Clock,
}

impl CaseService<'_> {
    /// Opens a case, and says so.
    ///
    /// # Errors
    /// One is open already; the title is none; the place is no channel; the store failed.
    pub async fn open(&self, order: &Order, title: &str) -> Result<String, CaseServiceError> {
        is_channel(&order.channel)?;
        let title = title_of(title)?;
        match self.store.open_case(order, &title, self.clock.now_ms()).await? {
            Opened::Other(case) => Err(CaseRefusal::OpenAlready(Box::new(case)).into()),
            Opened::Case { case, .. } => Ok(self.messages.case_opened(&case)),
        }
    }

    /// What is known of the case that is open in a channel.
    ///
    /// # Errors
    /// None is; the place is no channel; the store failed.
    pub async fn show(&self, front: FrontName, channel: &str) -> Result<String, CaseServiceError> {
        is_channel(channel)?;
        let case = self.store.open_case_of(front, channel).await?;
        Ok(self.messages.case_shown(&case.ok_or(CaseRefusal::NoneOpen)?))
    }

    /// Closes the case that is open in a channel, and says so.
    ///
    /// # Errors
    /// None is; the place is no channel; the store failed.
    pub async fn close(&self, order: &Order) -> Result<String, CaseServiceError> {
        is_channel(&order.channel)?;
        let closed = self.store.close_case(order, self.clock.now_ms()).await?;
        let (case, _) = closed.ok_or(CaseRefusal::NoneOpen)?;
        Ok(self.messages.case_closed(&case))
    }

    /// The cases of a channel. Those of others are not told here: a private channel's are its own.
    ///
    /// # Errors
    /// The place is no channel; the store failed.
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
