//! The differences between two builds of a policy.

use std::collections::BTreeMap;

use serde::Serialize;

use super::sessions::Session;
use crate::evaluation::{
    authoring::ranges::ranges,
    compare::{
        questions::{Questions, Score},
        standing::{Standing, State, words},
    },
};

/// The most characters of a message that are shown.
const EXCERPT_CHARS: usize = 100;

/// The sums over all conversations with one build.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sums {
    /// Tokens of the last requests.
    pub tokens: u64,
    pub kept: usize,
    pub shortened: usize,
    pub recalled: usize,
    pub summarised: usize,
    pub dropped: usize,
    /// All questions, and those whose evidence is visible or that the reader answers.
    pub questions: usize,
    pub answered: usize,
}

/// A conversation that ended differently.
#[derive(Clone, Debug, Serialize)]
pub struct Changed {
    pub session: String,
    /// Tokens of the last request, with the previous build and with this one.
    pub tokens: (u64, u64),
    pub moves: Vec<Move>,
    /// Questions that could be answered only before, and those that can be answered only now.
    pub lost: Vec<String>,
    pub found: Vec<String>,
}

/// Messages with the same change of state.
#[derive(Clone, Debug, Serialize)]
pub struct Move {
    pub from: State,
    pub to: State,
    /// How many, and which, such as `0-1, 62-82`.
    pub count: usize,
    pub messages: String,
    /// The beginning of the first one.
    pub first: String,
}

/// Sums up the conversations.
pub fn sums(sessions: &[Session], standings: &[Standing]) -> Sums {
    let mut sums = Sums::default();
    for (session, standing) in sessions.iter().zip(standings) {
        sums.tokens += standing.tokens;
        sums.questions += standing.scores.len();
        sums.answered += standing.scores.iter().filter(|score| is_answered(score)).count();
        // The answer to the last request was in no request.
        for entry in session.recording.entries.iter().take_while(|entry| entry.id <= standing.newest()) {
            *match standing.state(entry) {
                State::Kept => &mut sums.kept,
                State::Shortened => &mut sums.shortened,
                State::Recalled => &mut sums.recalled,
                State::Summarised => &mut sums.summarised,
                State::Dropped => &mut sums.dropped,
            } += 1;
        }
    }
    sums
}

/// Returns the conversations that ended differently.
pub fn between(
    sessions: &[Session],
    questions: Option<&Questions>,
    before: &[Standing],
    now: &[Standing],
) -> Vec<Changed> {
    let both = sessions.iter().zip(before.iter().zip(now));
    let changed = both.map(|(session, (before, now))| {
        let (lost, found) = asked(session, questions, before, now);
        Changed {
            session: session.name.clone(),
            tokens: (before.tokens, now.tokens),
            moves: moves(session, before, now),
            lost,
            found,
        }
    });
    changed.filter(Changed::is_one).collect()
}

impl Changed {
    fn is_one(&self) -> bool {
        self.tokens.0 != self.tokens.1 || !(self.moves.is_empty() && self.lost.is_empty() && self.found.is_empty())
    }
}

fn moves(session: &Session, before: &Standing, now: &Standing) -> Vec<Move> {
    let entries = &session.recording.entries;
    let mut moved: BTreeMap<(State, State), Vec<usize>> = BTreeMap::new();
    for (at, entry) in entries.iter().enumerate() {
        let (from, to) = (before.state(entry), now.state(entry));
        if from != to {
            moved.entry((from, to)).or_default().push(at);
        }
    }
    let moved = moved.into_iter().map(|((from, to), indexes)| {
        let first = indexes.first().map(|&at| words(&entries[at])).unwrap_or_default();
        let first = pmk_core::text::shortened(&pmk_core::text::collapse_whitespace(&first), EXCERPT_CHARS).into_owned();
        Move { from, to, count: indexes.len(), messages: ranges(&indexes), first }
    });
    moved.collect()
}

/// Returns the questions whose result changed.
fn asked(
    session: &Session,
    questions: Option<&Questions>,
    before: &Standing,
    now: &Standing,
) -> (Vec<String>, Vec<String>) {
    let (placed, _) = session.questions(questions);
    let (mut lost, mut found) = (Vec::new(), Vec::new());
    for (placed, (before, now)) in placed.iter().zip(before.scores.iter().zip(&now.scores)) {
        match (is_answered(before), is_answered(now)) {
            (true, false) => lost.push(placed.question.text.clone()),
            (false, true) => found.push(placed.question.text.clone()),
            _ => {}
        }
    }
    (lost, found)
}

/// Whether all evidence was visible and the reader gave the right answer, as far as either is known.
fn is_answered(score: &Score) -> bool {
    score.visible == score.with_evidence && score.answered == score.with_answer
}
