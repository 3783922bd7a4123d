//! A cache of what is still to be delivered of answers, so that finishing a turn needs no query.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, PoisonError},
};

use crate::ids::{SessionId, TurnId};

/// What is still to be done of turns that were recorded here. While this host may write, nobody else delivers them.
#[derive(Debug, Default)]
pub(super) struct Undelivered(Mutex<HashMap<TurnId, Outstanding>>);

/// How many turns are cached at most; when that is reached, the cache is cleared.
const MOST_UNDELIVERED: usize = 1_024;

impl Undelivered {
    pub(super) fn keep(&self, turn: TurnId, outstanding: Outstanding) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MOST_UNDELIVERED {
            kept.clear();
        }
        kept.insert(turn, outstanding);
    }

    pub(super) fn take(&self, turn: TurnId) -> Option<Outstanding> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&turn)
    }
}

/// What is still to be done of a turn.
#[derive(Clone, Debug)]
pub(super) struct Outstanding {
    pub(super) session: SessionId,
    pub(super) is_over: bool,
    pub(super) unsent: HashSet<u32>,
    /// How often the database had come back by then. One that has since may have lost this, in a failover or a restore.
    pub(super) returns: u64,
}
