//! What people do besides asking, and what operators do: planned with the rest of a world, mostly a moment after a
//! question, while it is being processed.

use fastrand::Rng;

use crate::{
    random::{dice, one_of},
    scenario::{STACKS, Said, What},
};

/// An action of a person.
#[derive(Clone, Debug)]
pub struct Deed {
    /// The number of the question that it is about, or in whose conversation it happens.
    pub about: usize,
    pub kind: Kind,
    /// Slack reports it this much later, in milliseconds: possibly after later actions, or before the message that it
    /// is about.
    pub after: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Edits,
    Deletes,
    /// An admin of the workspace deletes an answer.
    DeletesAnswer,
    SaysStop,
    /// By a reaction to the question or the placeholder.
    Stops,
    /// By a reaction to the question or its answer.
    AsksAgain,
    /// Any button that exists; some people press twice.
    Presses,
    Thumbs,
    /// A command to the gateway.
    Commands(u8),
}

/// The possible commands.
pub const COMMANDS: [&str; 11] = [
    "/pmk help",
    "/pmk context",
    "/pmk policy",
    "/pmk open Gear box",
    "/pmk show",
    "/pmk cases",
    "/pmk close",
    "/pmk dance",
    "/pmk admin status",
    "verbose full",
    "verbose off",
];

/// The actions in a world with these questions.
pub fn of(seed: u64, events: &[(u64, What)], calm_at: u64) -> Vec<(u64, What)> {
    let mut rng = dice(seed, "deeds");
    let asked = asked(events);
    let mut all = Vec::new();
    if asked.is_empty() {
        return all;
    }
    let deeds = if rng.u8(0..4) == 0 { 0 } else { rng.usize(1..8) };
    let mut last = one_of(&mut rng, &asked);
    for _ in 0..deeds {
        // Some people do several things about one question.
        let (about, asked_at) = if rng.u8(0..3) == 0 { last } else { one_of(&mut rng, &asked) };
        last = (about, asked_at);
        let kind = kind(&mut rng);
        let at = match (kind, rng.u8(0..4)) {
            // These require an answer first.
            (Kind::DeletesAnswer | Kind::Presses | Kind::Thumbs, _) => asked_at + rng.u64(3_000..600_000),
            (_, 0) => asked_at + rng.u64(0..calm_at.saturating_sub(asked_at).max(1)),
            _ => asked_at + rng.u64(0..9_000),
        };
        let after = if rng.u8(0..4) == 0 { rng.u64(500..20_000) } else { rng.u64(10..80) };
        all.push((at.min(calm_at), What::Does(Deed { about, kind, after })));
    }
    if rng.u8(0..4) == 0 {
        for _ in 0..rng.usize(1..4) {
            let (_, asked_at) = one_of(&mut rng, &asked);
            all.push((asked_at + rng.u64(0..9_000), What::Swap(one_of(&mut rng, &STACKS))));
        }
    }
    all
}

/// The questions that something may be done about: their numbers, and when they are asked.
pub fn asked(events: &[(u64, What)]) -> Vec<(usize, u64)> {
    let is_question = |what: &What| matches!(what, What::Says(Said { is_probe: false, .. }));
    events.iter().enumerate().filter(|(_, (_, what))| is_question(what)).map(|(n, (at, _))| (n, *at)).collect()
}

fn kind(rng: &mut Rng) -> Kind {
    match rng.u8(0..16) {
        0..4 => Kind::Edits,
        4..7 => Kind::Deletes,
        7 => Kind::DeletesAnswer,
        8 => Kind::SaysStop,
        9..11 => Kind::Stops,
        11..13 => Kind::AsksAgain,
        13 => Kind::Presses,
        14 => Kind::Thumbs,
        _ => Kind::Commands(rng.u8(0..COMMANDS.len() as u8)),
    }
}
