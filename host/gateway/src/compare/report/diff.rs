//! One conversation side by side: what of it the last request of each policy held.

use std::collections::HashMap;

use pmk_core::{Entry, Origin, Role, text};

use crate::compare::{
    recording::Recording,
    replay::{Arm, Replay, Setup, unquoted},
    runner::Replayed,
};

/// The most characters of a message that are shown.
const MAX_CHARS: usize = 240;

/// The most characters of what the host put in.
const MAX_INSERTED_CHARS: usize = 4_000;

/// So many messages in a row that all policies treat alike are shown as one line.
const LEAST_RUN: usize = 6;

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    Kept,
    /// A part of it stands for it.
    Shortened,
    /// It is gone, and quoted again for this request.
    Recalled,
    /// A summary stands for it.
    Summarised,
    Dropped,
}

/// A line of the view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row {
    Message {
        number: usize,
        who: &'static str,
        text: String,
        /// One of each policy.
        states: Vec<State>,
    },
    /// Messages in a row that are treated alike.
    Run { count: usize, states: Vec<State> },
}

/// A conversation side by side.
#[derive(Clone, Debug)]
pub struct Diff {
    pub conversation: String,
    pub rows: Vec<Row>,
    /// What the host put in, of each policy: what it is, and what it says.
    pub inserted: Vec<Vec<(&'static str, String)>>,
}

/// The number of the conversation that tells most: where the policies differ most in what they keep in view,
/// else in what they send.
pub fn most_telling(conversations: &[Replayed]) -> Option<usize> {
    let spread = |values: &dyn Fn(usize) -> u64, count: usize| {
        let (least, most) = (0..count).map(values).fold((u64::MAX, 0), |(least, most), v| (least.min(v), most.max(v)));
        most.saturating_sub(least)
    };
    let telling = conversations.iter().max_by_key(|replayed| {
        let outcomes = &replayed.outcomes;
        let evidence = spread(&|at| outcomes[at].score.visible, outcomes.len());
        let tokens = spread(&|at| outcomes[at].tally.tokens_sent, outcomes.len());
        // The first of equals.
        (evidence, tokens, std::cmp::Reverse(replayed.number))
    });
    telling.map(|replayed| replayed.number)
}

impl Diff {
    /// Replays a conversation once more, to its last request.
    pub fn of(arms: &[Arm], setup: &Setup, conversation: String, recording: &Recording) -> Diff {
        let ends: Vec<End> = arms.iter().map(|arm| End::of(arm, setup, recording)).collect();
        let asked = ends.iter().filter_map(|end| end.standing.keys().max()).max().copied().unwrap_or(0);
        // What was answered to the last request was in none.
        let entries = recording.entries.iter().take_while(|entry| entry.id <= asked);
        let rows = entries.enumerate().map(|(number, entry)| Row::Message {
            number,
            who: who(entry),
            text: excerpt(&words(entry), MAX_CHARS),
            states: ends.iter().map(|end| end.state(entry)).collect(),
        });
        let rows = folded(rows.collect());
        Diff { conversation, rows, inserted: ends.into_iter().map(|end| end.inserted).collect() }
    }
}

/// The last request of a policy.
struct End {
    /// Recorded messages by their id, and whether they stand whole.
    standing: HashMap<i64, bool>,
    summarised: std::collections::HashSet<i64>,
    recalled: Vec<String>,
    inserted: Vec<(&'static str, String)>,
}

impl End {
    fn of(arm: &Arm, setup: &Setup, recording: &Recording) -> End {
        let mut replay = Replay::new(arm, setup, recording);
        replay.run(&[], |_, _| {});
        let seen = replay.seen();
        let (recorded, inserted): (Vec<&Entry>, Vec<&Entry>) = seen.last.iter().partition(|entry| entry.id > 0);
        let texts = |entry: &&&Entry| entry.message.origin == Origin::Recall;
        End {
            standing: recorded.iter().map(|entry| (entry.id, entry.original.is_none())).collect(),
            recalled: inserted.iter().filter(texts).map(|entry| unquoted(&entry.message.plain_text())).collect(),
            inserted: inserted
                .iter()
                .map(|entry| {
                    let text = entry.message.plain_text();
                    (entry.message.origin.name(), excerpt(&text, MAX_INSERTED_CHARS))
                })
                .collect(),
            summarised: seen.summarised,
        }
    }

    fn state(&self, entry: &Entry) -> State {
        match self.standing.get(&entry.id) {
            Some(true) => State::Kept,
            Some(false) => State::Shortened,
            None if self.recalled.iter().any(|block| block.contains(entry.message.plain_text().trim())) => {
                State::Recalled
            }
            None if self.summarised.contains(&entry.id) => State::Summarised,
            None => State::Dropped,
        }
    }
}

fn who(entry: &Entry) -> &'static str {
    match (entry.message.role, entry.message.origin) {
        (Role::Assistant, _) => "assistant",
        (_, Origin::User) => "person",
        (_, other) => other.name(),
    }
}

/// What is in a message; a call of a tool by its name.
fn words(entry: &Entry) -> String {
    let calls = entry.message.blocks.iter().filter_map(|block| match block {
        pmk_core::Block::ToolUse { name, input, .. } => Some(format!("[{name} {input}]")),
        _ => None,
    });
    std::iter::once(entry.message.plain_text())
        .chain(calls)
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

fn excerpt(words: &str, most: usize) -> String {
    let short = text::head(words, most);
    if short.len() < words.len() { format!("{short}…") } else { short.to_owned() }
}

/// Long runs of rows with the same states, each as one row but for its ends.
fn folded(rows: Vec<Row>) -> Vec<Row> {
    let states = |row: &Row| match row {
        Row::Message { states, .. } | Row::Run { states, .. } => states.clone(),
    };
    let mut out = Vec::new();
    for run in rows.chunk_by(|a, b| states(a) == states(b)) {
        match run {
            [first, middle @ .., last] if middle.len() >= LEAST_RUN => {
                out.push(first.clone());
                out.push(Row::Run { count: middle.len(), states: states(first) });
                out.push(last.clone());
            }
            short => out.extend_from_slice(short),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(number: usize, state: State) -> Row {
        Row::Message { number, who: "person", text: String::new(), states: vec![state] }
    }

    #[test]
    fn long_runs_are_folded_and_their_ends_stay() {
        let rows: Vec<Row> =
            (0..20).map(|number| row(number, if number < 12 { State::Dropped } else { State::Kept })).collect();
        let folded = folded(rows);
        assert_eq!(folded[0], row(0, State::Dropped));
        assert_eq!(folded[1], Row::Run { count: 10, states: vec![State::Dropped] });
        assert_eq!(folded[2], row(11, State::Dropped));
        assert_eq!(folded[4], Row::Run { count: 6, states: vec![State::Kept] });
        assert_eq!(folded.len(), 6);
    }
}
