//! What must survive: inbox, sessions, turns, outbox.

use thiserror::Error;

/// Why the store could not do something.
#[derive(Debug, Error)]
pub enum StoreError {}
