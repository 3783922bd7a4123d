//! Turns, legal cuts and tool groups of a list of messages.
//!
//! Index arithmetic on a list with semantic boundaries is how seed 002 broke: everything that divides
//! a history asks this module where it may.

use std::collections::{HashMap, VecDeque};

use crate::message::{Block, Message, Role};

/// Whether a message starts a turn: a user message that carries no tool result and is none of the
/// host's own insertions.
pub fn starts_turn(message: &Message) -> bool {
    message.role == Role::User
        && message.origin.starts_turn()
        && !message.blocks.iter().any(|block| matches!(block, Block::ToolResult { .. }))
}

/// One tool_use and the tool_result that answers it, as message and block indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    pub call: (usize, usize),
    pub result: (usize, usize),
}

/// The tool pairs of a history, and the tool blocks that have no partner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pairs {
    pub pairs: Vec<Pair>,
    /// Message and block indexes of calls and results without a partner, in order.
    pub orphans: Vec<(usize, usize)>,
}

/// Matches calls and results by order: ids may repeat within a conversation. A call can only be
/// answered by the user messages that follow it directly, because a provider accepts nothing else.
pub fn pair_tools<M: AsRef<Message>>(messages: &[M]) -> Pairs {
    let mut found = Pairs::default();
    let mut open: HashMap<&str, VecDeque<(usize, usize)>> = HashMap::new();
    let mut previous = Role::Assistant;
    for (index, message) in messages.iter().map(AsRef::as_ref).enumerate() {
        if message.role == Role::Assistant && previous == Role::User {
            found.orphans.extend(open.drain().flat_map(|(_, calls)| calls));
        }
        previous = message.role;
        for (at, block) in message.blocks.iter().enumerate() {
            match block {
                Block::ToolUse { id, .. } if message.role == Role::Assistant => {
                    open.entry(id).or_default().push_back((index, at));
                }
                Block::ToolResult { tool_use_id, .. } if message.role == Role::User => {
                    match open.get_mut(tool_use_id.as_str()).and_then(VecDeque::pop_front) {
                        Some(call) => found.pairs.push(Pair { call, result: (index, at) }),
                        None => found.orphans.push((index, at)),
                    }
                }
                Block::ToolUse { .. } | Block::ToolResult { .. } => found.orphans.push((index, at)),
                Block::Text { .. } => {}
            }
        }
    }
    found.orphans.extend(open.into_values().flatten());
    found.orphans.sort_unstable();
    found
}

/// Where a history may be divided and what belongs together in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Structure {
    /// Messages that start a turn, ascending.
    pub turn_starts: Vec<u32>,
    /// Turn starts that no pair straddles, ascending; 0 counts when it starts a turn.
    pub cuts: Vec<u32>,
    /// For each message the first message of its tool group, or itself.
    pub groups: Vec<u32>,
}

impl Structure {
    /// Reads the structure of a history whose tool blocks all have a partner.
    pub fn of<M: AsRef<Message>>(messages: &[M]) -> Structure {
        let groups = group(messages);
        let mut turn_starts = Vec::new();
        let mut cuts = Vec::new();
        // Groups are contiguous in time, so a cut at i is free when no group that began before i
        // reaches i or beyond.
        let mut reach = vec![0usize; messages.len()];
        for (index, first) in groups.iter().enumerate() {
            reach[*first as usize] = index;
        }
        let mut furthest = 0;
        for (index, message) in messages.iter().map(AsRef::as_ref).enumerate() {
            if starts_turn(message) {
                turn_starts.push(index as u32);
                if index == 0 || furthest < index {
                    cuts.push(index as u32);
                }
            }
            furthest = furthest.max(reach[index]);
        }
        Structure { turn_starts, cuts, groups }
    }
}

/// Ties the messages of each pair together; a message with several calls ties all their results.
fn group<M: AsRef<Message>>(messages: &[M]) -> Vec<u32> {
    let mut groups: Vec<u32> = (0..messages.len() as u32).collect();
    fn root(groups: &mut [u32], mut at: u32) -> u32 {
        while groups[at as usize] != at {
            groups[at as usize] = groups[groups[at as usize] as usize];
            at = groups[at as usize];
        }
        at
    }
    for pair in pair_tools(messages).pairs {
        let a = root(&mut groups, pair.call.0 as u32);
        let b = root(&mut groups, pair.result.0 as u32);
        let (low, high) = (a.min(b), a.max(b));
        groups[high as usize] = low;
    }
    for at in 0..groups.len() as u32 {
        groups[at as usize] = root(&mut groups, at);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Origin;

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
