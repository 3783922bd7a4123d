//! A lock for each channel: what is slow in one keeps nobody waiting in another.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

/// The locks of the channels in which something is under way.
#[derive(Debug, Default)]
pub struct ChannelLocks(Mutex<HashMap<String, Arc<AsyncMutex<()>>>>);

impl ChannelLocks {
    /// Waits for the lock of a channel.
    pub(crate) async fn lock(&self, channel: &str) -> OwnedMutexGuard<()> {
        let lock = {
            let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            locks.retain(|_, lock| Arc::strong_count(lock) > 1);
            Arc::clone(locks.entry(channel.to_owned()).or_default())
        };
        lock.lock_owned().await
    }
}
