//! Why a turn stops before its end, and how the dispatcher treats that.

use std::time::Duration;

use pmk_knowledge::LibraryError;

use crate::{dispatch::TurnFailure, front::FrontError, store::StoreError};

/// How soon to look again whether somebody has mended an atom's file. Only people can do that, so it is not given up.
const MENDED_AFTER: Duration = Duration::from_secs(30);

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
            TurnError::Library(LibraryError::File(error)) if error.broken().is_some() => {
                TurnFailure::Passing { why, retry_after: MENDED_AFTER }
            }
            TurnError::Store(_) | TurnError::Library(_) => TurnFailure::Passing { why, retry_after: Duration::ZERO },
        }
    }
}

#[cfg(test)]
mod tests {
    use pmk_knowledge::files::FileError;

    use super::*;

    /// Regression: after ten minutes the turn was parked, and nobody was ever asked for a verdict on the atom.
    #[test]
    fn a_turn_that_waits_for_an_atoms_file_to_be_mended_was_given_up() {
        let waits = |error: FileError| match TurnFailure::from(TurnError::Library(error.into())) {
            TurnFailure::Passing { retry_after, .. } => retry_after,
            other => panic!("{other:?}"),
        };
        assert_eq!(waits(FileError::NotText { path: "a.md".into() }), MENDED_AFTER);
        assert_eq!(waits(FileError::Changed { path: "a.md".into() }), Duration::ZERO);
    }
}
