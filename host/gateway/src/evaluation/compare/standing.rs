//! The state of a recorded conversation after a replay: what of it the last request contained.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use pmk_core::{Block, Entry, Message, Origin};
use serde::Serialize;

use super::{
    faults::Faults,
    questions::{Placed, Score, contains_whole},
    recording::Recording,
    replay::{Arm, Replay, Setup, unquoted},
};

/// The state of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    Kept,
    /// Shortened or digested.
    Shortened,
    /// Removed, and quoted again for this request.
    Recalled,
    /// Replaced by a summary.
    Summarised,
    Dropped,
}

/// The last request of a policy.
#[derive(Clone, Debug)]
pub struct Standing {
    /// Tokens of its messages.
    pub tokens: u64,
    /// The messages that the host inserted.
    pub inserted: Vec<Arc<Message>>,
    /// The result of each question, in the order in which they were asked.
    pub scores: Vec<Score>,
    /// Why the policy did not decide, in any of the turns.
    pub faults: Faults,
    /// Recorded messages by their id, and whether they are whole.
    standing: HashMap<i64, bool>,
    summarised: HashSet<i64>,
    recalled: Vec<String>,
}

impl Standing {
    /// Replays a conversation to its last request, and asks these questions at their positions.
    pub fn of(arm: &Arm, setup: &Setup, recording: &Recording, questions: &[Placed<'_>]) -> Standing {
        let mut replay = Replay::new(arm, setup, recording);
        let mut scores = Vec::with_capacity(questions.len());
        replay.run(questions, |_, score| scores.push(score));
        let seen = replay.seen();
        let (recorded, inserted): (Vec<&Entry>, Vec<&Entry>) = seen.last.iter().partition(|entry| entry.id > 0);
        let recalled = inserted.iter().filter(|entry| entry.message.origin == Origin::Recall);
        Standing {
            tokens: seen.last.iter().map(|entry| u64::from(entry.tokens)).sum(),
            scores,
            faults: seen.faults,
            standing: recorded.iter().map(|entry| (entry.id, entry.original.is_none())).collect(),
            recalled: recalled.map(|entry| unquoted(&entry.message.plain_text())).collect(),
            inserted: inserted.iter().map(|entry| Arc::clone(&entry.message)).collect(),
            summarised: seen.summarised,
        }
    }

    /// Returns the number of the newest recorded message in it; 0 if there is none.
    pub fn newest(&self) -> i64 {
        self.standing.keys().max().copied().unwrap_or(0)
    }

    /// Returns the state of a recorded message.
    pub fn state(&self, entry: &Entry) -> State {
        match self.standing.get(&entry.id) {
            Some(true) => State::Kept,
            Some(false) => State::Shortened,
            None if quotes(&self.recalled, &entry.message.plain_text()) => State::Recalled,
            None if self.summarised.contains(&entry.id) => State::Summarised,
            None => State::Dropped,
        }
    }
}

/// Whether any of these blocks quotes a text. A message of tool calls alone has none to quote.
fn quotes(blocks: &[String], text: &str) -> bool {
    blocks.iter().any(|block| contains_whole(block, text.trim()))
}

/// Returns the text of a message, and its tool calls.
pub fn words(entry: &Entry) -> String {
    let calls = entry.message.blocks.iter().filter_map(|block| match block {
        Block::ToolUse { name, input, .. } => Some(format!("[{name} {input}]")),
        _ => None,
    });
    std::iter::once(entry.message.plain_text())
        .chain(calls)
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::quotes;

    /// Regression: a dropped message of tool calls alone was shown as quoted wherever anything was.
    #[test]
    fn a_message_without_text_is_quoted_nowhere() {
        let blocks = ["the launch is on Friday".to_owned()];
        assert!(quotes(&blocks, " on Friday\n"));
        assert!(!quotes(&blocks, "on Monday") && !quotes(&blocks, "") && !quotes(&blocks, " \n"));
    }

    /// Regression: a message of `7` counted as recalled, and as evidence in view, wherever 17 was quoted.
    #[test]
    fn a_short_message_was_quoted_by_any_longer_word_or_number() {
        let blocks = ["we need 17 of them by noon".to_owned()];
        assert!(quotes(&blocks, "17") && !quotes(&blocks, "7") && !quotes(&blocks, "no"));
    }
}
