//! What is asked for before whoever wants it is at work.
//!
//! Several operations share a transaction, and one of them asks what it has to know, waits for that, writes, and then comes the
//! next, which asks. What all of them will ask is known before, so it goes out at once and is waited for once. An operation then
//! sees things as they were before those ahead of it have written, as if it had come first. Where that makes a difference they
//! say that it has [moved](Invalidation), and what was foreseen for it is asked anew.

use std::{collections::HashSet, sync::Arc};

use super::session::{Asked, Request};

/// What was asked for one operation.
#[derive(Default)]
pub(in crate::store) struct Prefetched(Vec<Arc<Asked>>);

/// What an operation has changed, and others that were foreseen may go by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::store) enum Invalidation {
    /// Who works on the conversation of this number, what is asked in it, or what is in its window.
    Conversation(i64),
    /// The conversation of this key is there now.
    Session(String),
    /// What is shown of the answer of this turn.
    Shown(i64),
    /// A message of this name was taken in.
    Seen(String),
}

#[derive(Default)]
pub(super) struct Prefetch {
    /// What was asked so far for the one that is looked ahead for.
    noting: Option<Prefetched>,
    /// What was asked for the one at work, and not taken yet.
    foreseen: Prefetched,
    /// It has taken something.
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

    /// Who is at work from here on was foreseen to ask this.
    pub(super) fn is_for(&mut self, foreseen: Prefetched) {
        (self.foreseen, self.has_taken) = (foreseen, false);
    }

    pub(super) fn forget(&mut self) {
        self.is_for(Prefetched::default());
    }

    /// Takes what this asks, if it was foreseen.
    pub(super) fn take(&mut self, request: &Request) -> Option<Arc<Asked>> {
        let Prefetched(foreseen) = &mut self.foreseen;
        let place = foreseen.iter().position(|asked| asked.is(request))?;
        self.has_taken = true;
        Some(foreseen.swap_remove(place))
    }

    pub(super) fn moved(&mut self, what: Invalidation) {
        self.moved.insert(what);
    }

    /// Whether the one at work has been told, or would be, of something that has moved since. From then on it asks.
    pub(super) fn has_moved(&mut self, what: &Invalidation) -> bool {
        let is_foreseen = self.has_taken || !self.foreseen.0.is_empty();
        let has_moved = is_foreseen && self.moved.contains(what);
        if has_moved {
            self.forget();
        }
        has_moved
    }
}
