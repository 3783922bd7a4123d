//! Keeps in step what several homes on one database share although each home has it as files.
//!
//! These are [atoms](SharedAtoms), and [the part of gateway.json](SharedConfig) that a running gateway follows.
//! Each is compared with the store in [passes](Synced::pass): what is newer in the store is written to the home,
//! and what was changed in the home is offered to the store. [`SyncTask`] schedules the passes. This module also
//! lets one of several hosts post messages only while it [may](Fence).

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
    front::{Fence, FrontError},
    store::{HostFence, Store},
};

/// How soon to ask the database again when it could not answer.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

#[async_trait]
impl Fence for HostFence {
    async fn holds(&self) -> Result<(), FrontError> {
        HostFence::holds(self).await.map_err(|error| match error.is_lost() {
            true => FrontError::Closed,
            false => FrontError::Transient { what: error.to_string(), retry_after: Some(AGAIN_AFTER), not_made: true },
        })
    }
}

/// Keeps the atoms of the locked home in step with those of the database.
///
/// # Errors
/// The folder of atoms cannot be created.
pub async fn keep_atoms(lock: &HomeLock, store: Store, clock: Clock) -> Result<SyncTask, SharingError> {
    let changed = Arc::new(Notify::new());
    let wake = Arc::clone(&changed);
    let atoms = SharedAtoms::open(lock, store, clock, move || wake.notify_one())?;
    Ok(SyncTask::begin(atoms, changed).await)
}

/// Keeps what gateway.json of the locked home says of people and experiments in step with the other hosts.
pub async fn keep_config(lock: &HomeLock, store: Store, clock: Clock) -> SyncTask {
    SyncTask::begin(SharedConfig::open(lock, store, clock), Arc::default()).await
}
