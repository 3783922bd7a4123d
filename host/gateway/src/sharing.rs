//! What several homes on one database have in common although each has it as files: the same in all of them.
//!
//! [Atoms](SharedAtoms), and [the part of gateway.json](SharedConfig) that a running gateway follows. Either is compared with what
//! the store has in [passes](Synced::pass): what is newer there comes into the home, and what was changed in the home is offered to
//! the store. [`SyncTask`] says when. And what one of several hosts says it says only while it [stands](Fencing).

mod atoms;
mod config;
mod shared;
mod sync_task;

pub use atoms::SharedAtoms;
pub use config::SharedConfig;
pub use shared::{SharingError, Synced};
pub use sync_task::SyncTask;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use pmk_system::{clock::Clock, home::HomeLock};
use tokio::sync::Notify;

use crate::{
    front::{Fencing, FrontError},
    store::{HostFence, Store},
};

/// So soon it is tried again whether the database can tell.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

#[async_trait]
impl Fencing for HostFence {
    async fn holds(&self) -> Result<(), FrontError> {
        HostFence::holds(self).await.map_err(|error| match error.is_lost() {
            true => FrontError::Closed,
            // Nothing was said yet.
            false => FrontError::Transient { what: error.to_string(), retry_after: Some(AGAIN_AFTER) },
        })
    }
}

/// Keeps the atoms of the home that is locked the same as those of the database.
///
/// # Errors
/// The folder of atoms cannot be made.
pub async fn keep_atoms(lock: &HomeLock, store: Store, clock: Clock) -> Result<SyncTask, SharingError> {
    let changed = Arc::new(Notify::new());
    let wake = Arc::clone(&changed);
    let atoms = SharedAtoms::open(lock, store, clock, move || wake.notify_one())?;
    Ok(SyncTask::begin(atoms, changed).await)
}

/// Keeps what gateway.json of the home that is locked says of people and experiments the same as on other hosts.
pub async fn keep_config(lock: &HomeLock, store: Store, clock: Clock) -> SyncTask {
    SyncTask::begin(SharedConfig::open(lock, store, clock), Arc::default()).await
}
