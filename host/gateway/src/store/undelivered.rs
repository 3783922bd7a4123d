//! What is known of answers on their way to people, so that their ends need not ask the database.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, PoisonError},
};

use crate::ids::{SessionId, TurnId};

/// What is left to do of turns that were recorded here, so that nobody has to ask. Nobody else delivers them while this host
/// may write.
#[derive(Debug, Default)]
pub(super) struct Undelivered(Mutex<HashMap<TurnId, Outstanding>>);

/// So many are remembered; then it is begun anew.
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

/// What is left to do of a turn.
#[derive(Clone, Debug)]
pub(super) struct Outstanding {
    pub(super) session: SessionId,
    pub(super) is_over: bool,
    pub(super) unsent: HashSet<u32>,
}
