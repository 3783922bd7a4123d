//! Turns, legal cuts and tool groups of a list of messages.
//!
//! The gateway of specification 002 broke because of index arithmetic on a list with semantic boundaries. Therefore
//! everything that divides a history asks this module where it may.

use std::mem;

use crate::message::{Block, Message, Origin, Role};

/// Whether a message by itself starts a turn: a user message that carries no tool result and was not inserted by the
/// host. In a [`Structure`], what came with a message starts that message's turn.
pub fn starts_turn(message: &Message) -> bool {
    message.role == Role::User
        && message.origin.starts_turn()
        && !message.blocks.iter().any(|block| matches!(block, Block::ToolResult { .. }))
}

/// Where the turn begins that the model has yet to answer: at the last question, if a question comes last, or a result
/// that is for it.
pub fn unanswered<M: AsRef<Message>>(messages: &[M]) -> Option<usize> {
    let last = messages.last()?.as_ref();
    let is_answered = !starts_turn(last) && !matches!(last.origin, Origin::ToolResult | Origin::MraResult);
    messages.iter().rposition(|message| starts_turn(message.as_ref())).filter(|_| !is_answered)
}

/// Message and block index of a tool block.
pub type At = (usize, usize);

/// One tool_use and the tool_result that answers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Where the tool_use is.
    pub call: At,
    /// Where its tool_result is; in a later message.
    pub result: At,
}

/// The tool pairs of a history, and the tool blocks that have no partner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pairs {
    /// Grouped by round; within a round in no particular order.
    pub pairs: Vec<Pair>,
    /// Calls and results without a partner, in order.
    pub orphans: Vec<At>,
}

/// Matches calls and results by order, because ids may repeat within a conversation. A call can only be answered by the
/// user messages that directly follow it; a provider accepts nothing else.
pub fn pair_tools<M: AsRef<Message>>(messages: &[M]) -> Pairs {
    survey(messages, |_, _, _| {})
}

/// Visits every message once, in order. Handles its tool blocks itself and passes the message, with its index and its
/// tool bits of [`flag`], to `see`.
fn survey<'a, M: AsRef<Message>>(messages: &'a [M], mut see: impl FnMut(usize, &'a Message, u8)) -> Pairs {
    let mut found = Pairs::default();
    let mut round = Round::default();
    let mut previous = Role::User;
    for (index, message) in messages.iter().map(AsRef::as_ref).enumerate() {
        if message.role == Role::Assistant && previous == Role::User {
            round.settle(&mut found);
        }
        previous = message.role;
        let mut flags = 0;
        for (at, block) in message.blocks.iter().enumerate() {
            match block {
                Block::Text { .. } | Block::Image(_) => {}
                Block::ToolUse { id, .. } => {
                    flags |= flag::TOOL_USE;
                    match message.role {
                        Role::Assistant => round.calls.push((id, (index, at))),
                        Role::User => found.orphans.push((index, at)),
                    }
                }
                Block::ToolResult { tool_use_id, .. } => {
                    flags |= flag::TOOL_RESULT;
                    match message.role {
                        Role::User => round.results.push((tool_use_id, (index, at))),
                        Role::Assistant => found.orphans.push((index, at)),
                    }
                }
            }
        }
        see(index, message, flags);
    }
    round.settle(&mut found);
    found.orphans.sort_unstable();
    found
}

/// The tool blocks of consecutive assistant messages and of the consecutive user messages that follow them.
#[derive(Default)]
struct Round<'a> {
    calls: Vec<(&'a str, At)>,
    results: Vec<(&'a str, At)>,
}

impl Round<'_> {
    /// Pairs the calls and results. The first call of an id belongs to the first result of that id, the second to the
    /// second: with both sorted by id (stable, so that equal ids keep their order), one pass finds all pairs.
    fn settle(&mut self, found: &mut Pairs) {
        self.calls.sort_by_key(|&(id, _)| id);
        self.results.sort_by_key(|&(id, _)| id);
        let mut results = self.results.drain(..).peekable();
        for (id, call) in self.calls.drain(..) {
            while let Some((_, orphan)) = results.next_if(|&(other, _)| other < id) {
                found.orphans.push(orphan);
            }
            match results.next_if(|&(other, _)| other == id) {
                Some((_, result)) => found.pairs.push(Pair { call, result }),
                None => found.orphans.push(call),
            }
        }
        found.orphans.extend(results.map(|(_, orphan)| orphan));
    }
}

/// The bits of [`Structure::flags`] and of a transcript's flags, as numbered in the contract.
pub mod flag {
    /// It starts a turn.
    pub const STARTS_TURN: u8 = 1;
    /// It is a legal cut.
    pub const CUT: u8 = 2;
    /// It contains a tool call.
    pub const TOOL_USE: u8 = 4;
    /// It contains a tool result.
    pub const TOOL_RESULT: u8 = 8;
    /// It has been replaced already. Only in a transcript.
    pub const REPLACED: u8 = 16;
    /// It belongs to the current turn, of which at most whole tool groups can be removed. Only in a transcript.
    pub const STAYS: u8 = 32;
}

/// Where a history may be divided, and which messages belong together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Structure {
    /// Bits of [`flag`], one byte per message.
    pub flags: Vec<u8>,
    /// Messages that start a turn, ascending: what people wrote, or what came with it, which precedes it.
    pub turn_starts: Vec<u32>,
    /// Turn starts that no pair straddles, ascending; 0 is included when it starts a turn.
    pub cuts: Vec<u32>,
    /// For each message the first message of its tool group, or itself.
    pub groups: Vec<u32>,
    /// User messages that are markers and nothing else, ascending.
    pub markers: Vec<u32>,
}

impl Structure {
    /// Computes the structure of a history whose tool blocks all have a partner.
    pub fn of<M: AsRef<Message>>(messages: &[M]) -> Structure {
        let mut flags = vec![0; messages.len()];
        let mut turn_starts = Vec::new();
        let mut markers = Vec::new();
        let mut follows_attachment = false;
        let pairs = survey(messages, |at, message, tools| {
            flags[at] = tools;
            let continues = mem::replace(&mut follows_attachment, message.origin == Origin::Attachment);
            if message.role == Role::User && tools & flag::TOOL_RESULT == 0 {
                if message.origin.starts_turn() {
                    if !continues {
                        flags[at] |= flag::STARTS_TURN;
                        turn_starts.push(at as u32);
                    }
                } else if message.origin == Origin::Marker && tools == 0 {
                    markers.push(at as u32);
                }
            }
        });
        let groups = group(messages.len(), &pairs.pairs);
        // Going backwards: `first` is the start of the earliest group that reaches beyond the current position.
        let mut cuts = Vec::with_capacity(turn_starts.len());
        let mut first = u32::MAX;
        for (at, &group) in (0..groups.len() as u32).zip(&groups).rev() {
            first = first.min(group);
            if first == at && flags[at as usize] & flag::STARTS_TURN != 0 {
                flags[at as usize] |= flag::CUT;
                cuts.push(at);
            }
        }
        cuts.reverse();
        Structure { flags, turn_starts, cuts, groups, markers }
    }

    /// The messages from `attached` on came with the new message, and that one starts the current turn.
    pub(crate) fn begin_current_turn(&mut self, attached: usize, current: usize) {
        let (attached, current) = (attached as u32, current as u32);
        self.turn_starts.retain(|&at| at != attached);
        self.cuts.retain(|&at| at != attached);
        self.flags[attached as usize] &= !(flag::STARTS_TURN | flag::CUT);
        self.flags[current as usize] |= flag::STARTS_TURN;
        insert(&mut self.turn_starts, current);
        if !self.is_straddled(current as usize) {
            self.flags[current as usize] |= flag::CUT;
            insert(&mut self.cuts, current);
        }
    }

    /// Whether a tool pair has its call before `at` and its result at or after it.
    pub(crate) fn is_straddled(&self, at: usize) -> bool {
        self.groups.iter().skip(at).any(|&first| (first as usize) < at)
    }
}

fn insert(ascending: &mut Vec<u32>, at: u32) {
    if let Err(place) = ascending.binary_search(&at) {
        ascending.insert(place, at);
    }
}

/// Joins the messages of each pair into one group; a message with several calls joins all their results.
fn group(len: usize, pairs: &[Pair]) -> Vec<u32> {
    let mut groups: Vec<u32> = (0..len as u32).collect();
    fn root(groups: &mut [u32], mut at: u32) -> u32 {
        while groups[at as usize] != at {
            groups[at as usize] = groups[groups[at as usize] as usize];
            at = groups[at as usize];
        }
        at
    }
    for pair in pairs {
        let a = root(&mut groups, pair.call.0 as u32);
        let b = root(&mut groups, pair.result.0 as u32);
        groups[a.max(b) as usize] = a.min(b);
    }
    // A parent is never above its child, so in ascending order it has already been resolved.
    for at in 0..groups.len() {
        groups[at] = groups[groups[at] as usize];
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(ids: &[&str]) -> Message {
        Message {
            role: Role::Assistant,
            origin: Origin::Assistant,
            blocks: ids
                .iter()
                .map(|id| Block::ToolUse { id: (*id).into(), name: "t".into(), input: serde_json::json!({}) })
                .collect(),
        }
    }

    fn result(ids: &[&str]) -> Message {
        Message {
            role: Role::User,
            origin: Origin::ToolResult,
            blocks: ids
                .iter()
                .map(|id| Block::ToolResult { tool_use_id: (*id).into(), content: "r".into(), is_error: false })
                .collect(),
        }
    }

    #[test]
    fn a_tool_turn_has_one_cut() {
        let messages = [
            Message::user("q1"),
            call(&["a"]),
            result(&["a"]),
            call(&["a"]),
            result(&["a"]),
            Message::assistant("done"),
            Message::user("q2"),
        ];
        let structure = Structure::of(&messages);
        assert_eq!(structure.turn_starts, [0, 6]);
        assert_eq!(structure.cuts, [0, 6]);
        assert_eq!(structure.groups, [0, 1, 1, 3, 3, 5, 6]);
    }

    #[test]
    fn a_pair_that_straddles_a_turn_start_forbids_the_cut() {
        let messages = [Message::user("q1"), call(&["a"]), Message::user("wait"), result(&["a"]), Message::user("q3")];
        let structure = Structure::of(&messages);
        assert_eq!(structure.turn_starts, [0, 2, 4]);
        assert_eq!(structure.cuts, [0, 4]);
    }

    #[test]
    fn parallel_calls_and_split_results_are_one_group() {
        let messages = [Message::user("q"), call(&["a", "b"]), result(&["b"]), result(&["a"])];
        assert_eq!(Structure::of(&messages).groups, [0, 1, 1, 1]);
    }

    #[test]
    fn repeated_ids_pair_in_order_and_late_results_are_orphans() {
        let messages = [
            Message::user("q"),
            call(&["a"]),
            Message::user("never mind"),
            call(&["a"]),
            result(&["a"]),
            result(&["a"]),
        ];
        let pairs = pair_tools(&messages);
        assert_eq!(pairs.pairs, [Pair { call: (3, 0), result: (4, 0) }]);
        assert_eq!(pairs.orphans, [(1, 0), (5, 0)]);
    }
}
