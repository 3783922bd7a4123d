//! Prefetching: queries of operations are sent before the operations run.
//!
//! Several operations share a transaction. Each of them would query what it needs, wait for that and write, and
//! only then would the next one query. What all of them will query is known in advance, so it is sent at once and
//! waited for once. An operation then sees the state from before the earlier ones have written, as if it had run
//! first. Where that makes a difference, the earlier ones declare an [invalidation](Invalidation), and the
//! prefetched rows are queried anew.

use std::{collections::HashSet, sync::Arc};

use super::session::{Asked, Request};

/// The queries that were sent for one operation.
#[derive(Default)]
pub(in crate::store) struct Prefetched(Vec<Arc<Asked>>);

/// What an operation has changed, so that prefetched rows of others may be outdated.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::store) enum Invalidation {
    /// The lease, the open questions or the window of the conversation with this id.
    Conversation(i64),
    /// The conversation with this key was created.
    Session(String),
    /// What was shown of this turn's answer.
    Shown(i64),
    /// A message with this event id was accepted.
    Seen(String),
}

#[derive(Default)]
pub(super) struct Prefetch {
    /// The queries sent so far for the operation that is being prefetched.
    noting: Option<Prefetched>,
    /// The prefetched queries of the running operation that it has not used yet.
    prefetched: Prefetched,
    /// Whether the running operation has used one.
    has_taken: bool,
    moved: HashSet<Invalidation>,
}

impl Prefetch {
    pub(super) fn begin_noting(&mut self) {
        self.noting = Some(Prefetched::default());
    }

    pub(super) const fn is_noting(&self) -> bool {
        self.noting.is_some()
    }

    pub(super) fn note(&mut self, asked: &Arc<Asked>) {
        if let Some(Prefetched(noted)) = &mut self.noting {
            noted.push(Arc::clone(asked));
        }
    }

    pub(super) fn noted(&mut self) -> Prefetched {
        self.noting.take().unwrap_or_default()
    }

    /// Sets the prefetched queries of the operation that runs from here on.
    pub(super) fn is_for(&mut self, prefetched: Prefetched) {
        (self.prefetched, self.has_taken) = (prefetched, false);
    }

    pub(super) fn forget(&mut self) {
        self.is_for(Prefetched::default());
    }

    /// Takes the prefetched query that equals this one, if any.
    pub(super) fn take(&mut self, request: &Request) -> Option<Arc<Asked>> {
        let Prefetched(prefetched) = &mut self.prefetched;
        let place = prefetched.iter().position(|asked| asked.is(request))?;
        self.has_taken = true;
        Some(prefetched.swap_remove(place))
    }

    pub(super) fn moved(&mut self, what: Invalidation) {
        self.moved.insert(what);
    }

    /// Whether the running operation has used, or would use, rows that were invalidated. From then on it queries
    /// anew.
    pub(super) fn has_moved(&mut self, what: &Invalidation) -> bool {
        let is_prefetched = self.has_taken || !self.prefetched.0.is_empty();
        let has_moved = is_prefetched && self.moved.contains(what);
        if has_moved {
            self.forget();
        }
        has_moved
    }
}
