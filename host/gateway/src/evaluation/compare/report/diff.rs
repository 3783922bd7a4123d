//! One conversation side by side: which of its messages the last request of each policy contained.

use pmk_core::{Entry, Message, Origin, Role, text::shortened};

use crate::evaluation::{
    authoring::stage::quietly,
    compare::{
        histories::Position,
        recording::Recording,
        replay::{Arm, Setup},
        runner::Replayed,
        standing::{Standing, State, words},
    },
};

/// The most characters of a message that are shown.
const MAX_CHARS: usize = 240;

/// The most characters of a message inserted by the host.
const MAX_INSERTED_CHARS: usize = 4_000;

/// The number of consecutive messages with equal states that are shown as one line.
const LEAST_RUN: usize = 6;

/// A line of the view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row {
    Message {
        number: usize,
        who: Origin,
        text: String,
        /// One for each policy.
        states: Vec<State>,
    },
    /// Consecutive messages with equal states.
    Run { count: usize, states: Vec<State> },
}

/// A conversation side by side.
#[derive(Clone, Debug)]
pub struct Diff {
    pub conversation: String,
    pub rows: Vec<Row>,
    /// The messages that the host inserted, by policy: origin and text.
    pub inserted: Vec<Vec<(Origin, String)>>,
}

/// Returns the place of the most informative conversation: where the policies differ most in the visible evidence, or
/// else in the tokens sent.
pub fn most_telling(conversations: &[Replayed]) -> Option<Position> {
    let spread = |values: &dyn Fn(usize) -> u64, count: usize| {
        let (least, most) = (0..count).map(values).fold((u64::MAX, 0), |(least, most), v| (least.min(v), most.max(v)));
        most.saturating_sub(least)
    };
    let telling = conversations.iter().max_by_key(|replayed| {
        let outcomes = &replayed.outcomes;
        let evidence = spread(&|at| outcomes[at].score.visible, outcomes.len());
        let tokens = spread(&|at| outcomes[at].tally.tokens_sent, outcomes.len());
        // Of several, the first.
        (evidence, tokens, std::cmp::Reverse(replayed.position))
    });
    telling.map(|replayed| replayed.position)
}

impl Diff {
    /// Replays a conversation once more, to its last request.
    pub fn of(arms: &[Arm], setup: &Setup, conversation: String, recording: &Recording) -> Diff {
        let end = |arm: &Arm| Standing::of(arm, setup, recording, &[]);
        let ends: Vec<Standing> = quietly(|| arms.iter().map(end).collect());
        let asked = ends.iter().map(Standing::newest).max().unwrap_or(0);
        // The answer to the last request was in no request.
        let entries = recording.entries.iter().take_while(|entry| entry.id <= asked);
        let rows = entries.enumerate().map(|(number, entry)| Row::Message {
            number,
            who: who(entry),
            text: shortened(&words(entry), MAX_CHARS).into_owned(),
            states: ends.iter().map(|end| end.state(entry)).collect(),
        });
        let rows = folded(rows.collect());
        Diff { conversation, rows, inserted: ends.iter().map(inserted).collect() }
    }
}

/// The messages that the host inserted: origin and text.
fn inserted(end: &Standing) -> Vec<(Origin, String)> {
    let said = end.inserted.iter();
    let shown = |message: &Message| shortened(&message.plain_text(), MAX_INSERTED_CHARS).into_owned();
    said.map(|message| (message.origin, shown(message))).collect()
}

/// Everything in the assistant role counts as the model's.
fn who(entry: &Entry) -> Origin {
    match entry.message.role {
        Role::Assistant => Origin::Assistant,
        Role::User => entry.message.origin,
    }
}

/// Folds the middle of long runs of rows with the same states into one row.
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
        Row::Message { number, who: Origin::User, text: String::new(), states: vec![state] }
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
