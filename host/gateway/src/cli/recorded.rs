//! Finds recorded conversations, as the command line specifies them.

use std::path::{Path, PathBuf};

use pmk_system::error::{Failure, OrHint};

use super::context::block_on;
use crate::{
    evaluation::compare::histories::{self, Source},
    store::{Place, Store, StoreError, transfer::TransferError},
};

/// Returns the conversations of a folder, at least one, and the problems of those that cannot be read. The file with
/// the questions is skipped.
pub(super) fn of_folder(folder: &Path, questions: Option<&Path>) -> Result<(Vec<Source>, Vec<TransferError>), Failure> {
    let (found, problems) = histories::find(folder, questions)
        .map_err(|error| Failure::new(error).hint("specify a folder that you can read with `--histories`"))?;
    if found.is_empty() {
        return Err(TransferError::NothingFound { path: PathBuf::from(folder) })
            .or_hint("only `.json`, `.jsonl`, `.ndjson` and full exports are read, also in its subfolders");
    }
    Ok((found.into_iter().map(Source::from).collect(), problems))
}

/// Returns the conversations stored in a home.
pub(super) fn of_home(place: impl Into<Place>) -> Result<Vec<Source>, Failure> {
    let store = Store::open_existing(place).map_err(|error| {
        let is_missing = matches!(error, StoreError::Missing { .. });
        let failure = Failure::from(error);
        if is_missing {
            failure.hint("specify a home with conversations, or a folder of recorded ones with `--histories DIR`")
        } else {
            failure
        }
    })?;
    let sessions = block_on(async { Ok(store.sessions().await?) })?;
    Ok(sessions.into_iter().map(|session| Source::Kept(store.clone(), session.key)).collect())
}
