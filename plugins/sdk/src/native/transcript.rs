//! The request as seen by a policy.

use std::{cell::RefCell, ops::Range, rc::Rc, sync::Arc};

use pmk_core::{Block, Lookup, text};

/// The request as it would be sent with an empty plan, oldest message first.
///
/// Columns are read by range; ranges are limited to the messages that exist, and an index past the end gives nothing.
/// Read from the newest message back, preferably by [`segments`](Transcript::segments), so that a decision costs what
/// is kept, not what is stored.
#[derive(Clone, Debug)]
pub struct Transcript {
    pub(crate) inner: Arc<pmk_core::Transcript>,
    pub(crate) draft: Rc<RefCell<Draft>>,
}

/// The edits and archive queries of a decision so far.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) plan: pmk_core::Plan,
    pub(crate) lookup: Lookup,
}

impl Transcript {
    pub(crate) fn new(inner: Arc<pmk_core::Transcript>) -> Self {
        Transcript { inner, draft: Rc::default() }
    }

    /// How many messages there are.
    pub fn length(&self) -> u32 {
        self.inner.len() as u32
    }

    /// The tokens of all of them together.
    pub fn total_tokens(&self) -> u64 {
        self.inner.total_tokens()
    }

    /// Tokens of each message in `start..end`.
    pub fn tokens(&self, start: u32, end: u32) -> Vec<u32> {
        self.inner.tokens()[self.range(start, end)].to_vec()
    }

    /// Characters of text and tool results of each message in `start..end`, in their current form.
    pub fn chars(&self, start: u32, end: u32) -> Vec<u32> {
        self.inner.entries()[self.range(start, end)].iter().map(|entry| entry.chars).collect()
    }

    /// The [role](crate::role) of each message in `start..end`.
    pub fn roles(&self, start: u32, end: u32) -> Vec<u8> {
        self.range(start, end).map(|at| self.inner.codes(at).0).collect()
    }

    /// The [origin](crate::origin) of each message in `start..end`.
    pub fn origins(&self, start: u32, end: u32) -> Vec<u8> {
        self.range(start, end).map(|at| self.inner.codes(at).1).collect()
    }

    /// The [flags](crate::flag) of each message in `start..end`.
    pub fn flags(&self, start: u32, end: u32) -> Vec<u8> {
        self.inner.flags()[self.range(start, end)].to_vec()
    }

    /// For each message in `start..end`, the index of the first message of its tool group, or its own index.
    pub fn groups(&self, start: u32, end: u32) -> Vec<u32> {
        self.inner.structure().groups[self.range(start, end)].to_vec()
    }

    /// Legal cuts below `before`, newest first, at most `max` of them.
    pub fn cuts(&self, before: u32, max: u32) -> Vec<u32> {
        self.inner.cuts_before(before).take(max as usize).collect()
    }

    /// How many turns are stored, the current one not counted.
    pub fn turns(&self) -> u32 {
        self.inner.turns() as u32
    }

    /// The start of the current turn: the index of the new message, or `length` if there is none.
    pub fn current(&self) -> u32 {
        self.inner.current() as u32
    }

    /// How many messages at the start are the seed and its acknowledgement.
    pub fn seed_end(&self) -> u32 {
        self.inner.seed_end() as u32
    }

    /// How many turns earlier prunes have dropped already.
    pub fn dropped_turns(&self) -> u32 {
        self.inner.dropped_turns()
    }

    /// The channel the new message came from, as the front identifies it: in Slack its id, `C…` or `D…`, not its name. May
    /// be empty.
    pub fn channel(&self) -> String {
        self.inner.channel().to_owned()
    }

    /// Up to `max` characters of the text of one message from character `start` on.
    pub fn text(&self, index: u32, start: u32, max: u32) -> String {
        self.inner.get(index).map_or_else(String::new, |entry| {
            text::slice(&entry.message.plain_text(), start as usize, max as usize).to_owned()
        })
    }

    /// Names of the tools a message calls, in order.
    pub fn tools(&self, index: u32) -> Vec<String> {
        let blocks = self.inner.get(index).map_or(&[][..], |entry| &entry.message.blocks);
        blocks
            .iter()
            .filter_map(|block| match block {
                Block::ToolUse { name, .. } => Some(name.clone()),
                _ => None,
            })
            .collect()
    }

    /// How many messages were recorded in this conversation before the current turn. They are numbered from 0 in the
    /// order in which they were recorded; those still in the request are included.
    pub fn archived(&self) -> u32 {
        self.inner.archived()
    }

    /// Searches the archive, best match first: the numbers of at most `max` matching messages that are not in the
    /// request, or would not be after the edits so far. At most 8 searches per decision.
    pub fn search(&self, query: &str, max: u32) -> Vec<u32> {
        let Draft { plan, lookup } = &mut *self.draft.borrow_mut();
        lookup.search(&self.inner, plan, query, max)
    }

    /// What each archived message in `start..end` would add to a recall block, in tokens; 0 where it cannot be recalled.
    pub fn archived_tokens(&self, start: u32, end: u32) -> Vec<u32> {
        let Draft { plan, lookup } = &mut *self.draft.borrow_mut();
        lookup.tokens(&self.inner, plan, start, end)
    }

    /// The [origin](crate::origin) of each archived message in `start..end`.
    pub fn archived_origins(&self, start: u32, end: u32) -> Vec<u8> {
        self.draft.borrow_mut().lookup.origins(&self.inner, start, end)
    }

    /// Up to `max` characters of one archived message from character `start` on.
    pub fn archived_text(&self, number: u32, start: u32, max: u32) -> String {
        self.draft.borrow_mut().lookup.text(&self.inner, number, start, max)
    }

    fn range(&self, start: u32, end: u32) -> Range<usize> {
        let end = (end as usize).min(self.inner.len());
        (start as usize).min(end)..end
    }
}
