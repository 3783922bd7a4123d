//! Why a turn stops before its end, and how the dispatcher treats that.

use std::time::Duration;

use pmk_knowledge::LibraryError;

use crate::{dispatch::TurnFailure, front::FrontError, store::StoreError};

/// Why a turn could not be finished now. Nothing is lost: what it has done is stored.
#[derive(Debug, thiserror::Error)]
pub(super) enum TurnError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Front(#[from] FrontError),
    #[error(transparent)]
    Library(#[from] LibraryError),
    /// People have changed something about the turn.
    #[error("it will be started again")]
    Anew,
    /// Another host works on its conversation, or must answer an earlier question there first.
    #[error("another host is working on it")]
    Elsewhere,
    /// The gateway stops, and ends what the turn was waiting for.
    #[error("the gateway is stopping")]
    Stopping,
    /// The messages collected for it are too long together.
    #[error("its messages are answered one by one")]
    Apart,
}

impl From<TurnError> for TurnFailure {
    fn from(error: TurnError) -> Self {
        let why = error.to_string();
        match error {
            TurnError::Front(FrontError::Transient { retry_after, .. }) => {
                TurnFailure::Passing { why, retry_after: retry_after.unwrap_or_default() }
            }
            TurnError::Front(FrontError::Fatal { what, hint }) => {
                TurnFailure::Refused { why: format!("{what}; {hint}") }
            }
            TurnError::Front(FrontError::Refused { .. }) => TurnFailure::Hopeless { why },
            TurnError::Front(FrontError::Closed) | TurnError::Stopping => TurnFailure::Over(None),
            TurnError::Anew | TurnError::Store(StoreError::Changed) => TurnFailure::Anew,
            TurnError::Apart => TurnFailure::Apart,
            TurnError::Elsewhere => TurnFailure::Elsewhere,
            TurnError::Store(error) if error.is_lost() => TurnFailure::Over(Some(error.into())),
            TurnError::Store(error) if !error.is_passing() => TurnFailure::Hopeless { why },
            TurnError::Store(_) | TurnError::Library(_) => TurnFailure::Passing { why, retry_after: Duration::ZERO },
        }
    }
}
